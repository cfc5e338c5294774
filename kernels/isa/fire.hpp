// Bias and neuron over all steps of one tile, writing one bit a neuron. Operation for operation that of
// kernels/core/lif.cpp.
//
// A step waits for the one before it: two rows go through together, each waiting for itself alone. `plain` neurons leak
// as the paper's do, V itself, to a rest at 0: two operations less in that chain, and the same bits.
// `tapped` neurons also write their membranes.
#pragma once

#include "isa/simd.hpp"

namespace spikformer::engine::SPIKFORMER_SET {
namespace {

template <bool plain, bool tapped, std::size_t rows>
inline void fire_rows(const Firing& firing, std::size_t first_row, std::size_t time_steps, const float* bias,
                      const Dynamics& dynamics) {
    const Floats gain = broadcast(dynamics.gain), leak = broadcast(dynamics.leak);
    const Floats threshold = broadcast(dynamics.v_threshold), rest = broadcast(dynamics.v_reset);
    Floats biases[tile_vectors], state[rows][tile_vectors];
    each<tile_vectors>([&](auto v) {
        biases[v.value] = load(bias + v.value * lanes);
        each<rows>([&](auto r) {
            const std::size_t place = (first_row + r.value) * firing.state_row + v.value * lanes;
            state[r.value][v.value] = firing.initial ? load(firing.initial + place) : rest;
        });
    });
    for (std::size_t t = 0; t < time_steps; ++t) {
        each<rows>([&](auto r) {
            const std::size_t row = first_row + r.value;
            const float* currents = firing.currents + row * firing.current_row + t * firing.current_step;
            Word bits = 0;
            each<tile_vectors>([&](auto v) {
                Floats& voltage = state[r.value][v.value];
                const Floats current = load(currents + v.value * lanes) + biases[v.value];
                const Floats leaked = plain ? voltage : leak * (voltage - rest);
                const Floats membrane = voltage + gain * (current - leaked);
                if constexpr (tapped) {
                    store(firing.membranes + row * firing.membrane_row + t * firing.membrane_step + v.value * lanes,
                          membrane);
                }
                const std::uint32_t fired = at_least(membrane, threshold);
                voltage = choose(fired, rest, membrane);
                bits |= Word{fired} << (v.value * lanes);
            });
            // Little-endian: the low bits come first.
            std::memcpy(firing.spikes + row * firing.spike_row + t * firing.spike_step, &bits, tile / 8);
        });
    }
    each<rows>([&](auto r) {
        each<tile_vectors>([&](auto v) {
            if (firing.voltage) {
                store(firing.voltage + (first_row + r.value) * firing.state_row + v.value * lanes,
                      state[r.value][v.value]);
            }
        });
    });
}

template <bool plain, bool tapped>
inline void fire_all(const Firing& firing, std::size_t rows, std::size_t time_steps, const float* bias,
                     const Dynamics& dynamics) {
    constexpr std::size_t together = lanes > 1 ? 2 : 1;
    std::size_t row = 0;
    for (; row + together <= rows; row += together) {
        fire_rows<plain, tapped, together>(firing, row, time_steps, bias, dynamics);
    }
    for (; row < rows; ++row) {
        fire_rows<plain, tapped, 1>(firing, row, time_steps, bias, dynamics);
    }
}

void fire(const Firing& firing, std::size_t rows, std::size_t time_steps, const float* bias, const Dynamics& dynamics) {
    const bool plain = dynamics.leak == 1.0f && dynamics.v_reset == 0.0f;
    const auto all = firing.membranes ? (plain ? fire_all<true, true> : fire_all<false, true>)
                                      : (plain ? fire_all<true, false> : fire_all<false, false>);
    all(firing, rows, time_steps, bias, dynamics);
}

}  // namespace
}  // namespace spikformer::engine::SPIKFORMER_SET
