// Which inputs of a row fire in a group of steps, sorted by the pattern of steps they fire at.
//
// Events are gathered in ascending order as pattern << 16 | index, counted by pattern, then moved to their places.

#if SPIKFORMER_LANES == 16
// Sixteen channels at a time, without a branch: each lane's pattern from the steps' masks, then the silent lanes left out.
inline std::size_t gather_sixteen(const __mmask16* at, std::size_t steps, std::uint32_t first, std::uint32_t* events) {
    const __m512i iota = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    __m512i event = _mm512_add_epi32(_mm512_set1_epi32(static_cast<int>(first)), iota);
    __mmask16 any = 0;
    for (std::size_t t = 0; t < steps; ++t) {
        event = _mm512_mask_or_epi32(event, at[t], event, _mm512_set1_epi32(0x10000 << t));
        any = static_cast<__mmask16>(any | at[t]);
    }
    _mm512_storeu_si512(events, _mm512_maskz_compress_epi32(any, event));
    return static_cast<std::size_t>(__builtin_popcount(any));
}
#endif

template <std::size_t steps>
std::size_t gather_spikes(const Word* row, std::size_t words, std::uint32_t* events) {
    std::size_t count = 0;
    for (std::size_t w = 0; w < words; ++w) {
        Word at[steps];
        Word any = 0;
        for (std::size_t t = 0; t < steps; ++t) {
            at[t] = row[t * words + w];
            any |= at[t];
        }
        const std::uint32_t first = static_cast<std::uint32_t>(w * word_bits);
#if SPIKFORMER_LANES == 16
        for (std::size_t part = 0; part < word_bits; part += 16) {
            __mmask16 masks[steps];
            for (std::size_t t = 0; t < steps; ++t) {
                masks[t] = static_cast<__mmask16>(at[t] >> part);
            }
            count += gather_sixteen(masks, steps, first + static_cast<std::uint32_t>(part), events + count);
        }
#else
        for (; any != 0; any &= any - 1) {
            const unsigned bit = static_cast<unsigned>(__builtin_ctzll(any));
            std::uint32_t pattern = 0;
            for (std::size_t t = 0; t < steps; ++t) {
                pattern |= static_cast<std::uint32_t>(at[t] >> bit & 1) << t;
            }
            events[count++] = pattern << 16 | (first + bit);
        }
#endif
    }
    return count;
}

template <std::size_t steps>
std::size_t gather_counts(const std::uint8_t* row, std::size_t size, std::uint32_t* events) {
    std::size_t count = 0;
    for (std::size_t first = 0; first < size; first += 16) {
#if SPIKFORMER_LANES == 16
        __mmask16 masks[steps];
        for (std::size_t t = 0; t < steps; ++t) {
            const __m128i counts = _mm_loadu_si128(reinterpret_cast<const __m128i*>(row + t * size + first));
            masks[t] = _mm_test_epi8_mask(counts, counts);
        }
        count += gather_sixteen(masks, steps, static_cast<std::uint32_t>(first), events + count);
#else
        for (std::size_t k = first; k < first + 16; ++k) {
            std::uint32_t pattern = 0;
            for (std::size_t t = 0; t < steps; ++t) {
                pattern |= static_cast<std::uint32_t>(row[t * size + k] != 0) << t;
            }
            events[count] = pattern << 16 | static_cast<std::uint32_t>(k);
            count += pattern != 0;
        }
#endif
    }
    return count;
}

// Events to their patterns' places.
inline void sort_events(const std::uint32_t* events, std::size_t count, Index* indices, std::uint32_t* ends) {
    std::uint32_t histogram[2][num_patterns] = {};  // two, so that equal neighbours do not wait for each other
    for (std::size_t i = 0; i < count; ++i) {
        ++histogram[i & 1][events[i] >> 16];
    }
    std::uint32_t starts[num_patterns];
    std::uint32_t end = 0;
    for (std::size_t pattern = 0; pattern < num_patterns; ++pattern) {
        const std::uint32_t number = histogram[0][pattern] + histogram[1][pattern];
        starts[pattern] = end;
        end += number;
        ends[pattern] = end;
    }
    for (std::size_t i = 0; i < count; ++i) {
        indices[starts[events[i] >> 16]++] = static_cast<Index>(events[i]);
    }
}

void list_events(const Word* row, std::size_t words, std::size_t num_steps, Index* indices, std::uint32_t* ends,
                 std::uint32_t* scratch) {
    const std::size_t count = num_steps == 1   ? gather_spikes<1>(row, words, scratch)
                              : num_steps == 2 ? gather_spikes<2>(row, words, scratch)
                              : num_steps == 3 ? gather_spikes<3>(row, words, scratch)
                                               : gather_spikes<4>(row, words, scratch);
    sort_events(scratch, count, indices, ends);
}

// The same for counts; `values` gets the counts of each event at the steps of its pattern, in the events' order.
std::size_t list_counts(const std::uint8_t* row, std::size_t size, std::size_t num_steps, Index* indices, float* values,
                        std::uint32_t* ends, std::uint32_t* scratch) {
    const std::size_t count = num_steps == 1   ? gather_counts<1>(row, size, scratch)
                              : num_steps == 2 ? gather_counts<2>(row, size, scratch)
                              : num_steps == 3 ? gather_counts<3>(row, size, scratch)
                                               : gather_counts<4>(row, size, scratch);
    sort_events(scratch, count, indices, ends);
    const float* first_value = values;
    std::size_t i = 0;
    for (std::size_t pattern = 1; pattern < num_patterns; ++pattern) {
        for (; i < ends[pattern]; ++i) {
            for (std::size_t t = 0; t < num_steps; ++t) {
                *values = row[t * size + indices[i]];
                values += pattern >> t & 1;
            }
        }
    }
    return static_cast<std::size_t>(values - first_value);
}

// The patterns that a part has events of, one bit each.
inline std::uint32_t patterns_of(const std::uint32_t* ends) {
    std::uint32_t found = 0;
    for (std::size_t pattern = 1; pattern < num_patterns; ++pattern) {
        found |= static_cast<std::uint32_t>(ends[pattern] != ends[pattern - 1]) << pattern;
    }
    return found;
}

// Sixteen indices at a time, wanted or not: most parts have fewer of a pattern, and a copy costs less than a decision.
// Most rows have few patterns.
void merge_events(const PartOfRow* parts, std::size_t num_parts, Index* indices, std::uint32_t* ends) {
    std::uint32_t found = 0;
    for (std::size_t p = 0; p < num_parts; ++p) {
        found |= patterns_of(parts[p].ends);
    }
    std::uint32_t used = 0;
    ends[0] = 0;
    for (std::size_t pattern = 1; pattern < num_patterns; ++pattern) {
        for (std::size_t p = 0; found >> pattern & 1 && p < num_parts; ++p) {
            const PartOfRow part = parts[p];
            const std::uint32_t begin = part.ends[pattern - 1], number = part.ends[pattern] - begin;
            std::uint32_t done = 0;
            do {
                Index some[merge_margin];
                std::memcpy(some, part.indices + begin + done, sizeof some);
                for (Index& index : some) {
                    index = static_cast<Index>(index + part.first);
                }
                std::memcpy(indices + used + done, some, sizeof some);
                done += merge_margin;
            } while (done < number);
            used += number;
        }
        ends[pattern] = used;
    }
}
