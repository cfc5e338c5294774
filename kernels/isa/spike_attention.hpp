// Q K^T V of one head at one step, on spikes, times a scale. The sums are integers, exact in floats up to 2^24:
// both orders are equal.
//
// Q K^T first: AND and count for every pair of tokens. K^T V first, by events: a spike of K adds its token's V to a row
// of a small table, a spike of Q adds that row to the result. Either way a token's sums stay in registers, those of up
// to 64 features at a time.
#pragma once

#include "isa/simd.hpp"

namespace spikformer::engine::SPIKFORMER_SET {
namespace {

template <std::size_t vectors>
struct Features {
    Floats of[vectors];

    void add(const float* row) {
        each<vectors>([&](auto v) { of[v.value] += load(row + v.value * lanes); });
    }
    // What fires adds `amount`.
    void add_where(const Word* bits, std::size_t first, float amount) {
        each<vectors>([&](auto v) {
            const std::size_t feature = first + v.value * lanes;
            const Word some = bits[feature / word_bits] >> feature % word_bits;
            of[v.value] += choose(static_cast<std::uint32_t>(some), broadcast(amount), Floats{});
        });
    }
    void store_scaled(float scale, std::size_t number, float* to) const {
        Floats scaled[vectors];
        each<vectors>([&](auto v) { scaled[v.value] = of[v.value] * broadcast(scale); });
        if (number == vectors * lanes) {
            each<vectors>([&](auto v) { store(to + v.value * lanes, scaled[v.value]); });
        } else {
            std::memcpy(to, scaled, number * sizeof(float));
        }
    }
};

// Calls add(feature) for each feature of one token that fires.
template <typename Add>
inline void for_each_spike(const Word* token, std::size_t words, const Add& add) {
    for (std::size_t w = 0; w < words; ++w) {
        for (Word bits = token[w]; bits != 0; bits &= bits - 1) {
            add(w * word_bits + static_cast<std::size_t>(__builtin_ctzll(bits)));
        }
    }
}

// attend<width>(first, number) for all features, `width` at a time, of which the last may be fewer.
template <typename Attend>
inline void for_features(std::size_t head_dim, const Attend& attend) {
    if (head_dim <= word_bits / 2) {
        attend(Number<word_bits / 2>{}, 0, head_dim);
        return;
    }
    for (std::size_t first = 0; first < head_dim; first += word_bits) {
        attend(Number<word_bits>{}, first, head_dim - first < word_bits ? head_dim - first : word_bits);
    }
}

void attend_query_key_first(const AttentionHead& head, float scale, float* currents, std::size_t stride) {
    const std::size_t words = divide_up(head.head_dim, word_bits);
    for_features(head.head_dim, [&](auto width, std::size_t first, std::size_t number) {
        for (std::size_t n = 0; n < head.num_tokens; ++n) {
            Features<width.value / lanes> sums{};
            for (std::size_t m = 0; m < head.num_tokens; ++m) {
                int shared = 0;
                for (std::size_t w = 0; w < words; ++w) {
                    shared += __builtin_popcountll(head.query[n * words + w] & head.key[m * words + w]);
                }
                if (shared > 0) {
                    sums.add_where(head.value + m * words, first, static_cast<float>(shared));
                }
            }
            sums.store_scaled(scale, number, currents + n * stride + first);
        }
    });
}

// `table` says how many tokens fire in a feature of K and in one of V.
void attend_key_value_first(const AttentionHead& head, float scale, float* currents, std::size_t stride, float* table) {
    const std::size_t words = divide_up(head.head_dim, word_bits);
    for_features(head.head_dim, [&](auto width, std::size_t first, std::size_t number) {
        std::memset(table, 0, head.head_dim * width.value * sizeof *table);
        for (std::size_t n = 0; n < head.num_tokens; ++n) {
            Features<width.value / lanes> value{};
            value.add_where(head.value + n * words, first, 1.0f);
            for_each_spike(head.key + n * words, words, [&](std::size_t feature) {
                float* row = table + feature * width.value;
                each<width.value / lanes>([&](auto v) {
                    store(row + v.value * lanes, load(row + v.value * lanes) + value.of[v.value]);
                });
            });
        }
        for (std::size_t n = 0; n < head.num_tokens; ++n) {
            Features<width.value / lanes> sums{};
            for_each_spike(head.query + n * words, words,
                           [&](std::size_t feature) { sums.add(table + feature * width.value); });
            sums.store_scaled(scale, number, currents + n * stride + first);
        }
    });
}

}  // namespace
}  // namespace spikformer::engine::SPIKFORMER_SET
