// How much there is of spikes and counts. Residual streams: spikes added to small integers, or floats to floats. And
// spikes and counts as floats, for the dense path.
#pragma once

#include "isa/simd.hpp"

namespace spikformer::engine::SPIKFORMER_SET {
namespace {

std::size_t count_spikes(const Word* spikes, std::size_t words) {
    std::size_t count = 0;
    for (std::size_t w = 0; w < words; ++w) {
        count += static_cast<std::size_t>(__builtin_popcountll(spikes[w]));
    }
    return count;
}

std::size_t count_active(const std::uint8_t* counts, std::size_t size) {
    std::size_t active = 0, i = 0;
    for (; i + word_bits <= size; i += word_bits) {
        active += count_active_word(counts + i);
    }
    for (; i < size; ++i) {
        active += counts[i] != 0;
    }
    return active;
}

void add_spikes(const Word* spikes, std::size_t words, std::uint8_t* counts) {
    for (std::size_t w = 0; w < words; ++w) {
        add_word(spikes[w], counts + w * word_bits);
    }
}

void add_floats(const float* a, const float* b, std::size_t size, float* sum) {
    for (std::size_t i = 0; i < size; i += lanes) {
        store(sum + i, load(a + i) + load(b + i));
    }
}

void expand_spikes(const Word* spikes, std::size_t words, float* values) {
    for (std::size_t w = 0; w < words; ++w) {
        for (std::size_t first = 0; first < word_bits; first += lanes) {
            const std::uint32_t bits = static_cast<std::uint32_t>(spikes[w] >> first);
            store(values + w * word_bits + first, choose(bits, broadcast(1.0f), Floats{}));
        }
    }
}

void expand_counts(const std::uint8_t* counts, std::size_t size, float* values) {
    for (std::size_t i = 0; i < size; ++i) {
        values[i] = counts[i];
    }
}

}  // namespace
}  // namespace spikformer::engine::SPIKFORMER_SET
