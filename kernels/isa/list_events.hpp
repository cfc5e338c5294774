// Which inputs of a row fire in a group of steps, sorted by the pattern of steps they fire at.
//
// Events are gathered in ascending order as pattern << 16 | index, counted by pattern, then moved to their places.
#pragma once

#include "isa/simd.hpp"

namespace spikformer::engine::SPIKFORMER_SET {
namespace {

template <std::size_t steps>
std::size_t gather_spikes(const Word* row, std::size_t words, std::uint32_t* events) {
    std::size_t count = 0;
    for (std::size_t w = 0; w < words; ++w) {
        Word at[steps];
        for (std::size_t t = 0; t < steps; ++t) {
            at[t] = row[t * words + w];
        }
        count += gather_word(at, static_cast<std::uint32_t>(w * word_bits), events + count);
    }
    return count;
}

template <std::size_t steps>
std::size_t gather_counts(const std::uint8_t* row, std::size_t size, std::uint32_t* events) {
    std::size_t count = 0;
    for (std::size_t first = 0; first < size; first += 16) {
        count += gather_sixteen_counts<steps>(row, size, first, events + count);
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

// Sixteen at a time, wanted or not: most parts have fewer of a pattern, and a copy costs less than a decision.
template <typename Element, typename Change>
inline void copy_sixteens(const Element* from, std::size_t number, Element* to, const Change& change) {
    std::size_t done = 0;
    do {
        Element some[merge_margin];
        std::memcpy(some, from + done, sizeof some);
        for (Element& each : some) {
            each = change(each);
        }
        std::memcpy(to + done, some, sizeof some);
        done += merge_margin;
    } while (done < number);
}

// Most rows have few patterns. Of counts, `values` follows the events; returns where it ends.
template <bool counted>
inline float* merge(const PartOfRow* parts, std::size_t num_parts, Index* indices, float* values, std::uint32_t* ends) {
    std::uint32_t found = 0;
    const float* next[counted ? most_parts : 1];
    for (std::size_t p = 0; p < num_parts; ++p) {
        found |= patterns_of(parts[p].ends);
        if constexpr (counted) {
            next[p] = parts[p].values;
        }
    }
    std::uint32_t used = 0;
    ends[0] = 0;
    for (std::size_t pattern = 1; pattern < num_patterns; ++pattern) {
        for (std::size_t p = 0; found >> pattern & 1 && p < num_parts; ++p) {
            const PartOfRow part = parts[p];
            const std::uint32_t begin = part.ends[pattern - 1], number = part.ends[pattern] - begin;
            copy_sixteens(part.indices + begin, number, indices + used,
                          [&](Index index) { return static_cast<Index>(index + part.first); });
            used += number;
            if constexpr (counted) {
                const std::size_t additions = number * static_cast<std::size_t>(__builtin_popcountll(pattern));
                copy_sixteens(next[p], additions, values, [](float value) { return value; });
                next[p] += additions;
                values += additions;
            }
        }
        ends[pattern] = used;
    }
    return values;
}

void merge_events(const PartOfRow* parts, std::size_t num_parts, Index* indices, std::uint32_t* ends) {
    merge<false>(parts, num_parts, indices, nullptr, ends);
}

std::size_t merge_counts(const PartOfRow* parts, std::size_t num_parts, Index* indices, float* values,
                         std::uint32_t* ends) {
    return static_cast<std::size_t>(merge<true>(parts, num_parts, indices, values, ends) - values);
}

}  // namespace
}  // namespace spikformer::engine::SPIKFORMER_SET
