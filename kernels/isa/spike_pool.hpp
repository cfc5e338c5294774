// Max-pools of spikes: a spike anywhere in the window is a spike, so a pool is an OR of words.
#pragma once

#include "isa/simd.hpp"

namespace spikformer::engine::SPIKFORMER_SET {
namespace {

// The pool of a stage: 3x3, stride 2, padding 1, for one row of outputs. Maps are [height][width][depth] words.
void pool_map_row(const Word* map, std::size_t height, std::size_t width, std::size_t depth, std::size_t row,
                  Word* pooled) {
    std::memset(pooled, 0, width / 2 * depth * sizeof *pooled);
    for (std::size_t x = 0; x < width / 2; ++x) {
        for (std::size_t y_in = row == 0 ? 0 : 2 * row - 1; y_in <= 2 * row + 1 && y_in < height; ++y_in) {
            for (std::size_t x_in = x == 0 ? 0 : 2 * x - 1; x_in <= 2 * x + 1 && x_in < width; ++x_in) {
                const Word* from = map + (y_in * width + x_in) * depth;
                for (std::size_t d = 0; d < depth; ++d) {
                    pooled[x * depth + d] |= from[d];
                }
            }
        }
    }
}

// The pool along tokens that some models put on Q and K: `kernel` wide, stride 1, the number of tokens stays.
void pool_tokens(const Word* tokens, std::size_t num_tokens, std::size_t depth, std::size_t kernel, Word* pooled) {
    const std::size_t reach = kernel / 2;
    for (std::size_t n = 0; n < num_tokens; ++n) {
        Word* to = pooled + n * depth;
        std::memset(to, 0, depth * sizeof *to);
        for (std::size_t m = n < reach ? 0 : n - reach; m <= n + reach && m < num_tokens; ++m) {
            for (std::size_t d = 0; d < depth; ++d) {
                to[d] |= tokens[m * depth + d];
            }
        }
    }
}

}  // namespace
}  // namespace spikformer::engine::SPIKFORMER_SET
