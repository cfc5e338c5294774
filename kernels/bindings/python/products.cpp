// The kernels that multiply, each on its own: by events or densely, tile by tile, all rows of each. (The engine takes a
// few tiles at once: core/products.cpp.)
#include <algorithm>
#include <type_traits>
#include <vector>

#include "checks.hpp"
#include "core/layer.hpp"
#include "core/integer_scope.hpp"
#include "core/window.hpp"

using namespace nanobind::literals;
using namespace spikformer::engine;
using namespace spikformer::binding;

namespace {

constexpr std::size_t rows_together = 64;  // their currents stay in the first-level cache

Layer pack(const Kernels& kernels, const Given<float>& weights, const Given<float>& bias) {
    check("weights", weights, {"outputs", "neighbours", "channels"});
    check("bias", bias, {weights.shape(0)});
    require(weights.size() > 0, "A layer needs at least one output, one neighbour and one channel.");
    const std::size_t neighbours = weights.shape(1), channels = weights.shape(2);
    const std::size_t padded_channels = divide_up(channels, word_bits) * word_bits;
    require(neighbours * padded_channels <= most_inputs,
            "A layer has at most " + std::to_string(most_inputs) + " inputs, its channels padded to whole words, got " +
                std::to_string(neighbours * padded_channels) + ".");
    const nb::gil_scoped_release unlocked;
    return pack_layer(kernels, weights.data(), bias.data(), weights.shape(0), neighbours, channels, padded_channels);
}

void check_layer(const Kernels& kernels, const Layer& layer) {
    require(layer.num_tiles * kernels.tile == layer.width(),
            "The layer was packed in tiles of " + std::to_string(layer.width() / layer.num_tiles) +
                ", but these kernels read tiles of " + std::to_string(kernels.tile) +
                "; pack it with the same instruction set.");
}

// The events of rows, step group by step group; `starts` and `value_starts` are where each list begins.
struct ListedRows {
    std::vector<Index> indices;
    std::vector<float> values;  // of counts alone
    std::vector<std::size_t> starts, value_starts;
    std::vector<std::uint32_t> ends;  // [lists][num_patterns]
};

// currents [rows][T][width] of rows of spikes or counts: first all the lists, then tile by tile, so that a tile's weights
// stay in the cache for all rows.
template <typename Element>
void multiply(const Kernels& kernels, const Layer& layer, const Element* inputs, std::size_t rows,
              std::size_t time_steps, float* currents) {
    constexpr bool counted = std::is_same_v<Element, std::uint8_t>;
    const std::size_t step_size = counted ? layer.num_inputs : layer.num_inputs / word_bits;
    const auto for_each_group = [&](const auto& work) {
        for (std::size_t row = 0; row < rows; ++row) {
            for (std::size_t step = 0; step < time_steps; step += group_steps) {
                work(row * time_steps + step, std::min(group_steps, time_steps - step));
            }
        }
    };
    ListedRows lists;
    std::vector<Index> indices(layer.num_inputs);
    std::vector<float> values(group_steps * layer.num_inputs + value_margin);
    std::vector<std::uint32_t> scratch(layer.num_inputs);
    for_each_group([&](std::size_t first, std::size_t steps) {
        const Element* group = inputs + first * step_size;
        std::uint32_t ends[num_patterns];
        lists.value_starts.push_back(lists.values.size());
        if constexpr (counted) {
            const std::size_t additions = kernels.list_counts(group, step_size, steps, indices.data(), values.data(),
                                                              ends, scratch.data());
            lists.values.insert(lists.values.end(), values.data(), values.data() + additions);
        } else {
            kernels.list_events(group, step_size, steps, indices.data(), ends, scratch.data());
        }
        lists.starts.push_back(lists.indices.size());
        lists.indices.insert(lists.indices.end(), indices.data(), indices.data() + ends[num_patterns - 1]);
        lists.ends.insert(lists.ends.end(), ends, ends + num_patterns);
    });
    for (std::size_t tile = 0; tile < layer.num_tiles; ++tile) {
        const float* weights = layer.weights.data() + tile * layer.num_inputs * kernels.tile;
        std::size_t list = 0;
        for_each_group([&](std::size_t first, std::size_t steps) {
            float sums[group_steps * widest_tile];
            const Index* events = lists.indices.data() + lists.starts[list];
            const std::uint32_t* ends = lists.ends.data() + list * num_patterns;
            if constexpr (counted) {
                kernels.count_linear(events, lists.values.data() + lists.value_starts[list], ends, steps, weights, sums);
            } else {
                kernels.spike_linear(events, ends, steps, weights, sums);
            }
            for (std::size_t t = 0; t < steps; ++t) {
                std::copy_n(sums + t * kernels.tile, kernels.tile,
                            currents + (first + t) * layer.width() + tile * kernels.tile);
            }
            ++list;
        });
    }
}

template <typename Element>
Result<float> event_linear(const char* name, const Kernels& kernels, const Layer& layer, const Given<Element>& inputs,
                           std::size_t step_size) {
    check_layer(kernels, layer);
    check(name, inputs, {"rows", "T", step_size});
    const std::size_t rows = inputs.shape(0), time_steps = inputs.shape(1);
    Result<float> currents = make_result<float>({rows, time_steps, layer.width()});
    if (inputs.size() > 0) {  // rows without a step may be many, and are nothing to do
        const nb::gil_scoped_release unlocked;
        multiply(kernels, layer, inputs.data(), rows, time_steps, currents.data());
    }
    return currents;
}

Result<float> spike_linear(const Kernels& kernels, const Layer& layer, const Given<Word>& spikes) {
    return event_linear("spikes", kernels, layer, spikes, layer.num_inputs / word_bits);
}

Result<float> count_linear(const Kernels& kernels, const Layer& layer, const Given<std::uint8_t>& counts) {
    return event_linear("counts", kernels, layer, counts, layer.num_inputs);
}

// currents [H, W, T, width] of a map of spikes [H, W, T, words] and weights [k, k, channels].
Result<float> depthwise_linear(const Kernels& kernels, const Given<Word>& map, const Given<float>& weights) {
    check("map", map, {"height", "width", "T", "words"});
    check("weights", weights, {"kernel", "kernel", "channels"});
    const std::size_t time_steps = map.shape(2), words = map.shape(3), kernel = weights.shape(0);
    require(kernel == weights.shape(1) && kernel % 2 == 1 && kernel <= most_kernel && weights.shape(2) > 0 &&
                divide_up(weights.shape(2), word_bits) == words,
            "weights must be [k, k, channels], k odd and at most " + std::to_string(most_kernel) + ", and fill " +
                std::to_string(words) + " words.");
    const std::vector<float> no_bias(weights.shape(2));
    const Layer layer = pack_depthwise(kernels, weights.data(), no_bias.data(), kernel * kernel, weights.shape(2));
    const Window window{map.shape(0), map.shape(1), kernel, 1};
    Result<float> currents = make_result<float>({window.height, window.width, time_steps, layer.width()});
    if (map.size() == 0) {
        return currents;
    }
    const nb::gil_scoped_release unlocked;
    for (std::size_t output = 0; output < window.outputs(); ++output) {
        SeenPlace seen[most_parts];
        std::size_t num_seen = 0;
        window.for_each_seen(output, [&](std::size_t place, std::size_t position) {
            seen[num_seen++] = {map.data() + position * time_steps * words, place};
        });
        for (std::size_t tile = 0; tile < layer.num_tiles; ++tile) {
            const std::size_t channel = tile * kernels.tile;
            for (std::size_t t = 0; t < time_steps; t += group_steps) {
                const std::size_t steps = std::min(group_steps, time_steps - t);
                float sums[group_steps * widest_tile];
                kernels.depthwise_linear(seen, num_seen, steps, words, t * words + channel / word_bits,
                                         channel % word_bits,
                                         layer.weights.data() + tile * window.places() * kernels.tile, sums);
                for (std::size_t step = 0; step < steps; ++step) {
                    std::copy_n(sums + step * kernels.tile, kernels.tile,
                                currents.data() + (output * time_steps + t + step) * layer.width() + channel);
                }
            }
        }
    }
    return currents;
}

Result<float> dense_linear(const Kernels& kernels, const Layer& layer, const Given<float>& inputs) {
    check_layer(kernels, layer);
    check("inputs", inputs, {"rows", layer.num_inputs});
    const std::size_t rows = inputs.shape(0);
    Result<float> currents = make_result<float>({rows, layer.width()});
    const nb::gil_scoped_release unlocked;
    float sums[rows_together * widest_tile];
    for (std::size_t tile = 0; tile < layer.num_tiles; ++tile) {
        const float* weights = layer.weights.data() + tile * layer.num_inputs * kernels.tile;
        for (std::size_t begin = 0; begin < rows; begin += rows_together) {
            const std::size_t count = std::min(rows_together, rows - begin);
            kernels.dense_linear(inputs.data() + begin * layer.num_inputs, count, layer.num_inputs, weights, sums);
            for (std::size_t row = 0; row < count; ++row) {
                std::copy_n(sums + row * kernels.tile, kernels.tile,
                            currents.data() + (begin + row) * layer.width() + tile * kernels.tile);
            }
        }
    }
    return currents;
}

// Rows of counts, or of spikes as bytes, in integers.
Result<float> integer_linear(const Kernels& kernels, const Layer& layer, const Given<std::uint8_t>& inputs) {
    check_integers(kernels);
    check_layer(kernels, layer);
    require(layer.digits.bytes() > 0,
            "The layer was packed without integers; pack it with the same instruction set.");
    check("inputs", inputs, {"rows", layer.num_inputs});
    const std::size_t rows = inputs.shape(0);
    Result<float> currents = make_result<float>({rows, layer.width()});
    const nb::gil_scoped_release unlocked;
    Buffer<std::uint8_t> block;
    block.reserve(rows_together * layer.num_inputs);
    float sums[rows_together * widest_tile];
    const IntegerScope scope(kernels.integers);
    for (std::size_t begin = 0; begin < rows; begin += rows_together) {
        const std::size_t count = std::min(rows_together, rows - begin);
        std::copy_n(inputs.data() + begin * layer.num_inputs, count * layer.num_inputs, block.data());
        for (std::size_t first = 0; first < layer.width(); first += kernels.tile) {
            kernels.integers->integer_linear(block.data(), count, layer.num_inputs,
                                 layer.digits.data() + first * layer.num_inputs * num_digits,
                                 layer.scales.data() + first * num_digits, kernels.tile, sums);
            for (std::size_t row = 0; row < count; ++row) {
                std::copy_n(sums + row * kernels.tile, kernels.tile,
                            currents.data() + (begin + row) * layer.width() + first);
            }
        }
    }
    return currents;
}

}  // namespace

void define_products(nb::module_& module, nb::class_<Kernels>& kernels) {
    nb::class_<Layer>(module, "PackedLayer")
        .def_ro("num_inputs", &Layer::num_inputs)
        .def_ro("num_outputs", &Layer::num_outputs)
        .def_ro("words", &Layer::words);
    kernels.def("pack", &pack, "weights"_a.noconvert(), "bias"_a.noconvert())
        .def("spike_linear", &spike_linear, "layer"_a, "spikes"_a.noconvert())
        .def("count_linear", &count_linear, "layer"_a, "counts"_a.noconvert())
        .def("depthwise_linear", &depthwise_linear, "map"_a.noconvert(), "weights"_a.noconvert())
        .def("dense_linear", &dense_linear, "layer"_a, "inputs"_a.noconvert())
        .def("integer_linear", &integer_linear, "layer"_a, "inputs"_a.noconvert());
}
