#include "layer.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <new>

namespace spikformer::engine {
namespace {

constexpr std::size_t quad = 4;  // an instruction takes four inputs of an output together
constexpr int digit_bits = 8;
constexpr float largest_integer = 0x7F7F7F;  // the largest number of three signed digits

// The smallest power of two that counts no weight of a column more than `largest_integer` times.
int exponent_for(float most) {
    int exponent = 0;
    std::frexp(most, &exponent);
    exponent -= static_cast<int>(num_digits) * digit_bits - 1;
    exponent += std::ldexp(most, -exponent) > largest_integer;
    return std::max(exponent, std::numeric_limits<float>::min_exponent - 1);  // smaller ones are no normal floats
}

// The packed weights once more, in integers.
void pack_digits(const Kernels& kernels, Layer& layer) {
    const std::size_t num_inputs = layer.num_inputs, tile = kernels.tile, panel = integer_outputs * word_bits;
    const std::size_t block_size = num_inputs / word_bits * num_digits * panel;
    layer.digits.reserve(layer.width() / integer_outputs * block_size);
    layer.scales.reserve(layer.width() * num_digits);
    for (std::size_t output = 0; output < layer.width(); ++output) {
        const std::size_t block = output / integer_outputs, column = output % integer_outputs;
        const float* weights = layer.weights.data() + output / tile * num_inputs * tile + output % tile;
        float most = 0;
        for (std::size_t k = 0; k < num_inputs; ++k) {
            most = std::max(most, std::fabs(weights[k * tile]));
        }
        const int exponent = exponent_for(most);
        float* scales = layer.scales.data() + block * num_digits * integer_outputs + column;
        for (std::size_t digit = 0; digit < num_digits; ++digit) {
            scales[digit * integer_outputs] = std::ldexp(1.0f, exponent + static_cast<int>(digit) * digit_bits);
        }
        std::int8_t* digits = layer.digits.data() + block * block_size + column * quad;
        for (std::size_t k = 0; k < num_inputs; ++k) {
            auto rest = static_cast<std::int32_t>(std::lrint(std::ldexp(weights[k * tile], -exponent)));
            std::int8_t* place = digits + k / word_bits * num_digits * panel +
                                 k % word_bits / quad * integer_outputs * quad + k % quad;
            for (std::size_t digit = 0; digit < num_digits; ++digit) {
                const auto low = static_cast<std::int8_t>(rest & 0xFF);
                place[digit * panel] = low;
                rest = (rest - low) / (1 << digit_bits);
            }
        }
    }
}

// Zeros for the weights of `num_outputs`, and their bias. Outputs that pad the last word get neither weight nor bias:
// they stay at rest, below threshold.
Layer empty_layer(const Kernels& kernels, const float* bias, std::size_t num_inputs, std::size_t num_outputs) {
    Layer layer;
    layer.num_inputs = num_inputs;
    layer.num_outputs = num_outputs;
    layer.words = divide_up(num_outputs, word_bits);
    layer.num_tiles = layer.width() / kernels.tile;
    if (num_inputs > 0 && layer.width() > std::numeric_limits<std::size_t>::max() / sizeof(float) / num_inputs) {
        throw std::bad_alloc();  // padding may multiply what a file holds, beyond 32 bits
    }
    const std::size_t size = layer.width() * num_inputs;
    std::fill_n(layer.weights.reserve(size), size, 0.0f);
    std::fill_n(layer.bias.reserve(layer.width()), layer.width(), 0.0f);
    std::copy_n(bias, num_outputs, layer.bias.data());
    return layer;
}

}  // namespace

Layer pack_layer(const Kernels& kernels, const float* weights, const float* bias, std::size_t num_outputs,
                 std::size_t neighbours, std::size_t channels, std::size_t padded_channels) {
    Layer layer = empty_layer(kernels, bias, neighbours * padded_channels, num_outputs);
    for (std::size_t output = 0; output < num_outputs; ++output) {
        const std::size_t tile = output / kernels.tile * kernels.tile;  // its first output
        float* column = layer.weights.data() + tile * layer.num_inputs + output % kernels.tile;
        const float* row = weights + output * neighbours * channels;
        for (std::size_t n = 0; n < neighbours; ++n) {
            for (std::size_t c = 0; c < channels; ++c) {
                column[(n * padded_channels + c) * kernels.tile] = row[n * channels + c];
            }
        }
    }
    if (kernels.integers && padded_channels % word_bits == 0) {
        pack_digits(kernels, layer);
    }
    return layer;
}

Layer pack_depthwise(const Kernels& kernels, const float* weights, const float* bias, std::size_t places,
                     std::size_t channels) {
    Layer layer = empty_layer(kernels, bias, places, channels);
    for (std::size_t place = 0; place < places; ++place) {
        for (std::size_t first = 0; first < channels; first += kernels.tile) {
            std::copy_n(weights + place * channels + first, std::min(kernels.tile, channels - first),
                        layer.weights.data() + (first / kernels.tile * places + place) * kernels.tile);
        }
    }
    return layer;
}

}  // namespace spikformer::engine
