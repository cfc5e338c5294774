// Builds a network part by part, in the order it runs, and checks every size on the way. Knows nothing of Python.
#pragma once

#include <stdexcept>
#include <string>

#include "network.hpp"

namespace spikformer::engine {

inline void require(bool holds, const std::string& message) {
    if (!holds) {
        throw std::invalid_argument(message);
    }
}

// values [outputs][neighbours][channels] and bias [num_biases].
struct Weights {
    const float* values;
    std::size_t outputs, neighbours, channels;
    const float* bias;
    std::size_t num_biases;
};

constexpr std::size_t most_stages = 32;
constexpr std::size_t most_blocks = 126;
static_assert(2 + 2 * most_blocks <= 255, "the residual stream adds up spikes in bytes: two of the stem, two a block");

void check_dynamics(const Dynamics& dynamics);

void add_stage(Network& network, const std::string& name, const Weights& weights, const Dynamics& dynamics, bool pooled);
void set_position(Network& network, const std::string& name, const Weights& weights, const Dynamics& dynamics);

// Its layers are those of set_block_layer: query and key (if it mixes), value, projection, hidden, output.
void begin_block(Network& network, const std::string& name, std::size_t num_heads, float scale,
                 std::size_t query_key_pool, const Dynamics& mixed, bool mixes);
void set_block_layer(Network& network, const std::string& part, const std::string& name, const Weights& weights,
                     const Dynamics& dynamics);

// weights [classes][embedding]; neighbours are 1.
void set_head(Network& network, const Weights& weights);

// Whether the network is complete and can run on an input of so many channels. What would need more elements than
// memory can have is std::bad_alloc: sizes after this do not overflow.
void check_call(const Network& network, const Input& input, std::size_t channels);

}  // namespace spikformer::engine
