// Q K^T V of one head at one step, on spikes. Both orders are sums of whole numbers and equal.
//
// Q K^T first: AND and count for every pair of tokens. K^T V first, by events: a spike of K adds its token's V to a row
// of a small table, a spike of Q adds that row to the result.

// sums[head_dim] += amount where the bit is set.
inline void add_where(const Word* bits, std::size_t head_dim, std::int32_t amount, std::int32_t* sums) {
    std::size_t d = 0;
#if SPIKFORMER_LANES == 16
    for (const __m512i amounts = _mm512_set1_epi32(amount); d + 16 <= head_dim; d += 16) {
        const __mmask16 mask = static_cast<__mmask16>(bits[d / word_bits] >> (d % word_bits));
        const __m512i before = _mm512_loadu_si512(sums + d);
        _mm512_storeu_si512(sums + d, _mm512_mask_add_epi32(before, mask, before, amounts));
    }
#endif
    for (; d < head_dim; ++d) {
        sums[d] += amount & -static_cast<std::int32_t>(bits[d / word_bits] >> (d % word_bits) & 1);
    }
}

void attend_query_key_first(const Word* query, const Word* key, const Word* value, std::size_t num_tokens,
                            std::size_t head_dim, std::int32_t* products) {
    const std::size_t words = divide_up(head_dim, word_bits);
    for (std::size_t n = 0; n < num_tokens; ++n) {
        std::int32_t* row = products + n * head_dim;
        std::memset(row, 0, head_dim * sizeof *row);
        for (std::size_t m = 0; m < num_tokens; ++m) {
            int shared = 0;
            for (std::size_t w = 0; w < words; ++w) {
                shared += __builtin_popcountll(query[n * words + w] & key[m * words + w]);
            }
            if (shared > 0) {
                add_where(value + m * words, head_dim, shared, row);
            }
        }
    }
}

// Calls add(feature) for each feature of one token that fires.
template <typename Add>
inline void for_each_spike(const Word* token, std::size_t words, const Add& add) {
    for (std::size_t w = 0; w < words; ++w) {
        for (Word bits = token[w]; bits != 0; bits &= bits - 1) {
            add(w * word_bits + static_cast<std::size_t>(__builtin_ctzll(bits)));
        }
    }
}

// `shared` holds head_dim * head_dim numbers: how many tokens fire in feature d of K and in e of V.
void attend_key_value_first(const Word* query, const Word* key, const Word* value, std::size_t num_tokens,
                            std::size_t head_dim, std::int32_t* products, std::int32_t* shared) {
    const std::size_t words = divide_up(head_dim, word_bits);
    std::memset(shared, 0, head_dim * head_dim * sizeof *shared);
    for (std::size_t n = 0; n < num_tokens; ++n) {
        for_each_spike(key + n * words, words, [&](std::size_t d) {
            add_where(value + n * words, head_dim, 1, shared + d * head_dim);
        });
    }
    std::memset(products, 0, num_tokens * head_dim * sizeof *products);
    for (std::size_t n = 0; n < num_tokens; ++n) {
        std::int32_t* row = products + n * head_dim;
        for_each_spike(query + n * words, words, [&](std::size_t d) {
            for (std::size_t e = 0; e < head_dim; ++e) {
                row[e] += shared[d * head_dim + e];
            }
        });
    }
}
