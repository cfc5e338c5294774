// Everything below is compiled once for each instruction set, by a kernels_*.cpp that sets SPIKFORMER_SET (its name),
// SPIKFORMER_LANES and SPIKFORMER_TILE. All of it lives in a namespace of its own: the linker must never take one set's
// copy of a function for another's. For the same reason it calls no function of the standard library that could be
// compiled here.
#include "core/kernels.hpp"

#include <cstring>
#include <utility>

#if SPIKFORMER_LANES >= 8
#include <immintrin.h>
#elif defined(__ARM_NEON) && SPIKFORMER_LANES == 4
#include <arm_neon.h>
#endif

namespace spikformer::engine::SPIKFORMER_SET {
namespace {

constexpr std::size_t tile = SPIKFORMER_TILE;

#include "simd.inl"

static_assert(tile <= widest_tile && tile % lanes == 0 && word_bits % tile == 0);

#include "list_events.inl"
#include "spike_linear.inl"

#include "counts.inl"
#include "dense_linear.inl"
#include "fire.inl"
#include "floats.inl"
#include "readout.inl"
#include "spike_attention.inl"
#include "spike_pool.inl"

}  // namespace

#define SPIKFORMER_TEXT_OF(name) #name
#define SPIKFORMER_TEXT(name) SPIKFORMER_TEXT_OF(name)

extern const Kernels kernels;
const Kernels kernels = {
    SPIKFORMER_TEXT(SPIKFORMER_SET),
    tile,
    list_events,
    list_counts,
    merge_events,
    spike_linear,
    count_linear,
    dense_linear,
    nullptr,  // no products in whole numbers: choice.cpp adds them to a set
    nullptr,
    nullptr,
    nullptr,
    fire,
    attend_query_key_first,
    attend_key_value_first,
    pool_map_row,
    pool_tokens,
    count_spikes,
    count_active,
    add_spikes,
    expand_spikes,
    expand_counts,
    sum_tokens,
    read_out,
    add_floats,
    pool_floats_row,
    sum_floats,
    read_out_floats,
};

}  // namespace spikformer::engine::SPIKFORMER_SET
