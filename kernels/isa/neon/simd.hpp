// NEON of 64-bit ARM: four floats. What the functions compute: see scalar/simd.hpp.
#pragma once

#define SPIKFORMER_SET neon

#include <arm_neon.h>

#include "core/layout.hpp"
#include "isa/portable.hpp"

namespace spikformer::engine::SPIKFORMER_SET {
namespace {

typedef float Floats __attribute__((vector_size(16), may_alias));

constexpr std::size_t lanes = 4, tile = 16;
constexpr std::size_t dense_columns = 1;
constexpr std::size_t event_columns = tile / lanes;
constexpr bool can_overflow_early = false;

constexpr std::uint32_t lane_bits[lanes] = {1, 2, 4, 8};

inline Floats broadcast(float x) { return vdupq_n_f32(x); }

inline Floats multiply_add(Floats a, Floats b, Floats c) { return vfmaq_f32(c, a, b); }

inline Floats multiply_count(float count, Floats weight, Floats sum) {
    return multiply_add(broadcast(count), weight, sum);
}

inline std::uint32_t at_least(Floats a, Floats b) {
    return vaddvq_u32(vandq_u32(vcgeq_f32(a, b), vld1q_u32(lane_bits)));
}

inline Floats choose(std::uint32_t bits, Floats a, Floats b) {
    return vbslq_f32(vtstq_u32(vdupq_n_u32(bits), vld1q_u32(lane_bits)), a, b);
}

}  // namespace
}  // namespace spikformer::engine::SPIKFORMER_SET
