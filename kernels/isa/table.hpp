// The table of one instruction set's kernels. Included by each isa/<set>/kernels.cpp, after its simd.hpp.
#pragma once

#include "core/kernels.hpp"
#include "isa/dense_linear.hpp"
#include "isa/depthwise_linear.hpp"
#include "isa/fire.hpp"
#include "isa/list_events.hpp"
#include "isa/masks.hpp"
#include "isa/pools.hpp"
#include "isa/readout.hpp"
#include "isa/spike_attention.hpp"
#include "isa/spike_linear.hpp"
#include "isa/streams.hpp"

#define SPIKFORMER_TEXT_OF(name) #name
#define SPIKFORMER_TEXT(name) SPIKFORMER_TEXT_OF(name)

namespace spikformer::engine::SPIKFORMER_SET {
namespace {

constexpr Kernels make_table() {
    Kernels table{};
    table.name = SPIKFORMER_TEXT(SPIKFORMER_SET);
    table.tile = tile;
    table.list_events = list_events;
    table.list_counts = list_counts;
    table.merge_events = merge_events;
    table.merge_counts = merge_counts;
    table.spike_linear = spike_linear;
    table.count_linear = count_linear;
    table.dense_linear = dense_linear;
    table.depthwise_linear = depthwise_linear;
    table.fire = fire;
    table.attend_query_key_first = attend_query_key_first;
    table.attend_key_value_first = attend_key_value_first;
    table.pool_map_row = pool_map_row;
    table.pool_counts_row = pool_counts_row;
    table.pool_floats_row = pool_floats_row;
    table.pool_tokens = pool_tokens;
    table.dilate_heads = dilate_heads;
    table.and_spikes = and_spikes;
    table.spread_heads = spread_heads;
    table.sum_heads = sum_heads;
    table.count_spikes = count_spikes;
    table.count_active = count_active;
    table.add_spikes = add_spikes;
    table.expand_spikes = expand_spikes;
    table.expand_counts = expand_counts;
    table.sum_spikes = sum_spikes;
    table.sum_tokens = sum_tokens;
    table.read_out = read_out;
    table.add_floats = add_floats;
    table.sum_floats = sum_floats;
    table.read_out_floats = read_out_floats;
    return table;
}

}  // namespace

extern const Kernels kernels;
const Kernels kernels = make_table();

}  // namespace spikformer::engine::SPIKFORMER_SET
