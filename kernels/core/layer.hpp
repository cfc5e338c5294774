// The weights of a product x W + b, laid out for the kernels.
#pragma once

#include "buffer.hpp"
#include "kernels.hpp"

namespace spikformer::engine {

struct Layer {
    std::size_t num_inputs = 0;  // rows of a tile: neighbours times padded channels
    std::size_t num_outputs = 0;
    std::size_t num_tiles = 0;
    std::size_t words = 0;  // of one step of the spikes that its neurons fire
    Buffer<float> weights;  // [tiles][num_inputs][tile]
    Buffer<float> bias;     // [tiles * tile]
    // The weights in integers, and what their digits count (layout.hpp); empty where the kernels do not multiply
    // those, or the inputs do not fill words, as pixels.
    Buffer<std::int8_t> digits;
    Buffer<float> scales;

    std::size_t width() const { return words * word_bits; }
    bool only_pads(std::size_t first_output) const { return first_output >= num_outputs; }  // fills up the last word
};

// `weights` is [num_outputs][neighbours][channels]; inputs are padded to `padded_channels` for each neighbour.
Layer pack_layer(const Kernels& kernels, const float* weights, const float* bias, std::size_t num_outputs,
                 std::size_t neighbours, std::size_t channels, std::size_t padded_channels);

// Of a depthwise convolution, `weights` is [places][channels]: rows of a tile are the places of its window.
Layer pack_depthwise(const Kernels& kernels, const float* weights, const float* bias, std::size_t places,
                     std::size_t channels);

}  // namespace spikformer::engine
