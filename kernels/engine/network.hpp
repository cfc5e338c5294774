// A compiled Spikformer: layers in the order they run, and the buffers they run in. Knows nothing of Python or files.
//
// A call is cut into chunks of samples that fit the caches; a chunk goes through layer by layer, its rows and tiles shared
// by the threads. Every sample is computed in an order that depends on that sample alone.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "layer.hpp"
#include "lists.hpp"
#include "threads.hpp"

namespace spikformer::engine {

constexpr std::size_t fired_rows = 16;  // rows whose currents wait for their neurons, in the first-level cache

struct Block {
    std::string name;  // of its attention
    bool mixes = true;  // false: no Q and K, the value alone goes on
    Layer query, key, value, projection, hidden, output;
    Dynamics mixed{};  // of the neuron that reads Q K^T V
    float scale = 1;
    std::size_t num_heads = 1;
    std::size_t query_key_pool = 1;
};

struct Head {
    std::size_t num_classes = 0;
    std::vector<float> weights;  // [num_classes][embed_dim]
    std::vector<float> bias;
};

// Features of a head; all of them where nothing is mixed.
std::size_t head_dim_of(const Block& block);

// Channels of the heads that attention mixes together: as few whole heads as fill whole words of spikes.
std::size_t mixed_width(const Block& block);

enum class Way { measured = 0, events = 1, dense = 2 };

// What a layer did in the last call, over all samples.
struct LayerReport {
    std::string name;
    double list_seconds = 0, product_seconds = 0;
    double additions = 0, inputs = 0;  // inputs counts every step: additions / inputs is the density
    std::size_t dense_samples = 0, samples = 0;
};

// Spikes of one layer for all samples of a call: [B][positions][T][words].
struct RecordedSpikes {
    std::string name;
    std::size_t positions, channels, words;
    std::vector<Word> spikes;
};

struct Input {
    const float* values;  // [B][C][H][W], or [T][B][C][H][W] where `still` is false
    bool still;
    std::size_t batch_size, time_steps, height, width;
};

class Network {
public:
    Network(const Kernels& kernels, std::size_t num_threads) : kernels(kernels), threads(num_threads) {}

    // Voltages of one sample. A batch's are [layers][B][positions][width].
    std::size_t state_size(std::size_t height, std::size_t width) const;

    // Logits [T][B][K] after each step on its own. `state` and `next_state` hold B * state_size voltages, or are null.
    void run(const Input& input, const float* state, float* next_state, float* logits);

    const Kernels& kernels;
    Threads threads;
    std::mutex running;  // one call at a time: the buffers are shared

    std::size_t in_channels = 0;
    std::vector<Layer> stages;
    std::vector<bool> pooled;
    Layer position;
    std::vector<Block> blocks;
    Head head;

    Way way = Way::measured;
    double crossover = 0.5;  // the density above which dense is taken

    std::vector<LayerReport> reports;
    bool recording = false;
    std::vector<RecordedSpikes> recorded;

    std::size_t buffer_bytes() const;

private:
    friend class Chunk;

    // Scratch of one thread.
    struct Desk {
        Buffer<float> inputs, currents, mixed, table;
        Buffer<std::uint8_t> whole_inputs;
        Buffer<std::int32_t> totals;
        Buffer<Word> heads;
    };

    // A tile of a layer, where the layer's spikes go, and where its voltages of the chunk's first sample are.
    struct Tile {
        const Layer* layer;
        Word* spikes;
        std::size_t index, state_offset;
    };

    struct Workspace {
        Buffer<Word> map, pooled, query, key, value, mixed, hidden, pool;
        Buffer<std::uint8_t> counts;
        EventLists lists;
        std::vector<Desk> desks;
        std::vector<Tile> tiles;
        std::vector<std::uint64_t> row_additions;  // of each row of each map
        std::vector<bool> by_events;               // each sample
    };

    void reserve_desks(const Input& input);
    std::size_t samples_together(const Input& input) const;

    Workspace work;
    std::vector<float> no_bias;  // of the neuron after attention
};

}  // namespace spikformer::engine
