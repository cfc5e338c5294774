// Event-driven products: for every event, add its weights to the steps it fires at.
//
// A weight is loaded once for all the steps that need it, and what differs between patterns is known at compile time.
// The currents of all steps of a group stay in registers (AVX-512 has enough of them, the others spill some). Each
// current has two sums, which take the events of a pattern in turns, so that an addition need not wait for the one
// before it. The order of a sum, over patterns and then over inputs in ascending order, depends on the input alone:
// results are the same for every batch, thread count and vector width, and however many vectors are summed at a time.
#pragma once

#include "isa/simd.hpp"

namespace spikformer::engine::SPIKFORMER_SET {
namespace {

template <std::size_t steps>
struct Sums {
    Floats of[steps][event_columns];
};

constexpr std::size_t steps_below(std::size_t pattern, std::size_t step) {
    std::size_t count = 0;
    for (std::size_t t = 0; t < step; ++t) {
        count += pattern >> t & 1;
    }
    return count;
}

// Spikes are additions only; a count weighs each of its additions by a small integer.
struct Spikes {
    static constexpr bool counted = false;
};

struct Counts {
    static constexpr bool counted = true;
    static Floats add(float count, Floats weight, Floats sum) { return multiply_count(count, weight, sum); }
};

struct CountsOfLargeWeights {
    static constexpr bool counted = true;
    [[gnu::noinline]] static Floats add(float count, Floats weight, Floats sum) {  // rare: no copies of it
        return multiply_add(broadcast(count), weight, sum);
    }
};

template <typename Input, std::size_t pattern, std::size_t steps>
[[gnu::always_inline]] inline void add_event(Index event, const float* values, const float* weights, Sums<steps>& sums) {
    Floats weight[event_columns];  // before all else: GCC would load what it uses twice, twice
    each<event_columns>([&](auto v) { weight[v.value] = load(weights + event * tile + v.value * lanes); });
    each<steps>([&](auto t) {
        if constexpr (pattern >> t.value & 1) {
            Floats(&sum)[event_columns] = sums.of[t.value];
            if constexpr (Input::counted) {
                const float count = values[steps_below(pattern, t.value)];
                each<event_columns>([&](auto v) { sum[v.value] = Input::add(count, weight[v.value], sum[v.value]); });
            } else {
                each<event_columns>([&](auto v) { sum[v.value] += weight[v.value]; });
            }
        }
    });
}

template <typename Input, std::size_t pattern, std::size_t steps>
inline const float* add_pattern(const Index* event, const Index* end, const float* values, const float* weights,
                                Sums<steps>& even, Sums<steps>& odd) {
    constexpr std::size_t additions = Input::counted ? steps_below(pattern, steps) : 0;
    for (; end - event >= 2; event += 2, values += 2 * additions) {
        add_event<Input, pattern>(event[0], values, weights, even);
        add_event<Input, pattern>(event[1], values + additions, weights, odd);
    }
    if (event != end) {
        add_event<Input, pattern>(*event, values, weights, even);
        values += additions;
    }
    return values;
}

// `pattern` counts from 0 for the pattern 1: silence has no events.
template <typename Input, std::size_t steps, std::size_t... pattern>
inline void add_events(std::index_sequence<pattern...>, const Index* indices, const float* values,
                       const std::uint32_t* ends, const float* weights, float* currents) {
    Sums<steps> even, odd;
    each<steps>([&](auto t) {
        each<event_columns>([&](auto v) { even.of[t.value][v.value] = odd.of[t.value][v.value] = Floats{}; });
    });
    ((values = add_pattern<Input, pattern + 1>(indices + ends[pattern], indices + ends[pattern + 1], values, weights,
                                                 even, odd)),
     ...);
    each<steps>([&](auto t) {
        each<event_columns>([&](auto v) {
            store(currents + t.value * tile + v.value * lanes, even.of[t.value][v.value] + odd.of[t.value][v.value]);
        });
    });
}

template <typename Input>
inline void add_group(const Index* indices, const float* values, const std::uint32_t* ends, std::size_t num_steps,
                      const float* weights, float* currents) {
    const auto add = [&](auto steps) {
        for (std::size_t first = 0; first < tile; first += event_columns * lanes) {
            add_events<Input, steps.value>(std::make_index_sequence<(std::size_t{1} << steps.value) - 1>{}, indices,
                                           values, ends, weights + first, currents + first);
        }
    };
    switch (num_steps) {
        case 1: return add(Number<1>{});
        case 2: return add(Number<2>{});
        case 3: return add(Number<3>{});
        default: return add(Number<4>{});
    }
}

inline bool are_finite(const float* values, std::size_t size) {
    bool all = true;
    for (std::size_t i = 0; i < size; i += lanes) {
        const Floats x = load(values + i);
        all &= at_least(x - x, Floats{}) == (std::uint32_t{1} << lanes) - 1;  // of others, x - x is NaN
    }
    return all;
}

void spike_linear(const Index* indices, const std::uint32_t* ends, std::size_t num_steps, const float* weights,
                  float* currents) {
    add_group<Spikes>(indices, nullptr, ends, num_steps, weights, currents);
}

void count_linear(const Index* indices, const float* values, const std::uint32_t* ends, std::size_t num_steps,
                  const float* weights, float* currents) {
    add_group<Counts>(indices, values, ends, num_steps, weights, currents);
    if constexpr (can_overflow_early) {
        if (!are_finite(currents, num_steps * tile)) {
            add_group<CountsOfLargeWeights>(indices, values, ends, num_steps, weights, currents);
        }
    }
}

}  // namespace
}  // namespace spikformer::engine::SPIKFORMER_SET
