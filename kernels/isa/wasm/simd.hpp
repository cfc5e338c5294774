// SIMD128 of WebAssembly: four floats. What the functions compute: see scalar/simd.hpp.
#pragma once

#define SPIKFORMER_SET wasm

#include <wasm_simd128.h>

#include "core/layout.hpp"
#include "isa/portable.hpp"

namespace spikformer::engine::SPIKFORMER_SET {
namespace {

typedef float Floats __attribute__((vector_size(16), may_alias));

constexpr std::size_t lanes = 4, tile = 16;
constexpr std::size_t dense_columns = 1;

inline Floats broadcast(float x) { return static_cast<Floats>(wasm_f32x4_splat(x)); }

// a + b of doubles, rounded to odd: where it is inexact, to the neighbour whose last bit is 1. Rounding that to a float
// gives what rounding a + b itself would.
inline v128_t add_to_odd(v128_t a, v128_t b) {
    const v128_t sum = wasm_f64x2_add(a, b), part = wasm_f64x2_sub(sum, a), one = wasm_i64x2_splat(1);
    const v128_t error =  // exactly what the sum lacks (Knuth's TwoSum)
        wasm_f64x2_add(wasm_f64x2_sub(a, wasm_f64x2_sub(sum, part)), wasm_f64x2_sub(b, part));
    const v128_t is_inexact = wasm_f64x2_gt(wasm_f64x2_abs(error), wasm_f64x2_splat(0));  // not of infinities
    const v128_t is_even = wasm_i64x2_sub(wasm_v128_and(sum, one), one);
    const v128_t towards_error = wasm_v128_or(wasm_i64x2_shr(wasm_v128_xor(sum, error), 63), one);  // 1 or -1
    return wasm_i64x2_add(sum, wasm_v128_and(towards_error, wasm_v128_and(is_inexact, is_even)));
}

// There is no fused multiply-add; but products of floats are exact in doubles.
inline Floats multiply_add(Floats a, Floats b, Floats c) {
    const auto half = [](v128_t x, v128_t y, v128_t z) {
        const v128_t product = wasm_f64x2_mul(wasm_f64x2_promote_low_f32x4(x), wasm_f64x2_promote_low_f32x4(y));
        return wasm_f32x4_demote_f64x2_zero(add_to_odd(product, wasm_f64x2_promote_low_f32x4(z)));
    };
    const auto high = [](Floats x) { return wasm_i32x4_shuffle(static_cast<v128_t>(x), static_cast<v128_t>(x), 2, 3, 2, 3); };
    const v128_t low_half = half(static_cast<v128_t>(a), static_cast<v128_t>(b), static_cast<v128_t>(c));
    const v128_t high_half = half(high(a), high(b), high(c));
    return static_cast<Floats>(wasm_i32x4_shuffle(low_half, high_half, 0, 1, 4, 5));
}

inline std::uint32_t at_least(Floats a, Floats b) {
    return wasm_i32x4_bitmask(wasm_f32x4_ge(static_cast<v128_t>(a), static_cast<v128_t>(b)));
}

inline Floats choose(std::uint32_t bits, Floats a, Floats b) {
    const v128_t lane_bits = wasm_i32x4_const(1, 2, 4, 8);
    const v128_t chosen = wasm_v128_and(wasm_i32x4_splat(static_cast<int>(bits)), lane_bits);
    return static_cast<Floats>(wasm_v128_bitselect(static_cast<v128_t>(a), static_cast<v128_t>(b),
                                                   wasm_i32x4_eq(chosen, lane_bits)));
}

}  // namespace
}  // namespace spikformer::engine::SPIKFORMER_SET
