// A neuron's constants, for training in float32 or float64 and for the engine in float32.
#pragma once

namespace spikformer {

// H = V + gain (X - leak (V - v_reset)), a spike where H >= v_threshold, then V = v_reset.
template <typename Real>
struct Dynamics {
    Real gain, leak, v_threshold, v_reset;
};

}  // namespace spikformer
