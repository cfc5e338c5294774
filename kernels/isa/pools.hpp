// Max-pools and max filters. A spike anywhere in the window is a spike: for spikes, a maximum is an OR of words.
#pragma once

#include "isa/simd.hpp"

namespace spikformer::engine::SPIKFORMER_SET {
namespace {

// take(element, output, input) for each of the inputs [depth] that an output [depth] of one row sees, row by row.
template <typename Element, typename Start, typename Take>
inline void for_each_window(const PooledRows<Element>& from, Element* pooled, const Start& start, const Take& take) {
    const std::size_t reach = (from.kernel - 1) / 2, outputs = from.width / from.stride;
    for (std::size_t x = 0; x < outputs; ++x) {
        const std::size_t centre = x * from.stride, begin = centre < reach ? 0 : centre - reach;
        const std::size_t end = centre - reach + from.kernel < from.width ? centre - reach + from.kernel : from.width;
        Element* to = pooled + x * from.depth;
        start(to, from.rows[from.centre] + centre * from.depth);
        for (std::size_t row = 0; row < from.count; ++row) {
            for (std::size_t column = begin; column < end; ++column) {
                take(to, from.rows[row] + column * from.depth);
            }
        }
    }
}

void pool_map_row(const PooledRows<Word>& from, Word* pooled) {
    for_each_window(
        from, pooled, [&](Word* to, const Word*) { std::memset(to, 0, from.depth * sizeof *to); },
        [&](Word* to, const Word* other) {
            for (std::size_t d = 0; d < from.depth; ++d) {
                to[d] |= other[d];
            }
        });
}

void pool_counts_row(const PooledRows<std::uint8_t>& from, std::uint8_t* pooled) {
    for_each_window(
        from, pooled, [&](std::uint8_t* to, const std::uint8_t*) { std::memset(to, 0, from.depth); },
        [&](std::uint8_t* to, const std::uint8_t* other) {
            for (std::size_t d = 0; d < from.depth; ++d) {
                to[d] = other[d] > to[d] ? other[d] : to[d];
            }
        });
}

// A window's own centre is always inside, so there is no border to invent.
void pool_floats_row(const PooledRows<float>& from, float* pooled) {
    for_each_window(
        from, pooled,
        [&](float* to, const float* centre) { std::memcpy(to, centre, from.depth * sizeof *to); },
        [&](float* to, const float* some) {
            for (std::size_t d = 0; d < from.depth; d += lanes) {
                const Floats most = load(to + d), other = load(some + d);
                store(to + d, choose(at_least(other, most), other, most));
            }
        });
}

// The pool along tokens that some models put on Q and K: `kernel` wide, stride 1, the number of tokens stays.
void pool_tokens(const Word* tokens, std::size_t num_tokens, std::size_t depth, std::size_t kernel, Word* pooled) {
    const std::size_t reach = kernel / 2;
    for (std::size_t n = 0; n < num_tokens; ++n) {
        Word* to = pooled + n * depth;
        std::memset(to, 0, depth * sizeof *to);
        for (std::size_t m = n < reach ? 0 : n - reach; m <= n + reach && m < num_tokens; ++m) {
            for (std::size_t d = 0; d < depth; ++d) {
                to[d] |= tokens[m * depth + d];
            }
        }
    }
}

// A neighbouring channel is a shift by one; `firsts` and `lasts` have the channels that have none before or after them.
void dilate_heads(const Word* tokens, std::size_t num_tokens, std::size_t time_steps, std::size_t words,
                  const Word* firsts, const Word* lasts, Word* dilated) {
    const std::size_t depth = time_steps * words;
    for (std::size_t n = 0; n < num_tokens; ++n) {
        for (std::size_t step = 0; step < depth; step += words) {
            const Word* at = tokens + n * depth + step;
            const Word *above = n == 0 ? at : at - depth, *below = n + 1 == num_tokens ? at : at + depth;
            Word before = 0, here = at[0] | above[0] | below[0];
            for (std::size_t w = 0; w < words; ++w) {
                const Word after = w + 1 < words ? at[w + 1] | above[w + 1] | below[w + 1] : 0;
                const Word upwards = here << 1 | before >> (word_bits - 1);
                const Word downwards = here >> 1 | after << (word_bits - 1);
                dilated[n * depth + step + w] = here | (upwards & ~firsts[w]) | (downwards & ~lasts[w]);
                before = here;
                here = after;
            }
        }
    }
}

}  // namespace
}  // namespace spikformer::engine::SPIKFORMER_SET
