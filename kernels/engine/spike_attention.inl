// Q K^T V of one head at one step, on spikes: bitwise AND, count, add. Both orders are sums of whole numbers and equal.

// products[head_dim] += amount where the bit is set.
inline void add_where(const Word* bits, std::size_t head_dim, std::int32_t amount, std::int32_t* products) {
    for (std::size_t d = 0; d < head_dim; ++d) {
        products[d] += amount & -static_cast<std::int32_t>(bits[d / word_bits] >> (d % word_bits) & 1);
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

// columns[d][token words]: the bits of tokens [num_tokens][words], turned by 90 degrees.
inline void transpose_bits(const Word* rows, std::size_t num_tokens, std::size_t words, std::size_t head_dim,
                           std::size_t token_words, Word* columns) {
    std::memset(columns, 0, head_dim * token_words * sizeof *columns);
    for (std::size_t n = 0; n < num_tokens; ++n) {
        for (std::size_t w = 0; w < words; ++w) {
            for (Word bits = rows[n * words + w]; bits != 0; bits &= bits - 1) {
                const std::size_t d = w * word_bits + static_cast<std::size_t>(__builtin_ctzll(bits));
                columns[d * token_words + n / word_bits] |= Word{1} << (n % word_bits);
            }
        }
    }
}

// `scratch` holds attention_scratch(num_tokens, head_dim) words.
void attend_key_value_first(const Word* query, const Word* key, const Word* value, std::size_t num_tokens,
                            std::size_t head_dim, std::int32_t* products, Word* scratch) {
    const std::size_t words = divide_up(head_dim, word_bits), token_words = divide_up(num_tokens, word_bits);
    Word* key_columns = scratch;
    Word* value_columns = key_columns + head_dim * token_words;
    std::int32_t* shared = reinterpret_cast<std::int32_t*>(value_columns + head_dim * token_words);
    transpose_bits(key, num_tokens, words, head_dim, token_words, key_columns);
    transpose_bits(value, num_tokens, words, head_dim, token_words, value_columns);
    for (std::size_t d = 0; d < head_dim; ++d) {
        for (std::size_t e = 0; e < head_dim; ++e) {
            int count = 0;
            for (std::size_t w = 0; w < token_words; ++w) {
                count += __builtin_popcountll(key_columns[d * token_words + w] & value_columns[e * token_words + w]);
            }
            shared[d * head_dim + e] = count;
        }
    }
    for (std::size_t n = 0; n < num_tokens; ++n) {
        std::int32_t* row = products + n * head_dim;
        std::memset(row, 0, head_dim * sizeof *row);
        for (std::size_t w = 0; w < words; ++w) {
            for (Word bits = query[n * words + w]; bits != 0; bits &= bits - 1) {
                const std::size_t d = w * word_bits + static_cast<std::size_t>(__builtin_ctzll(bits));
                const std::int32_t* counts = shared + d * head_dim;
                for (std::size_t e = 0; e < head_dim; ++e) {
                    row[e] += counts[e];
                }
            }
        }
    }
}
