// Comparisons of the kernels that list events and multiply: a part of compare_sets.cpp.
#pragma once

#include "comparison.hpp"
#include "draws.hpp"
#include "core/layer.hpp"

namespace spikformer::engine {

constexpr std::size_t num_outputs = 80;  // more than a word: several tiles of every set, the last ones padded

struct List {
    Output<Index> indices;
    Output<float> values;  // of counts alone
    Output<std::uint32_t> ends{num_patterns}, scratch;
    std::size_t num_values = 0;

    List(std::size_t inputs, std::size_t most_values) : indices(inputs), values(most_values), scratch(inputs) {}

    Bytes bytes() const {
        const std::size_t events = ends.data()[num_patterns - 1];
        return Bytes().add(indices, events).add(values, num_values).add(ends).add(scratch, 0);
    }
};

inline List list_events(const Kernels& kernels, const Word* spikes, std::size_t words, std::size_t steps) {
    List list(words * word_bits, 0);
    kernels.list_events(spikes, words, steps, list.indices.data(), list.ends.data(), list.scratch.data());
    return list;
}

inline List list_counts(const Kernels& kernels, const std::uint8_t* counts, std::size_t size, std::size_t steps) {
    List list(size, steps * size + 1);
    list.num_values = kernels.list_counts(counts, size, steps, list.indices.data(), list.values.data(),
                                          list.ends.data(), list.scratch.data());
    return list;
}

// A row of nine places without its first ones, as at the border of a map.
inline void compare_merge_events(Comparison& compare, Draws& draws, std::size_t words, std::size_t steps, double density) {
    const std::size_t part_inputs = words * word_bits;
    for (const std::size_t num_parts : {1, 4, 6, 9}) {
        std::vector<List> lists;
        std::vector<PartOfRow> parts;
        for (std::size_t p = 0; p < num_parts; ++p) {
            const std::vector<Word> spikes = draws.spikes(steps, part_inputs, density);
            lists.push_back(list_events(compare.scalar(), spikes.data(), words, steps));
        }
        for (std::size_t p = 0; p < num_parts; ++p) {
            parts.push_back({lists[p].indices.data(), lists[p].ends.data(),
                             static_cast<Index>((9 - num_parts + p) * part_inputs)});
        }
        compare("merge_events", [&](const Kernels& kernels) {
            List merged(num_parts * part_inputs + merge_margin, 0);
            kernels.merge_events(parts.data(), num_parts, merged.indices.data(), merged.ends.data());
            return merged.bytes();
        }, "parts", num_parts, "words", words, "steps", steps, "density", density);
    }
}

// `multiply` writes rows of one tile; tiles differ between sets, so all rows of the layer are put together.
template <typename Multiply>
Bytes multiply_tiles(const Kernels& kernels, const std::vector<float>& weights, std::size_t num_inputs,
                     std::size_t rows, const Multiply& multiply) {
    const std::vector<float> bias(num_outputs);
    const Layer layer = pack_layer(kernels, weights.data(), bias.data(), num_outputs, 1, num_inputs, num_inputs);
    Output<float> currents(rows * layer.width());
    Output<float> sums(rows * kernels.tile);
    for (std::size_t tile = 0; tile < layer.num_tiles; ++tile) {
        multiply(layer.weights.data() + tile * num_inputs * kernels.tile, sums.data());
        for (std::size_t row = 0; row < rows; ++row) {
            std::copy_n(sums.data() + row * kernels.tile, kernels.tile,
                        currents.data() + row * layer.width() + tile * kernels.tile);
        }
    }
    return Bytes().add(currents).add(sums, 0);
}

// The lists for the products are those of the scalar set: a difference is told of the kernel that makes it.
inline void compare_events(Comparison& compare, Draws& draws, std::size_t words, std::size_t steps, double density) {
    const std::size_t inputs = words * word_bits;
    const auto describe = [&](const char* kernel, const auto& compute) {
        compare(kernel, compute, "words", words, "steps", steps, "density", density);
    };
    const std::vector<Word> spikes = draws.spikes(steps, inputs, density);
    const std::vector<std::uint8_t> counts = draws.counts(steps * inputs, density);
    const std::vector<float> weights = draws.floats(num_outputs * inputs);
    describe("list_events", [&](const Kernels& kernels) {
        return list_events(kernels, spikes.data(), words, steps).bytes();
    });
    describe("list_counts", [&](const Kernels& kernels) {
        return list_counts(kernels, counts.data(), inputs, steps).bytes();
    });
    const List events = list_events(compare.scalar(), spikes.data(), words, steps);
    const List counted = list_counts(compare.scalar(), counts.data(), inputs, steps);
    describe("spike_linear", [&](const Kernels& kernels) {
        return multiply_tiles(kernels, weights, inputs, steps, [&](const float* tile, float* sums) {
            kernels.spike_linear(events.indices.data(), events.ends.data(), steps, tile, sums);
        });
    });
    describe("count_linear", [&](const Kernels& kernels) {
        return multiply_tiles(kernels, weights, inputs, steps, [&](const float* tile, float* sums) {
            kernels.count_linear(counted.indices.data(), counted.values.data(), counted.ends.data(), steps, tile, sums);
        });
    });
}

inline void compare_dense(Comparison& compare, Draws& draws, std::size_t rows, std::size_t num_inputs, double density) {
    const std::vector<float> inputs = draws.floats(rows * num_inputs, density);
    const std::vector<float> weights = draws.floats(num_outputs * num_inputs);
    compare("dense_linear", [&](const Kernels& kernels) {
        return multiply_tiles(kernels, weights, num_inputs, rows, [&](const float* tile, float* sums) {
            kernels.dense_linear(inputs.data(), rows, num_inputs, tile, sums);
        });
    }, "rows", rows, "inputs", num_inputs, "density", density);
}

}  // namespace spikformer::engine
