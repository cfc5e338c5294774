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

// A row of some places of a window, without its first ones, as at the border of a map: of spikes, and of counts.
inline void compare_merge_events(Comparison& compare, Draws& draws, std::size_t words, std::size_t steps, double density,
                                 std::size_t kernel) {
    const std::size_t part_inputs = words * word_bits, places = kernel * kernel;
    for (const std::size_t num_parts : {std::size_t{1}, 2 * kernel - 2, 2 * kernel, places}) {
        std::vector<List> lists, counted;
        std::vector<PartOfRow> parts, counted_parts;
        for (std::size_t p = 0; p < num_parts; ++p) {
            const std::vector<Word> spikes = draws.spikes(steps, part_inputs, density);
            const std::vector<std::uint8_t> counts = draws.counts(steps * part_inputs, density);
            lists.push_back(list_events(compare.scalar(), spikes.data(), words, steps));
            counted.push_back(list_counts(compare.scalar(), counts.data(), part_inputs, steps));
        }
        for (std::size_t p = 0; p < num_parts; ++p) {
            const auto first = static_cast<Index>((places - num_parts + p) * part_inputs);
            parts.push_back({lists[p].indices.data(), lists[p].ends.data(), first});
            counted_parts.push_back(
                {counted[p].indices.data(), counted[p].ends.data(), first, counted[p].values.data()});
        }
        const auto describe = [&](const char* name, const auto& compute) {
            compare(name, compute, "parts", num_parts, "words", words, "steps", steps, "density", density);
        };
        describe("merge_events", [&](const Kernels& kernels) {
            List merged(num_parts * part_inputs + merge_margin, 0);
            kernels.merge_events(parts.data(), num_parts, merged.indices.data(), merged.ends.data());
            return merged.bytes();
        });
        describe("merge_counts", [&](const Kernels& kernels) {
            List merged(num_parts * part_inputs + merge_margin, num_parts * steps * part_inputs + merge_margin);
            merged.num_values = kernels.merge_counts(counted_parts.data(), num_parts, merged.indices.data(),
                                                     merged.values.data(), merged.ends.data());
            return merged.bytes();
        });
    }
}

