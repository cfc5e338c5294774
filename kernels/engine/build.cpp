#include "build.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <new>
#include <utility>

namespace spikformer::engine {
namespace {

constexpr std::size_t most_tokens = std::numeric_limits<std::int32_t>::max() / 255;  // whose counts are added up
constexpr double most_elements = 1125899906842624;                                   // 2^50: of all samples, in one layer

bool all_finite(const float* values, std::size_t size) {
    return std::all_of(values, values + size, [](float value) { return std::isfinite(value); });
}

void check_weights(const std::string& name, const Weights& weights) {
    require(all_finite(weights.values, weights.outputs * weights.neighbours * weights.channels) &&
                all_finite(weights.bias, weights.num_biases),
            name + ": weights and bias must be finite.");
}

// A layer that reads `channels` inputs at each of 1 or 9 positions.
Layer layer_of(const Network& network, const std::string& name, const Weights& weights, const Dynamics& dynamics,
               std::size_t neighbours, std::size_t channels, bool padded = true) {
    require(weights.outputs > 0 && weights.outputs == weights.num_biases && weights.neighbours == neighbours &&
                channels > 0 && weights.channels == channels,
            name + ": weights must be [outputs, " + std::to_string(neighbours) + ", " + std::to_string(channels) +
                "] with a bias for each output.");
    const std::size_t padded_channels = padded ? divide_up(channels, word_bits) * word_bits : channels;
    require(padded_channels <= most_inputs / neighbours,
            name + " has more than " + std::to_string(most_inputs) + " inputs, which the engine cannot index.");
    check_weights(name, weights);
    check_dynamics(dynamics);
    return pack_layer(network.kernels, name, weights.values, weights.bias, weights.outputs, neighbours, channels,
                      padded_channels, dynamics);
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

// The most elements that one position of one step takes in any layer, as inputs or outputs.
std::size_t widest_row(const Network& network) {
    std::size_t widest = std::max(network.position.num_inputs, network.position.width());
    for (const Layer& stage : network.stages) {
        widest = std::max({widest, stage.num_inputs, stage.width()});
    }
    for (const Block& block : network.blocks) {
        widest = std::max(widest, block.hidden.width());
    }
    return widest;
}

}  // namespace

void check_dynamics(const Dynamics& dynamics) {
    require(dynamics.v_threshold > dynamics.v_reset,
            "v_threshold must be above v_reset: a neuron at rest would fire for ever.");
}

void add_stage(Network& network, const std::string& name, const Weights& weights, const Dynamics& dynamics,
               bool pooled) {
    require(network.position.num_outputs == 0, "Stages come before the position embedding.");
    require(network.stages.size() < most_stages,
            "The engine takes at most " + std::to_string(most_stages) + " stages.");
    const bool first = network.stages.empty();
    const std::size_t channels = first ? weights.channels : network.stages.back().num_outputs;
    Layer layer = layer_of(network, name, weights, dynamics, 9, channels, !first);
    network.stages.reserve(most_stages);  // both: what follows cannot fail between the two
    network.pooled.reserve(most_stages);
    if (first) {
        network.in_channels = channels;
    }
    network.stages.push_back(std::move(layer));
    network.pooled.push_back(pooled);
}

void set_position(Network& network, const std::string& name, const Weights& weights, const Dynamics& dynamics) {
    require(!network.stages.empty() && network.blocks.empty() && network.head.num_classes == 0,
            "The position embedding comes after the stages and before the blocks.");
    const std::size_t channels = network.stages.back().num_outputs;
    require(weights.outputs == channels, name + " must have as many outputs as inputs.");
    network.position = layer_of(network, name, weights, dynamics, 9, channels);
}

void begin_block(Network& network, const std::string& name, std::size_t num_heads, float scale,
                 std::size_t query_key_pool, const Dynamics& mixed, bool mixes) {
    const std::size_t dim = network.position.num_outputs;
    require(dim > 0, "The position embedding comes before the blocks.");
    require(num_heads > 0 && dim % num_heads == 0, name + ": heads must divide the embedding.");
    require(query_key_pool % 2 == 1, name + ": the pool along tokens must be odd.");
    require(network.blocks.size() < most_blocks,
            "The engine counts residual sums in bytes: it takes at most " + std::to_string(most_blocks) + " blocks.");
    check_dynamics(mixed);
    Block block;
    block.name = name;
    block.num_heads = num_heads;
    block.scale = scale;
    block.query_key_pool = query_key_pool;
    block.mixed = mixed;
    block.mixes = mixes;
    network.blocks.push_back(std::move(block));
}

void set_block_layer(Network& network, const std::string& part, const std::string& name, const Weights& weights,
                     const Dynamics& dynamics) {
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
    require(part == "hidden" || weights.outputs == dim, name + " must have " + std::to_string(dim) + " outputs.");
    *layer = layer_of(network, name, weights, dynamics, 1, inputs);
}

void set_head(Network& network, const Weights& weights) {
    require(weights.outputs > 0 && weights.outputs == weights.num_biases && weights.neighbours == 1 &&
                weights.channels > 0 && weights.channels == network.position.num_outputs,
            "The head must be [classes, embedding] with a bias for each class.");
    check_weights("head", weights);
    Head head;  // whole or not at all
    head.num_classes = weights.outputs;
    head.weights.assign(weights.values, weights.values + weights.outputs * weights.channels);
    head.bias.assign(weights.bias, weights.bias + weights.num_biases);
    network.head = std::move(head);
}

void check_call(const Network& network, const Input& input, std::size_t channels) {
    check_complete(network);
    std::size_t patch = 1;
    for (const bool halved : network.pooled) {
        patch *= halved ? 2 : 1;
    }
    require(channels == network.in_channels, "x must have " + std::to_string(network.in_channels) + " channels.");
    require(input.height > 0 && input.width > 0 && input.height % patch == 0 && input.width % patch == 0,
            "Height and width must be divisible by " + std::to_string(patch) + ".");
    require(input.time_steps > 0, "There must be at least one time step.");
    double elements = static_cast<double>(widest_row(network));
    for (const std::size_t length : {input.height, input.width, input.time_steps, input.batch_size}) {
        elements *= static_cast<double>(std::max<std::size_t>(length, 1));
    }
    if (elements > most_elements) {
        throw std::bad_alloc();
    }
    const std::size_t num_tokens = input.height / patch * (input.width / patch);
    require(num_tokens <= most_tokens, "The readout is exact for at most " + std::to_string(most_tokens) +
                                           " tokens, got " + std::to_string(num_tokens) + "; give it smaller images.");
    for (const Block& block : network.blocks) {
        require(!block.mixes || num_tokens <= most_product / head_dim_of(block),
                "Attention is exact for at most " + std::to_string(most_product / head_dim_of(block)) +
                    " tokens, got " + std::to_string(num_tokens) + "; give it smaller images.");
    }
}

}  // namespace spikformer::engine
