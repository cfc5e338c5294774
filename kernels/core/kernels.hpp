// One table of kernels for each instruction set; whatever computes has a NumPy twin in spikformer/engine/reference/.
#pragma once

#include "layout.hpp"

namespace spikformer::engine {

// Dense products of spikes or counts in integers, for the sets that have instructions for them. A thread calls `begin`
// before its products and `end` after them (integer_scope.hpp).
struct IntegerKernels {
    void (*begin)();
    void (*end)();

    // Spikes as 0 and 1, in bytes.
    void (*expand_bytes)(const Word* spikes, std::size_t words, std::uint8_t* values);

    // currents [rows][tile] = inputs [rows][num_inputs] @ weights in digits; `inputs` and `currents` hold a multiple of
    // integer_rows.
    void (*integer_linear)(const std::uint8_t* inputs, std::size_t rows, std::size_t num_inputs,
                           const std::int8_t* digits, const float* scales, std::size_t tile, float* currents);
};

struct Kernels {
    const char* name;
    std::size_t tile;                // outputs in a tile
    const IntegerKernels* integers;  // null: dense products are of floats

    // The events of one row of spikes, for one group of steps, `words` apart. Writes indices sorted by pattern, and
    // ends[p], where the events of pattern p end. `indices` and `scratch` hold words * 64.
    void (*list_events)(const Word* row, std::size_t words, std::size_t num_steps, Index* indices, std::uint32_t* ends,
                        std::uint32_t* scratch);

    // The same of one row of counts [num_steps][size], size a multiple of 16; `values` gets the counts of each event at
    // the steps it fires at, and holds value_margin more than num_steps * size. Returns how many values there are.
    std::size_t (*list_counts)(const std::uint8_t* row, std::size_t size, std::size_t num_steps, Index* indices,
                               float* values, std::uint32_t* ends, std::uint32_t* scratch);

    // The events of a row that is made of parts, pattern by pattern in the order of the parts. Reads and writes
    // up to merge_margin indices beyond what is there.
    void (*merge_events)(const PartOfRow* parts, std::size_t num_parts, Index* indices, std::uint32_t* ends);

    // The same of counts, whose values follow their events, with the same margin. Returns how many values there are.
    std::size_t (*merge_counts)(const PartOfRow* parts, std::size_t num_parts, Index* indices, float* values,
                                std::uint32_t* ends);

    // currents[t] = sum of the weights of the events at step t, for the steps of a group, in one tile.
    void (*spike_linear)(const Index* indices, const std::uint32_t* ends, std::size_t num_steps, const float* weights,
                         float* currents);
    void (*count_linear)(const Index* indices, const float* values, const std::uint32_t* ends, std::size_t num_steps,
                         const float* weights, float* currents);

    // currents = inputs @ weights for rows of plain floats [rows][num_inputs], in one tile.
    void (*dense_linear)(const float* inputs, std::size_t rows, std::size_t num_inputs, const float* weights,
                         float* currents);

    // currents[t] = sum of the weights [places][tile] of the places that fire, channel by channel, in one tile: in the
    // order of the places, for up to group_steps steps. The tile begins at the bit `shift` of the word `word`.
    void (*depthwise_linear)(const SeenPlace* places, std::size_t num_places, std::size_t num_steps,
                             std::size_t step_words, std::size_t word, std::size_t shift, const float* weights,
                             float* currents);

    // Bias and neuron over all steps, row by row: `tile` bits a step.
    void (*fire)(const Firing& firing, std::size_t rows, std::size_t time_steps, const float* bias,
                 const Dynamics& dynamics);

    // currents[n * stride + d] = scale (Q K^T V)[n][d] of one head at one step; sums are at most most_product. Layout's
    // query_key_first says which of the two to take. `table` is scratch, head_dim * 64.
    void (*attend_query_key_first)(const AttentionHead& head, float scale, float* currents, std::size_t stride);
    void (*attend_key_value_first)(const AttentionHead& head, float scale, float* currents, std::size_t stride,
                                   float* table);

    // One row of a max-pool or max filter; the depth of floats is a multiple of the tile.
    void (*pool_map_row)(const PooledRows<Word>& from, Word* pooled);
    void (*pool_counts_row)(const PooledRows<std::uint8_t>& from, std::uint8_t* pooled);
    void (*pool_floats_row)(const PooledRows<float>& from, float* pooled);

    // The pool along tokens [num_tokens][depth], and the 3x3 max filter over tokens [num_tokens][time_steps][words] and
    // channels; `firsts` and `lasts` have the channels that begin and end a head, and `firsts` the padding.
    void (*pool_tokens)(const Word* tokens, std::size_t num_tokens, std::size_t depth, std::size_t kernel,
                        Word* pooled);
    void (*dilate_heads)(const Word* tokens, std::size_t num_tokens, std::size_t time_steps, std::size_t words,
                         const Word* firsts, const Word* lasts, Word* dilated);

    // Masks: spikes & (mask ^ flip); the bits of heads for all channels of each; and how many channels of each fire.
    void (*and_spikes)(const Word* spikes, const Word* mask, std::size_t words, Word flip, Word* masked);
    void (*spread_heads)(const Word* heads, std::size_t num_heads, std::size_t head_dim, Word* spread);
    void (*sum_heads)(const Word* spikes, std::size_t num_heads, std::size_t head_dim, float* sums);

    // How many inputs are not silent: what events would cost.
    std::size_t (*count_spikes)(const Word* spikes, std::size_t words);
    std::size_t (*count_active)(const std::uint8_t* counts, std::size_t size);

    // The residual stream, and both kinds of input as floats.
    void (*add_spikes)(const Word* spikes, std::size_t words, std::uint8_t* counts);
    void (*expand_spikes)(const Word* spikes, std::size_t words, float* values);
    void (*expand_counts)(const std::uint8_t* counts, std::size_t size, float* values);

    // Sums over tokens of spikes, for all channels of whole words, and of counts; and the readout.
    void (*sum_spikes)(const Word* spikes, std::size_t num_tokens, std::size_t token_stride, std::size_t words,
                       std::int32_t* totals);
    void (*sum_tokens)(const std::uint8_t* counts, std::size_t num_tokens, std::size_t token_stride, std::size_t size,
                       std::int32_t* totals);
    void (*read_out)(const std::int32_t* totals, std::size_t num_tokens, std::size_t size, const float* weights,
                     const float* bias, std::size_t num_classes, float* logits);

    // Streams of floats: a sum (`sum` may be `a` or `b`, `size` is a multiple of the tile), and the readout.
    void (*add_floats)(const float* a, const float* b, std::size_t size, float* sum);
    void (*sum_floats)(const float* values, std::size_t num_tokens, std::size_t token_stride, std::size_t size,
                       double* totals);
    void (*read_out_floats)(const double* totals, std::size_t num_tokens, std::size_t size, const float* weights,
                            const float* bias, std::size_t num_classes, float* logits);
};

// The best table this machine can run, or the named one ("scalar", "neon", "wasm", "avx2", "avx512", "amx"); null if it
// cannot.
const Kernels* choose_kernels(const char* name);

}  // namespace spikformer::engine
