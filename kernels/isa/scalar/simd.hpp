// Without vectors: runs everywhere, and is what the others are compared with.
#pragma once

#define SPIKFORMER_SET scalar

#include "core/layout.hpp"
#include "isa/portable.hpp"

namespace spikformer::engine::SPIKFORMER_SET {
namespace {

using Floats = float;

constexpr std::size_t lanes = 1, tile = 16;
constexpr std::size_t dense_columns = 1;  // vectors of a dense product at a time: sums and weights stay in registers
constexpr std::size_t event_columns = tile / lanes;  // the same, of a product by events
constexpr bool can_overflow_early = false;  // whether multiply_count may be infinite where a * b + c, rounded once, is not

inline Floats broadcast(float x) { return x; }

// a * b + c, rounded once, as on every instruction set.
inline Floats multiply_add(Floats a, Floats b, Floats c) { return __builtin_fmaf(a, b, c); }

// The same for a count, an integer up to max_count.
inline Floats multiply_count(float count, Floats weight, Floats sum) { return multiply_add(count, weight, sum); }

// One bit a lane: where a >= b.
inline std::uint32_t at_least(Floats a, Floats b) { return a >= b; }

// a where the bit of its lane is set, else b.
inline Floats choose(std::uint32_t bits, Floats a, Floats b) { return bits & 1 ? a : b; }

}  // namespace
}  // namespace spikformer::engine::SPIKFORMER_SET
