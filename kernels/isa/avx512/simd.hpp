// AVX-512 (F, BW, DQ, VL): sixteen floats, masks, 64 bytes. What the functions compute: see scalar/simd.hpp and
// portable.hpp.
#pragma once

#define SPIKFORMER_SET avx512

#include <immintrin.h>

#include "core/layout.hpp"

namespace spikformer::engine::SPIKFORMER_SET {
namespace {

typedef float Floats __attribute__((vector_size(64), may_alias));

constexpr std::size_t lanes = 16, tile = 32;
constexpr std::size_t dense_columns = 2;
constexpr std::size_t event_columns = tile / lanes;
constexpr bool can_overflow_early = false;

inline Floats broadcast(float x) {
    return _mm512_set1_ps(x);  // 0 + x would be an addition, for the sake of the sign of a zero
}

inline Floats multiply_add(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }

inline Floats multiply_count(float count, Floats weight, Floats sum) {
    return multiply_add(broadcast(count), weight, sum);
}

inline std::uint32_t at_least(Floats a, Floats b) { return _mm512_cmp_ps_mask(a, b, _CMP_GE_OQ); }

inline Floats choose(std::uint32_t bits, Floats a, Floats b) {
    return _mm512_mask_blend_ps(static_cast<__mmask16>(bits), b, a);
}

inline std::size_t count_active_word(const std::uint8_t* counts) {
    const __m512i some = _mm512_loadu_si512(counts);
    return static_cast<std::size_t>(__builtin_popcountll(_mm512_test_epi8_mask(some, some)));
}

inline void add_word(Word spikes, std::uint8_t* counts) {
    const __m512i before = _mm512_loadu_si512(counts);
    _mm512_storeu_si512(counts, _mm512_mask_adds_epu8(before, spikes, before, _mm512_set1_epi8(1)));
}

// Sixteen inputs without a branch: each lane's pattern from the steps' masks, then the silent lanes left out. Writes all
// sixteen events, of which the returned number count; there is room, because at most `first` were written before.
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

template <std::size_t steps>
inline std::size_t gather_word(const Word (&at)[steps], std::uint32_t first, std::uint32_t* events) {
    std::size_t count = 0;
    for (std::size_t part = 0; part < word_bits; part += 16) {
        __mmask16 masks[steps];
        for (std::size_t t = 0; t < steps; ++t) {
            masks[t] = static_cast<__mmask16>(at[t] >> part);
        }
        count += gather_sixteen(masks, steps, first + static_cast<std::uint32_t>(part), events + count);
    }
    return count;
}

template <std::size_t steps>
inline std::size_t gather_sixteen_counts(const std::uint8_t* row, std::size_t size, std::size_t first,
                                         std::uint32_t* events) {
    __mmask16 masks[steps];
    for (std::size_t t = 0; t < steps; ++t) {
        const __m128i counts = _mm_loadu_si128(reinterpret_cast<const __m128i*>(row + t * size + first));
        masks[t] = _mm_test_epi8_mask(counts, counts);
    }
    return gather_sixteen(masks, steps, static_cast<std::uint32_t>(first), events);
}

}  // namespace
}  // namespace spikformer::engine::SPIKFORMER_SET
