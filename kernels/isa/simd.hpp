// The vectors that the kernels are written in. A kernels.cpp includes the simd.hpp of its own instruction set first; a
// header that is read by itself, as by an editor, gets the scalar one.
//
// Everything in isa/ lives in a namespace of its set: the linker must never take one set's copy of a function for
// another's. For the same reason it calls no function of the standard library that could be compiled here.
#pragma once

#ifndef SPIKFORMER_SET
#include "isa/scalar/simd.hpp"
#endif

#include <cstring>
#include <utility>

namespace spikformer::engine::SPIKFORMER_SET {
namespace {

static_assert(sizeof(Floats) == lanes * sizeof(float));
static_assert(tile <= widest_tile && tile % lanes == 0 && word_bits % tile == 0);

constexpr std::size_t tile_vectors = tile / lanes;
static_assert(tile_vectors % dense_columns == 0);

inline Floats load(const float* from) {
    Floats x;
    std::memcpy(&x, from, sizeof x);
    return x;
}

inline void store(float* to, Floats x) { std::memcpy(to, &x, sizeof x); }

// A loop unrolled at compile time, whose body gets its index as a constant: what it indexes can stay in registers. (A
// std::integral_constant would bring a function of the library, which must not be compiled here.)
template <std::size_t number>
struct Number {
    static constexpr std::size_t value = number;
};

template <typename Body, std::size_t... index>
[[gnu::always_inline]] inline void each_of(std::index_sequence<index...>, const Body& body) {
    (body(Number<index>{}), ...);
}

template <std::size_t count, typename Body>
[[gnu::always_inline]] inline void each(const Body& body) {
    each_of(std::make_index_sequence<count>{}, body);
}

}  // namespace
}  // namespace spikformer::engine::SPIKFORMER_SET
