// Where heads begin and end among the bits of their channels.
#pragma once

#include <vector>

#include "layout.hpp"

namespace spikformer::engine {

// The channels that begin and those that end a head, one bit each; `firsts` also has the padding of the last word.
struct HeadBounds {
    std::vector<Word> firsts, lasts;
};

inline HeadBounds head_bounds(std::size_t channels, std::size_t num_heads) {
    const std::size_t words = divide_up(channels, word_bits), head_dim = channels / num_heads;
    HeadBounds bounds{std::vector<Word>(words), std::vector<Word>(words)};
    for (std::size_t channel = 0; channel < words * word_bits; ++channel) {
        const Word bit = Word{1} << channel % word_bits;
        bounds.firsts[channel / word_bits] |= channel >= channels || channel % head_dim == 0 ? bit : 0;
        bounds.lasts[channel / word_bits] |= channel < channels && (channel + 1) % head_dim == 0 ? bit : 0;
    }
    return bounds;
}

}  // namespace spikformer::engine
