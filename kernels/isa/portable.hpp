// Bits and bytes without vector instructions, for the sets that have no better ones. Included by a set's simd.hpp.
#pragma once

#ifndef SPIKFORMER_SET
#include "isa/scalar/simd.hpp"
#endif

#include "core/layout.hpp"

namespace spikformer::engine::SPIKFORMER_SET {
namespace {

// How many of 64 counts are not 0.
inline std::size_t count_active_word(const std::uint8_t* counts) {
    std::uint8_t active = 0;  // 64 at most: a byte is enough, and narrow lanes are many
    for (std::size_t i = 0; i < word_bits; ++i) {
        active = static_cast<std::uint8_t>(active + (counts[i] != 0));
    }
    return active;
}

// 64 spikes onto 64 counts, which stay at 255.
inline void add_word(Word spikes, std::uint8_t* counts) {
    for (std::size_t byte = 0; byte < 8; ++byte) {
        std::uint8_t* eight = counts + byte * 8;
        const std::uint8_t bits = static_cast<std::uint8_t>(spikes >> (8 * byte));
        for (std::size_t bit = 0; bit < 8; ++bit) {
            const std::uint8_t sum = static_cast<std::uint8_t>(eight[bit] + (bits >> bit & 1));
            eight[bit] = sum < eight[bit] ? 255 : sum;
        }
    }
}

// The events of 64 inputs, from `first` on, as pattern << 16 | index; returns how many.
template <std::size_t steps>
inline std::size_t gather_word(const Word (&at)[steps], std::uint32_t first, std::uint32_t* events) {
    Word any = 0;
    for (std::size_t t = 0; t < steps; ++t) {
        any |= at[t];
    }
    std::size_t count = 0;
    for (; any != 0; any &= any - 1) {
        const unsigned bit = static_cast<unsigned>(__builtin_ctzll(any));
        std::uint32_t pattern = 0;
        for (std::size_t t = 0; t < steps; ++t) {
            pattern |= static_cast<std::uint32_t>(at[t] >> bit & 1) << t;
        }
        events[count++] = pattern << 16 | (first + bit);
    }
    return count;
}

// The same of 16 counts, from `first` on, of rows `size` apart.
template <std::size_t steps>
inline std::size_t gather_sixteen_counts(const std::uint8_t* row, std::size_t size, std::size_t first,
                                         std::uint32_t* events) {
    std::size_t count = 0;
    for (std::size_t k = first; k < first + 16; ++k) {
        std::uint32_t pattern = 0;
        for (std::size_t t = 0; t < steps; ++t) {
            pattern |= static_cast<std::uint32_t>(row[t * size + k] != 0) << t;
        }
        events[count] = pattern << 16 | static_cast<std::uint32_t>(k);
        count += pattern != 0;
    }
    return count;
}

}  // namespace
}  // namespace spikformer::engine::SPIKFORMER_SET
