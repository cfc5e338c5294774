#include "layer.hpp"

#include <algorithm>
#include <utility>

namespace spikformer::engine {

Layer pack_layer(const Kernels& kernels, std::string name, const float* weights, const float* bias,
                 std::size_t num_outputs, std::size_t neighbours, std::size_t channels, std::size_t padded_channels,
                 const Dynamics& dynamics) {
    Layer layer;
    layer.name = std::move(name);
    layer.num_inputs = neighbours * padded_channels;
    layer.num_outputs = num_outputs;
    layer.words = divide_up(num_outputs, word_bits);
    layer.num_tiles = layer.width() / kernels.tile;
    layer.dynamics = dynamics;
    const std::size_t tile_size = layer.num_inputs * kernels.tile;
    float* packed = layer.weights.reserve(layer.num_tiles * tile_size);
    std::fill_n(packed, layer.num_tiles * tile_size, 0.0f);
    for (std::size_t output = 0; output < num_outputs; ++output) {
        float* column = packed + output / kernels.tile * tile_size + output % kernels.tile;
        const float* row = weights + output * neighbours * channels;
        for (std::size_t n = 0; n < neighbours; ++n) {
            for (std::size_t c = 0; c < channels; ++c) {
                column[(n * padded_channels + c) * kernels.tile] = row[n * channels + c];
            }
        }
    }
    // Outputs that pad the last word get neither weight nor bias: they stay at rest, below threshold.
    float* padded_bias = layer.bias.reserve(layer.width());
    std::fill_n(padded_bias, layer.width(), 0.0f);
    std::copy_n(bias, num_outputs, padded_bias);
    return layer;
}

}  // namespace spikformer::engine
