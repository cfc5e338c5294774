// Sums over tokens, and the head's product, for one step of one sample.
#pragma once

#include "isa/simd.hpp"

namespace spikformer::engine::SPIKFORMER_SET {
namespace {

// totals[words * 64] = in how many tokens each channel fires; in bytes as long as those suffice.
void sum_spikes(const Word* spikes, std::size_t num_tokens, std::size_t token_stride, std::size_t words,
                std::int32_t* totals) {
    std::memset(totals, 0, words * word_bits * sizeof *totals);
    for (std::size_t w = 0; w < words; ++w) {
        for (std::size_t first = 0; first < num_tokens; first += max_count) {
            const std::size_t last = num_tokens - first < max_count ? num_tokens : first + max_count;
            std::uint8_t some[word_bits] = {};
            for (std::size_t n = first; n < last; ++n) {
                add_word(spikes[n * token_stride + w], some);
            }
            for (std::size_t bit = 0; bit < word_bits; ++bit) {
                totals[w * word_bits + bit] += some[bit];
            }
        }
    }
}

// totals[size] = sum of counts over tokens, which are `token_stride` apart.
void sum_tokens(const std::uint8_t* counts, std::size_t num_tokens, std::size_t token_stride, std::size_t size,
                std::int32_t* totals) {
    std::memset(totals, 0, size * sizeof *totals);
    for (std::size_t n = 0; n < num_tokens; ++n) {
        const std::uint8_t* token = counts + n * token_stride;
        for (std::size_t d = 0; d < size; ++d) {
            totals[d] += token[d];
        }
    }
}

// The same for streams of floats, token by token in float64.
void sum_floats(const float* values, std::size_t num_tokens, std::size_t token_stride, std::size_t size,
                double* totals) {
    std::memset(totals, 0, size * sizeof *totals);
    for (std::size_t n = 0; n < num_tokens; ++n) {
        const float* token = values + n * token_stride;
        for (std::size_t d = 0; d < size; ++d) {
            totals[d] += static_cast<double>(token[d]);
        }
    }
}

// logits[k] = weights[k] . totals / num_tokens + bias[k]
template <typename Total>
inline void read_out_totals(const Total* totals, std::size_t num_tokens, std::size_t size, const float* weights,
                            const float* bias, std::size_t num_classes, float* logits) {
    for (std::size_t k = 0; k < num_classes; ++k) {
        double sum = 0;
        for (std::size_t d = 0; d < size; ++d) {
            sum += static_cast<double>(weights[k * size + d]) * totals[d];
        }
        logits[k] = static_cast<float>(sum / static_cast<double>(num_tokens) + bias[k]);
    }
}

void read_out(const std::int32_t* totals, std::size_t num_tokens, std::size_t size, const float* weights,
              const float* bias, std::size_t num_classes, float* logits) {
    read_out_totals(totals, num_tokens, size, weights, bias, num_classes, logits);
}

void read_out_floats(const double* totals, std::size_t num_tokens, std::size_t size, const float* weights,
                     const float* bias, std::size_t num_classes, float* logits) {
    read_out_totals(totals, num_tokens, size, weights, bias, num_classes, logits);
}

}  // namespace
}  // namespace spikformer::engine::SPIKFORMER_SET
