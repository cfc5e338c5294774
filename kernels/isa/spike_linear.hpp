// Event-driven products: for every event, add its weights to the steps it fires at.
//
// A weight is loaded once for all the steps that need it, and what differs between patterns is known at compile time.
// The currents of all steps of a group stay in registers (AVX-512 has enough of them, the others spill some). Each
// current has two sums, which take the events of a pattern in turns, so that an addition need not wait for the one
// before it. The order of a sum, over patterns and then over inputs in ascending order, depends on the input alone:
// results are the same for every batch, thread count and vector width.
#pragma once

#include "isa/simd.hpp"

namespace spikformer::engine::SPIKFORMER_SET {
namespace {

template <std::size_t steps>
struct Sums {
    Floats of[steps][tile_vectors];
};

constexpr std::size_t steps_below(std::size_t pattern, std::size_t step) {
    std::size_t count = 0;
    for (std::size_t t = 0; t < step; ++t) {
        count += pattern >> t & 1;
    }
    return count;
}

// Spikes are additions only; a count weighs each of its additions by a small integer.
template <bool counted, std::size_t pattern, std::size_t steps>
inline void add_event(Index event, const float* values, const float* weights, Sums<steps>& sums) {
    Floats weight[tile_vectors];  // before all else: GCC would load what it uses twice, twice
    each<tile_vectors>([&](auto v) { weight[v.value] = load(weights + event * tile + v.value * lanes); });
    each<steps>([&](auto t) {
        if constexpr (pattern >> t.value & 1) {
            Floats(&sum)[tile_vectors] = sums.of[t.value];
            if constexpr (counted) {
                const Floats count = broadcast(values[steps_below(pattern, t.value)]);
                each<tile_vectors>([&](auto v) { sum[v.value] = multiply_add(count, weight[v.value], sum[v.value]); });
            } else {
                each<tile_vectors>([&](auto v) { sum[v.value] += weight[v.value]; });
            }
        }
    });
}

template <bool counted, std::size_t pattern, std::size_t steps>
inline const float* add_pattern(const Index* event, const Index* end, const float* values, const float* weights,
                                Sums<steps>& even, Sums<steps>& odd) {
    constexpr std::size_t additions = counted ? steps_below(pattern, steps) : 0;
    for (; end - event >= 2; event += 2, values += 2 * additions) {
        add_event<counted, pattern>(event[0], values, weights, even);
        add_event<counted, pattern>(event[1], values + additions, weights, odd);
    }
    if (event != end) {
        add_event<counted, pattern>(*event, values, weights, even);
        values += additions;
    }
    return values;
}

// `pattern` counts from 0 for the pattern 1: silence has no events.
template <bool counted, std::size_t steps, std::size_t... pattern>
inline void add_events(std::index_sequence<pattern...>, const Index* indices, const float* values,
                       const std::uint32_t* ends, const float* weights, float* currents) {
    Sums<steps> even, odd;
    each<steps>([&](auto t) {
        each<tile_vectors>([&](auto v) { even.of[t.value][v.value] = odd.of[t.value][v.value] = Floats{}; });
    });
    ((values = add_pattern<counted, pattern + 1>(indices + ends[pattern], indices + ends[pattern + 1], values, weights,
                                                 even, odd)),
     ...);
    each<steps>([&](auto t) {
        each<tile_vectors>([&](auto v) {
            store(currents + t.value * tile + v.value * lanes, even.of[t.value][v.value] + odd.of[t.value][v.value]);
        });
    });
}

template <bool counted>
inline void add_group(const Index* indices, const float* values, const std::uint32_t* ends, std::size_t num_steps,
                      const float* weights, float* currents) {
    const auto add = [&](auto steps) {
        add_events<counted, steps.value>(std::make_index_sequence<(std::size_t{1} << steps.value) - 1>{}, indices,
                                         values, ends, weights, currents);
    };
    switch (num_steps) {
        case 1: return add(Number<1>{});
        case 2: return add(Number<2>{});
        case 3: return add(Number<3>{});
        default: return add(Number<4>{});
    }
}

void spike_linear(const Index* indices, const std::uint32_t* ends, std::size_t num_steps, const float* weights,
                  float* currents) {
    add_group<false>(indices, nullptr, ends, num_steps, weights, currents);
}

void count_linear(const Index* indices, const float* values, const std::uint32_t* ends, std::size_t num_steps,
                  const float* weights, float* currents) {
    add_group<true>(indices, values, ends, num_steps, weights, currents);
}

}  // namespace
}  // namespace spikformer::engine::SPIKFORMER_SET
