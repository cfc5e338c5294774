// AVX2 with FMA: eight floats. What the functions compute: see scalar/simd.hpp.
#pragma once

#define SPIKFORMER_SET avx2

#include <immintrin.h>

#include "core/layout.hpp"
#include "isa/portable.hpp"

namespace spikformer::engine::SPIKFORMER_SET {
namespace {

typedef float Floats __attribute__((vector_size(32), may_alias));

constexpr std::size_t lanes = 8, tile = 16;
constexpr std::size_t dense_columns = 1;
constexpr std::size_t event_columns = tile / lanes;
constexpr bool can_overflow_early = false;

inline Floats broadcast(float x) { return _mm256_set1_ps(x); }

inline Floats multiply_add(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }

inline Floats multiply_count(float count, Floats weight, Floats sum) {
    return multiply_add(broadcast(count), weight, sum);
}

inline std::uint32_t at_least(Floats a, Floats b) {
    return static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_GE_OQ)));
}

inline Floats choose(std::uint32_t bits, Floats a, Floats b) {
    const __m256i lane_bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    const __m256i chosen = _mm256_and_si256(_mm256_set1_epi32(static_cast<int>(bits)), lane_bits);
    return _mm256_blendv_ps(b, a, _mm256_castsi256_ps(_mm256_cmpeq_epi32(chosen, lane_bits)));
}

}  // namespace
}  // namespace spikformer::engine::SPIKFORMER_SET
