// Streams of floats: sums and max-pools, vector by vector.
#pragma once

#include "isa/simd.hpp"

namespace spikformer::engine::SPIKFORMER_SET {
namespace {

void add_floats(const float* a, const float* b, std::size_t size, float* sum) {
    for (std::size_t i = 0; i < size; i += lanes) {
        store(sum + i, load(a + i) + load(b + i));
    }
}

// The pool of a stage: 3x3, stride 2, padding 1, for one row of outputs. Maps are [height][width][depth]. The window's own
// centre is always inside, so there is no border to invent.
void pool_floats_row(const float* map, std::size_t height, std::size_t width, std::size_t depth, std::size_t row,
                     float* pooled) {
    for (std::size_t x = 0; x < width / 2; ++x) {
        float* to = pooled + x * depth;
        std::memcpy(to, map + (2 * row * width + 2 * x) * depth, depth * sizeof *to);
        for (std::size_t y_in = row == 0 ? 0 : 2 * row - 1; y_in <= 2 * row + 1 && y_in < height; ++y_in) {
            for (std::size_t x_in = x == 0 ? 0 : 2 * x - 1; x_in <= 2 * x + 1 && x_in < width; ++x_in) {
                const float* from = map + (y_in * width + x_in) * depth;
                for (std::size_t d = 0; d < depth; d += lanes) {
                    const Floats most = load(to + d), other = load(from + d);
                    store(to + d, choose(at_least(other, most), other, most));
                }
            }
        }
    }
}

}  // namespace
}  // namespace spikformer::engine::SPIKFORMER_SET
