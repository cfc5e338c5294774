// Depthwise convolutions of spikes: each neighbour adds its weights where it fires, one after another, in registers.
#pragma once

#include "isa/simd.hpp"

namespace spikformer::engine::SPIKFORMER_SET {
namespace {

template <std::size_t steps>
inline void add_places(const SeenPlace* places, std::size_t num_places, std::size_t step_words, std::size_t word,
                       std::size_t shift, const float* weights, float* currents) {
    Floats sums[steps][tile_vectors];
    each<steps>([&](auto t) { each<tile_vectors>([&](auto v) { sums[t.value][v.value] = Floats{}; }); });
    for (std::size_t p = 0; p < num_places; ++p) {
        Floats weight[tile_vectors];
        each<tile_vectors>(
            [&](auto v) { weight[v.value] = load(weights + places[p].place * tile + v.value * lanes); });
        each<steps>([&](auto t) {
            const Word bits = places[p].spikes[t.value * step_words + word] >> shift;
            each<tile_vectors>([&](auto v) {
                const auto fires = static_cast<std::uint32_t>(bits >> (v.value * lanes));
                sums[t.value][v.value] += choose(fires, weight[v.value], Floats{});
            });
        });
    }
    each<steps>([&](auto t) {
        each<tile_vectors>(
            [&](auto v) { store(currents + t.value * tile + v.value * lanes, sums[t.value][v.value]); });
    });
}

void depthwise_linear(const SeenPlace* places, std::size_t num_places, std::size_t num_steps, std::size_t step_words,
                      std::size_t word, std::size_t shift, const float* weights, float* currents) {
    switch (num_steps) {
        case 1: return add_places<1>(places, num_places, step_words, word, shift, weights, currents);
        case 2: return add_places<2>(places, num_places, step_words, word, shift, weights, currents);
        case 3: return add_places<3>(places, num_places, step_words, word, shift, weights, currents);
        default: return add_places<4>(places, num_places, step_words, word, shift, weights, currents);
    }
}

}  // namespace
}  // namespace spikformer::engine::SPIKFORMER_SET
