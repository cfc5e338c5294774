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
constexpr std::size_t event_columns = 2;
constexpr bool can_overflow_early = true;

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

// Four doubles.
struct Doubles {
    v128_t low, high;
};

inline Doubles to_doubles(Floats x) {
    const v128_t all = static_cast<v128_t>(x);
    return {wasm_f64x2_promote_low_f32x4(all), wasm_f64x2_promote_low_f32x4(wasm_i32x4_shuffle(all, all, 2, 3, 2, 3))};
}

inline Floats to_floats(Doubles x) {
    return static_cast<Floats>(
        wasm_i32x4_shuffle(wasm_f32x4_demote_f64x2_zero(x.low), wasm_f32x4_demote_f64x2_zero(x.high), 0, 1, 4, 5));
}

// Whether rounding these to floats may not be what rounding the numbers that they were rounded from would be. That
// takes a middle between two floats: 29 bits, of which the first is set. Below the smallest normal float, middles lie
// elsewhere.
inline bool may_round_twice(Doubles x) {
    const v128_t low_bits = wasm_i32x4_shuffle(x.low, x.high, 0, 2, 4, 6);
    const v128_t high_bits = wasm_i32x4_shuffle(x.low, x.high, 1, 3, 5, 7);
    const v128_t magnitude = wasm_v128_and(high_bits, wasm_i32x4_splat(0x7FFFFFFF));
    const v128_t is_middle =
        wasm_i32x4_eq(wasm_v128_and(low_bits, wasm_i32x4_splat(0x1FFFFFFF)), wasm_i32x4_splat(0x10000000));
    const v128_t is_tiny = wasm_v128_and(wasm_i32x4_lt(magnitude, wasm_i32x4_splat((1023 - 126) << 20)),
                                         wasm_i32x4_ne(magnitude, wasm_i32x4_splat(0)));
    return wasm_v128_any_true(wasm_v128_or(is_middle, is_tiny));
}

// There is no fused multiply-add; but products of floats are exact in doubles.
struct ProductAndTerm {
    Doubles product, term;

    ProductAndTerm(Floats a, Floats b, Floats c) : term(to_doubles(c)) {
        const Doubles x = to_doubles(a), y = to_doubles(b);
        product = {wasm_f64x2_mul(x.low, y.low), wasm_f64x2_mul(x.high, y.high)};
    }
    Doubles sum() const { return {wasm_f64x2_add(product.low, term.low), wasm_f64x2_add(product.high, term.high)}; }
};

// Right for all numbers, slow, and so rare that a call of it takes less memory than a copy.
[[gnu::noinline]] Floats multiply_add_to_odd(Floats a, Floats b, Floats c) {
    const ProductAndTerm exact(a, b, c);
    return to_floats({add_to_odd(exact.product.low, exact.term.low), add_to_odd(exact.product.high, exact.term.high)});
}

inline Floats multiply_add(Floats a, Floats b, Floats c) {
    const Doubles sum = ProductAndTerm(a, b, c).sum();
    return __builtin_expect(may_round_twice(sum), false) ? multiply_add_to_odd(a, b, c) : to_floats(sum);
}

// Small counts have products of so few bits that sums in doubles are exact, too, though often in the middle between two
// floats. `sum - product == term` says so wherever it matters: it can hold for an inexact sum only if the product is
// below 2^-25 of the term, of which nothing is left in a float.
[[gnu::noinline]] Floats multiply_odd_count(float count, Floats weight, Floats term) {
    const ProductAndTerm exact(broadcast(count), weight, term);
    const Doubles sum = exact.sum();
    const v128_t is_inexact =
        wasm_v128_or(wasm_f64x2_ne(wasm_f64x2_sub(sum.low, exact.product.low), exact.term.low),
                     wasm_f64x2_ne(wasm_f64x2_sub(sum.high, exact.product.high), exact.term.high));
    const bool is_small = count < 16;
    return is_small && !wasm_v128_any_true(is_inexact) ? to_floats(sum)
                                                       : multiply_add_to_odd(broadcast(count), weight, term);
}

// Times a power of two, a weight is exact, and nothing is rounded before the sum. Most counts are 1, 2 or 4.
inline Floats multiply_count(float count, Floats weight, Floats sum) {
    std::uint32_t bits;
    __builtin_memcpy(&bits, &count, sizeof bits);
    return (bits & 0x7FFFFF) == 0 ? sum + broadcast(count) * weight : multiply_odd_count(count, weight, sum);
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
