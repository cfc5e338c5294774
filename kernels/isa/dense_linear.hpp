// The plain product, for pixels and for layers that fire so much that skipping silence no longer pays.
#pragma once

#include "isa/simd.hpp"

namespace spikformer::engine::SPIKFORMER_SET {
namespace {

template <std::size_t rows>
void dense_rows(const float* inputs, std::size_t num_inputs, const float* weights, float* currents) {
    for (std::size_t first = 0; first < tile_vectors; first += dense_columns) {
        Floats sums[rows][dense_columns];
        for (std::size_t r = 0; r < rows; ++r) {
            for (std::size_t c = 0; c < dense_columns; ++c) {
                sums[r][c] = Floats{};
            }
        }
        for (std::size_t k = 0; k < num_inputs; ++k) {
            Floats weight[dense_columns];
            for (std::size_t c = 0; c < dense_columns; ++c) {
                weight[c] = load(weights + k * tile + (first + c) * lanes);
            }
            for (std::size_t r = 0; r < rows; ++r) {
                const Floats input = broadcast(inputs[r * num_inputs + k]);
                for (std::size_t c = 0; c < dense_columns; ++c) {
                    sums[r][c] = multiply_add(input, weight[c], sums[r][c]);
                }
            }
        }
        for (std::size_t r = 0; r < rows; ++r) {
            for (std::size_t c = 0; c < dense_columns; ++c) {
                store(currents + r * tile + (first + c) * lanes, sums[r][c]);
            }
        }
    }
}

void dense_linear(const float* inputs, std::size_t rows, std::size_t num_inputs, const float* weights,
                  float* currents) {
    constexpr std::size_t block = 8;
    std::size_t r = 0;
    for (; r + block <= rows; r += block) {
        dense_rows<block>(inputs + r * num_inputs, num_inputs, weights, currents + r * tile);
    }
    for (; r < rows; ++r) {
        dense_rows<1>(inputs + r * num_inputs, num_inputs, weights, currents + r * tile);
    }
}

}  // namespace
}  // namespace spikformer::engine::SPIKFORMER_SET
