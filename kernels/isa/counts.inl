// How much there is of spikes and counts. The residual stream: spikes added to small whole numbers. And both as floats,
// for the dense path.

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
#if SPIKFORMER_LANES == 16
        const __m512i some = _mm512_loadu_si512(counts + i);
        active += static_cast<std::size_t>(__builtin_popcountll(_mm512_test_epi8_mask(some, some)));
#else
        std::uint8_t some = 0;  // 64 at most: a byte is enough, and narrow lanes are many
        for (std::size_t j = 0; j < word_bits; ++j) {
            some = static_cast<std::uint8_t>(some + (counts[i + j] != 0));
        }
        active += some;
#endif
    }
    for (; i < size; ++i) {
        active += counts[i] != 0;
    }
    return active;
}

void add_spikes(const Word* spikes, std::size_t words, std::uint8_t* counts) {
    for (std::size_t w = 0; w < words; ++w) {
#if SPIKFORMER_LANES == 16
        std::uint8_t* all = counts + w * word_bits;
        const __m512i before = _mm512_loadu_si512(all);
        _mm512_storeu_si512(all, _mm512_mask_adds_epu8(before, spikes[w], before, _mm512_set1_epi8(1)));
#else
        for (std::size_t byte = 0; byte < 8; ++byte) {
            std::uint8_t* eight = counts + w * word_bits + byte * 8;
            const std::uint8_t bits = static_cast<std::uint8_t>(spikes[w] >> (8 * byte));
            for (std::size_t bit = 0; bit < 8; ++bit) {
                const std::uint8_t sum = static_cast<std::uint8_t>(eight[bit] + (bits >> bit & 1));
                eight[bit] = sum < eight[bit] ? 255 : sum;
            }
        }
#endif
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
