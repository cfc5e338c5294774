// How activations lie in memory, for every kernel of the engine.
//
//   spikes    Word[positions][T][words]             one bit a neuron, 64 channels a word, channels padded to whole words
//   counts    uint8_t[positions][T][words * 64]     the residual stream: sums of spikes, small integers
//   weights   float[tiles][inputs][tile]            a tile of outputs for every input: what one event adds is contiguous
//   digits    int8_t[outputs / 16][inputs / 64][3][16][16][4]  the same in integers, where a set multiplies those:
//                                                   16 outputs and 64 inputs together, digit by digit, lowest first
//   scales    float[outputs / 16][3][16]            what each digit counts
//   currents  float[rows][T][tile]                  scratch, between a product and its neurons
//
// A position is a pixel of a map or a token. T steps are cut into groups of at most four. An event is an input that
// fires in a group; its pattern says at which of the steps. The events of a row (what one output position sees) are
// sorted by pattern, so that the kernel that adds weights has no decision to make inside its loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "core/dynamics.hpp"

namespace spikformer::engine {

using Word = std::uint64_t;
using Index = std::uint16_t;  // of an input

constexpr std::size_t most_inputs = std::size_t{1} << 16;  // of a row: neighbours times channels
static_assert(most_inputs - 1 == Index(-1), "the last input has an index");

constexpr std::size_t most_kernel = 7;                        // the side of a window
constexpr std::size_t most_parts = most_kernel * most_kernel;  // of a row: the positions that a window sees

constexpr std::size_t max_count = 255;  // of a residual stream of spikes: it is kept in bytes
constexpr std::size_t most_tokens = std::numeric_limits<std::int32_t>::max() / max_count;  // whose counts are added up
static_assert(max_count == std::uint8_t(-1) && most_tokens * max_count <= std::numeric_limits<std::int32_t>::max());
static_assert(most_tokens <= std::size_t{1} << std::numeric_limits<float>::digits, "sums of spikes are exact in floats");

constexpr std::size_t word_bits = 64;
constexpr std::size_t group_steps = 4;
constexpr std::size_t num_patterns = std::size_t{1} << group_steps;  // 0 is silence
constexpr std::size_t widest_tile = 32;
constexpr std::size_t num_digits = 3;      // of a weight in integers
constexpr std::size_t integer_outputs = 16;  // that a product of integers computes together
constexpr std::size_t integer_rows = 16;     // and rows: it reads and writes up to a multiple of them
constexpr std::size_t value_margin = 1;   // the values of listed counts may be written one beyond the last
constexpr std::size_t merge_margin = 16;  // lists are put together by whole vectors, which may go beyond the last event

static_assert(merge_margin >= value_margin);

// The events of one position in a row of several: their indices count from `first`. `values` is of counts alone.
struct PartOfRow {
    const Index* indices;
    const std::uint32_t* ends;
    Index first;
    const float* values = nullptr;
};

// A position that a depthwise window sees: its spikes [T][words], and its place in the window.
struct SeenPlace {
    const Word* spikes;
    std::size_t place;
};

constexpr std::size_t most_pooled = 3;  // the side of a pool's window

// The rows of a map [width][depth] that one row of a pool sees, and which of them its windows are centred in. Columns
// are `stride` apart, each in a window that reaches (kernel - 1) / 2 to the left.
template <typename Element>
struct PooledRows {
    const Element* rows[most_pooled];
    std::size_t count, centre;
    std::size_t width, depth;
    std::size_t kernel, stride;
};

// Internal to each file: see isa/simd.hpp.
[[maybe_unused]] static constexpr std::size_t divide_up(std::size_t a, std::size_t b) { return (a + b - 1) / b; }

using Dynamics = spikformer::Dynamics<float>;

constexpr std::size_t most_product = std::size_t{1} << 24;  // of Q K^T V, tokens times features: exact in a float

// Whether Q K^T comes first, else K^T V. Pairs of tokens are a popcount each, pairs of features an addition for each spike.
// analysis/operations.py counts by the same rule.
[[maybe_unused]] static constexpr bool query_key_first(std::size_t num_tokens, std::size_t head_dim) {
    return 2 * num_tokens < head_dim;
}

// One head's spikes at one step, [num_tokens][head words] each; bits beyond head_dim are 0.
struct AttentionHead {
    const Word *query, *key, *value;
    std::size_t num_tokens, head_dim;
};

// What a tile of neurons reads and writes, and how far apart rows and steps are, in elements.
struct Firing {
    const float* currents = nullptr;
    std::size_t current_row = 0, current_step = 0;  // a step of 0 repeats one step's
    unsigned char* spikes = nullptr;
    std::size_t spike_row = 0, spike_step = 0;
    const float* initial = nullptr;  // null: at rest
    float* voltage = nullptr;        // null, or where the last ones go; may be `initial`
    std::size_t state_row = 0;
    float* membranes = nullptr;      // null, or where H of every step goes, before the reset
    std::size_t membrane_row = 0, membrane_step = 0;
};

}  // namespace spikformer::engine
