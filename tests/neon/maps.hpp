// Comparisons of the kernels that pool, filter, mask and add up maps and heads: a part of compare_sets.cpp.
#pragma once

#include "comparison.hpp"
#include "core/heads.hpp"
#include "core/window.hpp"
#include "draws.hpp"

namespace spikformer::engine {

// One kind of pool, row by row of its outputs. `map` is [height][width][depth].
template <typename Element, typename PoolRow>
void compare_pool(Comparison& compare, const char* name, const std::vector<Element>& map, const Window& window,
                  std::size_t depth, PoolRow pool_row, double density) {
    for (std::size_t row = 0; row < window.rows(); ++row) {
        compare(name, [&](const Kernels& kernels) {
            Output<Element> pooled(window.columns() * depth);
            const auto rows = pooled_rows<Element>(
                window, row, depth, [&](std::size_t y) { return map.data() + y * window.width * depth; });
            (kernels.*pool_row)(rows, pooled.data());
            return Bytes().add(pooled);
        }, "height", window.height, "width", window.width, "depth", depth, "kernel", window.kernel, "stride",
           window.stride, "row", row, "density", density);
    }
}

// `depth` in words.
inline void compare_pools(Comparison& compare, Draws& draws, std::size_t height, std::size_t width, std::size_t depth,
                          double density) {
    const std::size_t size = height * width, channels = depth * word_bits;
    const std::vector<Word> map = draws.spikes(size, channels, density);
    const std::vector<std::uint8_t> counts = draws.counts(size * (channels - 3), density);
    const std::vector<float> floats = draws.floats(size * channels, density);
    for (const std::size_t kernel : {2, 3}) {
        const Window window{height, width, kernel, 2};
        compare_pool(compare, "pool_map_row", map, window, depth, &Kernels::pool_map_row, density);
        compare_pool(compare, "pool_counts_row", counts, window, channels - 3, &Kernels::pool_counts_row, density);
        compare_pool(compare, "pool_floats_row", floats, window, channels, &Kernels::pool_floats_row, density);
    }
    compare_pool(compare, "pool_map_row", map, {height, width, 3, 1}, depth, &Kernels::pool_map_row, density);
    for (const std::size_t kernel : {1, 3, 5, 9}) {
        compare("pool_tokens", [&](const Kernels& kernels) {
            Output<Word> pooled(map.size());
            kernels.pool_tokens(map.data(), size, depth, kernel, pooled.data());
            return Bytes().add(pooled);
        }, "tokens", size, "depth", depth, "kernel", kernel, "density", density);
    }
}

inline void compare_heads(Comparison& compare, Draws& draws, std::size_t num_heads, std::size_t head_dim,
                          double density) {
    constexpr std::size_t num_tokens = 5, steps = 2;
    const std::size_t channels = num_heads * head_dim, words = divide_up(channels, word_bits);
    const std::vector<Word> spikes = draws.spikes(num_tokens * steps, channels, density);
    const std::vector<Word> mask = draws.spikes(num_tokens * steps, channels, 0.5);
    const std::vector<Word> heads = draws.spikes(1, num_heads, density);
    const HeadBounds bounds = head_bounds(channels, num_heads);
    const auto describe = [&](const char* kernel, const auto& compute) {
        compare(kernel, compute, "heads", num_heads, "head_dim", head_dim, "density", density);
    };
    describe("dilate_heads", [&](const Kernels& kernels) {
        Output<Word> dilated(spikes.size());
        kernels.dilate_heads(spikes.data(), num_tokens, steps, words, bounds.firsts.data(), bounds.lasts.data(),
                             dilated.data());
        return Bytes().add(dilated);
    });
    for (const Word flip : {Word{0}, ~Word{0}}) {
        describe("and_spikes", [&](const Kernels& kernels) {
            Output<Word> masked(spikes.size());
            kernels.and_spikes(spikes.data(), mask.data(), spikes.size(), flip, masked.data());
            return Bytes().add(masked);
        });
    }
    describe("spread_heads", [&](const Kernels& kernels) {
        Output<Word> spread(words);
        kernels.spread_heads(heads.data(), num_heads, head_dim, spread.data());
        return Bytes().add(spread);
    });
    describe("sum_heads", [&](const Kernels& kernels) {
        Output<float> sums(num_heads);
        kernels.sum_heads(spikes.data(), num_heads, head_dim, sums.data());
        return Bytes().add(sums);
    });
}

inline void compare_sum_spikes(Comparison& compare, Draws& draws, std::size_t num_tokens, std::size_t words,
                               double density) {
    // Of two steps, one is read.
    const std::vector<Word> spikes = draws.spikes(2 * num_tokens, words * word_bits, density);
    compare("sum_spikes", [&](const Kernels& kernels) {
        Output<std::int32_t> totals(words * word_bits);
        kernels.sum_spikes(spikes.data(), num_tokens, 2 * words, words, totals.data());
        return Bytes().add(totals);
    }, "tokens", num_tokens, "words", words, "density", density);
}

}  // namespace spikformer::engine
