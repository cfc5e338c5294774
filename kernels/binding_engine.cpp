// The engine's side of the bridge: checks what Python hands over, releases the interpreter lock, calls kernels/engine.
#include <string>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>

#include "binding_checks.hpp"
#include "engine/network.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace spikformer::engine;
using namespace spikformer::binding;

namespace {

template <typename Scalar, std::size_t dimensions>
using Array = nb::ndarray<Scalar, nb::ndim<dimensions>, nb::c_contig, nb::device::cpu>;

// [outputs, neighbours, channels] and a bias, as a layer that reads `channels` inputs at each of 1 or 9 positions.
Layer layer_of(const Network& network, const std::string& name, const Array<const float, 3>& weights,
               const Array<const float, 1>& bias, const Neuron& neuron, std::size_t neighbours, std::size_t channels,
               bool padded = true) {
    require(weights.shape(0) > 0 && weights.shape(0) == bias.shape(0) && weights.shape(1) == neighbours &&
                channels > 0 && weights.shape(2) == channels,
            name + ": weights must be [outputs, " + std::to_string(neighbours) + ", " + std::to_string(channels) +
                "] with a bias for each output.");
    const std::size_t padded_channels = padded ? divide_up(channels, word_bits) * word_bits : channels;
    require(neighbours * padded_channels <= 65536, name + " has more than 65,536 inputs, which the engine cannot index.");
    return pack_layer(network.kernels, name, weights.data(), bias.data(), weights.shape(0), neighbours, channels,
                      padded_channels, dynamics_of(neuron));
}

void add_stage(Network& network, const std::string& name, const Array<const float, 3>& weights,
               const Array<const float, 1>& bias, const Neuron& neuron, bool pooled) {
    require(network.position.num_outputs == 0, "Stages come before the position embedding.");
    const bool first = network.stages.empty();
    const std::size_t channels = first ? weights.shape(2) : network.stages.back().num_outputs;
    Layer layer = layer_of(network, name, weights, bias, neuron, 9, channels, !first);
    if (first) {
        network.in_channels = channels;
    }
    network.stages.push_back(std::move(layer));
    network.pooled.push_back(pooled);
}

void set_position(Network& network, const std::string& name, const Array<const float, 3>& weights,
                  const Array<const float, 1>& bias, const Neuron& neuron) {
    require(!network.stages.empty() && network.blocks.empty(),
            "The position embedding comes after the stages and before the blocks.");
    const std::size_t channels = network.stages.back().num_outputs;
    require(weights.shape(0) == channels, name + " must have as many outputs as inputs.");
    network.position = layer_of(network, name, weights, bias, neuron, 9, channels);
}

void begin_block(Network& network, const std::string& name, std::size_t num_heads, float scale,
                 std::size_t query_key_pool, const Neuron& mixed, bool mixes) {
    const std::size_t dim = network.position.num_outputs;
    require(dim > 0, "The position embedding comes before the blocks.");
    require(num_heads > 0 && dim % num_heads == 0, name + ": heads must divide the embedding.");
    require(query_key_pool % 2 == 1, name + ": the pool along tokens must be odd.");
    require(network.blocks.size() < 126, "The engine counts residual sums in bytes: it takes at most 126 blocks.");
    Block block;
    block.name = name;
    block.num_heads = num_heads;
    block.scale = scale;
    block.query_key_pool = query_key_pool;
    block.mixed = dynamics_of(mixed);
    block.mixes = mixes;
    network.blocks.push_back(std::move(block));
}

void set_block_layer(Network& network, const std::string& part, const std::string& name,
                     const Array<const float, 3>& weights, const Array<const float, 1>& bias, const Neuron& neuron) {
    require(!network.blocks.empty(), "begin_block comes before its layers.");
    Block& block = network.blocks.back();
    const std::size_t dim = network.position.num_outputs;
    Layer* layer = part == "query"        ? &block.query
                   : part == "key"        ? &block.key
                   : part == "value"      ? &block.value
                   : part == "projection" ? &block.projection
                   : part == "hidden"     ? &block.hidden
                   : part == "output"     ? &block.output
                                          : nullptr;
    require(layer != nullptr, "A block has no part \"" + part + "\".");
    require(layer->num_outputs == 0, name + " is there already.");  // others may have been sized by it
    const std::size_t inputs = part == "output" ? block.hidden.num_outputs : dim;
    require(inputs > 0, "The hidden layer comes before the output.");
    require(part == "hidden" || weights.shape(0) == dim, name + " must have " + std::to_string(dim) + " outputs.");
    *layer = layer_of(network, name, weights, bias, neuron, 1, inputs);
}

void set_head(Network& network, const Array<const float, 2>& weights, const Array<const float, 1>& bias) {
    require(weights.shape(0) > 0 && weights.shape(0) == bias.shape(0) &&
                weights.shape(1) == network.position.num_outputs,
            "The head must be [classes, embedding] with a bias for each class.");
    network.head.num_classes = weights.shape(0);
    network.head.weights.assign(weights.data(), weights.data() + weights.size());
    network.head.bias.assign(bias.data(), bias.data() + bias.size());
}

void check_complete(const Network& network) {
    bool complete = !network.stages.empty() && network.position.num_outputs > 0 && network.head.num_classes > 0;
    for (const Block& block : network.blocks) {
        for (const Layer* layer : {&block.value, &block.projection, &block.hidden, &block.output}) {
            complete = complete && layer->num_outputs > 0;
        }
        complete = complete && (!block.mixes || (block.query.num_outputs > 0 && block.key.num_outputs > 0));
    }
    require(complete, "The network is not complete: stages, position, every part of every block and the head are needed.");
}

// x is [B, C, H, W] with `repeats` steps, or [T, B, C, H, W].
void run(Network& network, const nb::ndarray<const float, nb::c_contig, nb::device::cpu>& x, std::size_t repeats,
         const std::optional<Array<const float, 1>>& state, const std::optional<Array<float, 1>>& next_state,
         const Array<float, 3>& logits) {
    check_complete(network);
    require(x.ndim() == 4 || x.ndim() == 5, "x must be [B, C, H, W] or [T, B, C, H, W].");
    const bool still = x.ndim() == 4;
    const std::size_t axis = still ? 0 : 1;
    const Input input{x.data(), still, x.shape(axis), still ? repeats : x.shape(0), x.shape(axis + 2), x.shape(axis + 3)};
    std::size_t patch = 1;
    for (const bool halved : network.pooled) {
        patch *= halved ? 2 : 1;
    }
    require(x.shape(axis + 1) == network.in_channels, "x must have " + std::to_string(network.in_channels) + " channels.");
    require(input.height > 0 && input.width > 0 && input.height % patch == 0 && input.width % patch == 0,
            "Height and width must be divisible by " + std::to_string(patch) + ".");
    require(input.time_steps > 0, "There must be at least one time step.");
    const std::size_t num_tokens = input.height / patch * (input.width / patch);
    for (const Block& block : network.blocks) {
        require(!block.mixes || num_tokens <= most_product / head_dim_of(block),
                "Attention is exact for at most " + std::to_string(most_product / head_dim_of(block)) +
                    " tokens, got " + std::to_string(num_tokens) + "; give it smaller images.");
    }
    require(logits.shape(0) == input.time_steps && logits.shape(1) == input.batch_size &&
                logits.shape(2) == network.head.num_classes,
            "logits must be [T, B, K].");
    const std::size_t voltages = input.batch_size * network.state_size(input.height, input.width);
    require((!state || state->shape(0) == voltages) && (!next_state || next_state->shape(0) == voltages),
            "The state must hold " + std::to_string(voltages) + " voltages.");
    const float* before = state ? state->data() : nullptr;
    float* after = next_state ? next_state->data() : nullptr;
    const nb::gil_scoped_release unlocked;
    network.run(input, before, after, logits.data());
}

nb::list reports(Network& network) {
    const std::lock_guard<std::mutex> lock(network.running);
    nb::list rows;
    for (const LayerReport& report : network.reports) {
        nb::dict row;
        row["name"] = report.name;
        row["list_seconds"] = report.list_seconds;
        row["product_seconds"] = report.product_seconds;
        row["additions"] = report.additions;
        row["inputs"] = report.inputs;
        row["dense_samples"] = report.dense_samples;
        row["samples"] = report.samples;
        rows.append(row);
    }
    return rows;
}

// name, channels, and the packed spikes [B, positions, T, words] of every layer in the last call.
nb::list recorded(Network& network, std::size_t batch_size, std::size_t time_steps) {
    const std::lock_guard<std::mutex> lock(network.running);
    nb::list rows;
    for (const RecordedSpikes& record : network.recorded) {
        require(record.spikes.size() == batch_size * record.positions * time_steps * record.words,
                "The last call had another batch size or number of steps.");
        const std::size_t shape[4] = {batch_size, record.positions, time_steps, record.words};
        nb::ndarray<const Word, nb::numpy> view(record.spikes.data(), 4, shape);
        rows.append(nb::make_tuple(record.name, record.channels, nb::cast(view, nb::rv_policy::copy)));
    }
    network.recorded.clear();
    return rows;
}

}  // namespace

