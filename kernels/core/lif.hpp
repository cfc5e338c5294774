// Leaky and plain integrate-and-fire over all time steps at once, forward and backward (paper Sec. 2).
//
//   h[t] = v[t-1] + gain * (x[t] - leak * (v[t-1] - v_reset))      LIF: gain = 1/tau, leak = 1;  IF: gain = 1, leak = 0
//   s[t] = h[t] >= v_threshold
//   v[t] = s[t] ? v_reset : h[t]
//
// The readable twin is spikformer/neurons/multistep.py. This file knows nothing of Python or of tensors' shapes: arrays
// are one row of `size` elements, or `time_steps` rows `size` apart (x: `current_stride` apart, 0 repeats one row).
// Outputs overlap neither inputs nor each other.
#pragma once

#include <cstddef>

#include "dynamics.hpp"

namespace spikformer {

enum class Surrogate { sigmoid = 0, arctan = 1 };

// `initial` may be null: the membrane then starts at v_reset. `membrane` (h, kept for the backward pass) may be null.
template <typename Real>
void lif_forward(const Real* current, std::ptrdiff_t current_stride, const Real* initial, Real* spikes, Real* membrane,
                 Real* voltage, std::size_t time_steps, std::size_t size, const Dynamics<double>& dynamics);

// Reset detached: in v = h (1 - s) the gradient does not pass through s. `initial` and `grad_voltage` may be null.
// Writes grad_current and, unless null, grad_initial; returns dL/dgain, for a learnable time constant (gain != 0).
template <typename Real>
double lif_backward(const Real* grad_spikes, const Real* grad_voltage, const Real* membrane, const Real* initial,
                    Real* grad_current, Real* grad_initial, std::size_t time_steps, std::size_t size,
                    const Dynamics<double>& dynamics, Surrogate surrogate, double alpha);

}  // namespace spikformer
