// Spikes that let others through, one for one or one for a head, and how many channels of a head fire.
#pragma once

#include "isa/simd.hpp"

namespace spikformer::engine::SPIKFORMER_SET {
namespace {

// `flip` is all ones where the mask is inverted, else 0.
void and_spikes(const Word* spikes, const Word* mask, std::size_t words, Word flip, Word* masked) {
    for (std::size_t w = 0; w < words; ++w) {
        masked[w] = spikes[w] & (mask[w] ^ flip);
    }
}

// take(word, bits) for the words of the bits from `begin` to `end`.
template <typename Take>
inline void for_each_part(std::size_t begin, std::size_t end, const Take& take) {
    while (begin < end) {
        const std::size_t shift = begin % word_bits;
        const std::size_t number = end - begin < word_bits - shift ? end - begin : word_bits - shift;
        take(begin / word_bits, (~Word{0} >> (word_bits - number)) << shift);
        begin += number;
    }
}

void spread_heads(const Word* heads, std::size_t num_heads, std::size_t head_dim, Word* spread) {
    std::memset(spread, 0, divide_up(num_heads * head_dim, word_bits) * sizeof *spread);
    for (std::size_t head = 0; head < num_heads; ++head) {
        if (heads[head / word_bits] >> head % word_bits & 1) {
            for_each_part(head * head_dim, (head + 1) * head_dim,
                          [&](std::size_t w, Word bits) { spread[w] |= bits; });
        }
    }
}

void sum_heads(const Word* spikes, std::size_t num_heads, std::size_t head_dim, float* sums) {
    for (std::size_t head = 0; head < num_heads; ++head) {
        int sum = 0;
        for_each_part(head * head_dim, (head + 1) * head_dim,
                      [&](std::size_t w, Word bits) { sum += __builtin_popcountll(spikes[w] & bits); });
        sums[head] = static_cast<float>(sum);
    }
}

}  // namespace
}  // namespace spikformer::engine::SPIKFORMER_SET