// All places of a window but the first, in every tile.
inline void compare_depthwise(Comparison& compare, Draws& draws, std::size_t kernel, std::size_t channels,
                              std::size_t steps, double density) {
    const std::size_t places = kernel * kernel, words = divide_up(channels, word_bits);
    const std::vector<Word> spikes = draws.spikes(places * steps, channels, density);
    const std::vector<float> weights = draws.floats(places * channels), bias(channels);
    compare("depthwise_linear", [&](const Kernels& kernels) {
        const Layer layer = pack_depthwise(kernels, weights.data(), bias.data(), places, channels);
        std::vector<SeenPlace> seen;
        for (std::size_t place = 1; place < places; ++place) {
            seen.push_back({spikes.data() + place * steps * words, place});
        }
        Output<float> currents(steps * layer.width());
        Output<float> sums(steps * kernels.tile);
        for (std::size_t tile = 0; tile < layer.num_tiles; ++tile) {
            const std::size_t channel = tile * kernels.tile;
            kernels.depthwise_linear(seen.data(), seen.size(), steps, words, channel / word_bits, channel % word_bits,
                                     layer.weights.data() + tile * places * kernels.tile, sums.data());
            for (std::size_t t = 0; t < steps; ++t) {
                std::copy_n(sums.data() + t * kernels.tile, kernels.tile, currents.data() + t * layer.width() + channel);
            }
        }
        return Bytes().add(currents).add(sums, 0);
    }, "kernel", kernel, "channels", channels, "steps", steps, "density", density);
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
            std::transform(sums.data() + row * kernels.tile, sums.data() + (row + 1) * kernels.tile,
                           currents.data() + row * layer.width() + tile * kernels.tile,
                           [](float sum) { return std::isnan(sum) ? NAN : sum; });  // whose bits are the machine's affair
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

// Sums that one rounding and two would round differently, near 0, near 1 and up to where they overflow.
inline void compare_hard_products(Comparison& compare, Draws& draws, std::size_t inputs, std::uint32_t most_count) {
    constexpr std::size_t steps = group_steps;
    for (const std::uint32_t lowest : {0, 1, 30, 110, 120, 200, 230}) {
        for (const std::uint32_t range : {1, 4, 24, 30, 60}) {
            const std::uint32_t highest = std::min(lowest + range, std::uint32_t{254});
            const std::vector<float> weights = draws.hard_floats(num_outputs * inputs, lowest, highest);
            const std::vector<float> pixels = draws.hard_floats(steps * inputs, 127 - range / 2, 127 + range / 2);
            const std::vector<std::uint8_t> counts = draws.counts(steps * inputs, 0.7, most_count);
            const List counted = list_counts(compare.scalar(), counts.data(), inputs, steps);
            const auto describe = [&](const char* kernel, const auto& compute) {
                compare(kernel, [&](const Kernels& kernels) {
                    return multiply_tiles(kernels, weights, inputs, steps, [&](const float* tile, float* sums) {
                        compute(kernels, tile, sums);
                    });
                }, "inputs", inputs, "counts to", most_count, "exponents from", lowest, "to", highest);
            };
            describe("count_linear", [&](const Kernels& kernels, const float* tile, float* sums) {
                kernels.count_linear(counted.indices.data(), counted.values.data(), counted.ends.data(), steps, tile,
                                     sums);
            });
            describe("dense_linear", [&](const Kernels& kernels, const float* tile, float* sums) {
                kernels.dense_linear(pixels.data(), steps, inputs, tile, sums);
            });
        }
    }
}

// term + factor * weight, where a double rounds the sum to a middle between two floats that it is not: by a term far below
// a product of three and five, by a product far below a term, and among numbers too small to be normal.
inline void compare_hardest_sums(Comparison& compare) {
    struct Sum {
        float term, factor, weight;
    };
    const Sum sums[] = {{0x1p-60f, 3, 0x1.000002p0f},         {0x1p-60f, 5, 0x1.000004p0f},
                        {0x1p24f, 65, 0x1.F81F82p-7f},        {0x1p30f, 65, 0x1.F81F82p-1f},
                        {0x1.000004p-127f, 0x1.000002p-75f, 0x1.FFFFFCp-76f}};
    constexpr std::size_t inputs = 16;
    for (const Sum& sum : sums) {
        std::vector<float> weights(num_outputs * inputs), pixels(inputs);
        std::vector<std::uint8_t> counts(inputs);
        pixels[0] = counts[0] = counts[1] = 1;  // the second goes to another sum
        pixels[2] = sum.factor;
        counts[2] = static_cast<std::uint8_t>(sum.factor);
        for (std::size_t output = 0; output < num_outputs; ++output) {
            weights[output * inputs] = output % 2 ? -sum.term : sum.term;
            weights[output * inputs + 2] = output % 4 < 2 ? sum.weight : -sum.weight;
        }
        const List counted = list_counts(compare.scalar(), counts.data(), inputs, 1);
        compare("count_linear", [&](const Kernels& kernels) {
            return multiply_tiles(kernels, weights, inputs, 1, [&](const float* tile, float* currents) {
                kernels.count_linear(counted.indices.data(), counted.values.data(), counted.ends.data(), 1, tile,
                                     currents);
            });
        }, "term", sum.term, "factor", sum.factor, "weight", sum.weight);
        compare("dense_linear", [&](const Kernels& kernels) {
            return multiply_tiles(kernels, weights, inputs, 1, [&](const float* tile, float* currents) {
                kernels.dense_linear(pixels.data(), 1, inputs, tile, currents);
            });
        }, "term", sum.term, "factor", sum.factor, "weight", sum.weight);
    }
}

}  // namespace spikformer::engine