void define_engine(nb::module_& module) {
    nb::class_<Network>(module, "Network")
        .def("__init__", [](Network* self, const std::string& instructions, std::size_t num_threads) {
                require(num_threads >= 1 && num_threads <= 1024, "num_threads must be between 1 and 1024.");
                new (self) Network(kernels_named(instructions), num_threads);
            }, "instructions"_a, "num_threads"_a)
        .def("add_stage", &add_stage, "name"_a, "weights"_a, "bias"_a, "neuron"_a, "pooled"_a)
        .def("set_position", &set_position, "name"_a, "weights"_a, "bias"_a, "neuron"_a)
        .def("begin_block", &begin_block, "name"_a, "num_heads"_a, "scale"_a, "query_key_pool"_a, "mixed"_a, "mixes"_a)
        .def("set_block_layer", &set_block_layer, "part"_a, "name"_a, "weights"_a, "bias"_a, "neuron"_a)
        .def("set_head", &set_head, "weights"_a, "bias"_a)
        .def("state_size", &Network::state_size, "height"_a, "width"_a)
        .def("run", &run, "x"_a.noconvert(), "repeats"_a, "state"_a.noconvert().none(), "next_state"_a.noconvert().none(),
             "logits"_a.noconvert())
        .def("reports", &reports)
        .def("recorded", &recorded, "batch_size"_a, "time_steps"_a)
        .def_prop_ro("instructions", [](const Network& network) { return network.kernels.name; })
        .def_prop_ro("num_threads", [](const Network& network) { return network.threads.count(); })
        .def_prop_ro("buffer_bytes", &Network::buffer_bytes)
        .def_rw("crossover", &Network::crossover)
        .def_rw("recording", &Network::recording)
        .def_prop_rw("way", [](const Network& network) { return static_cast<int>(network.way); },
                     [](Network& network, int way) { network.way = static_cast<Way>(way); });
}
