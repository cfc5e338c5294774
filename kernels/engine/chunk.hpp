// A few samples on their way through the network: every operation is a loop whose items the threads share.
#pragma once

#include <chrono>
#include <initializer_list>

#include "network.hpp"

namespace spikformer::engine {

// Adds the time of its life to a total.
class Stopwatch {
public:
    explicit Stopwatch(double& total) : total_(total), begin_(std::chrono::steady_clock::now()) {}
    ~Stopwatch() { total_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(); }

private:
    double& total_;
    std::chrono::steady_clock::time_point begin_;
};

// A layer, and where its spikes go.
struct Target {
    const Layer* layer;
    Word* spikes;
};

class Chunk {
public:
    // Samples first ... first + count of a call. `state` and `next_state` are those of the whole call, or null.
    Chunk(Network& network, const Input& input, std::size_t first, std::size_t count, const float* state,
          float* next_state);

    void run(float* logits);

private:
    using Desk = Network::Desk;
    using Tile = Network::Tile;

    // What a thread takes of a product at once: tiles, and one of several splits of the rows.
    struct Share {
        std::size_t tiles, splits;
    };

    void split_patches();
    void encode(const Block& block);
    void read_out(float* logits);

    void convolve_pixels(const Layer& layer, Word* spikes);
    void multiply_and_fire(const Source& source, std::initializer_list<Target> targets);
    void pool_map(const Source& map, Word* pooled);
    void pool_tokens(Buffer<Word>& tokens, std::size_t words, std::size_t kernel);
    void attend(const Block& block, Word* spikes);
    void mix_head(const Block& block, std::size_t sample, std::size_t index, std::size_t t, Desk& desk, float* currents,
                  std::size_t stride);
    void add_to_stream(const Word* spikes, std::size_t words);

    void choose_ways(const Source& source, LayerReport& told);
    std::uint64_t count_additions(const Source& source, std::size_t sample, std::size_t row) const;
    void list_events(const Source& source, LayerReport& told);
    Share share_of(const Source& source, std::size_t num_tiles, std::size_t num_inputs) const;
    void multiply_rows(const Source& source, std::size_t sample, std::size_t begin, const Tile* first_tile,
                       const Tile* last_tile, Desk& desk);
    void add_events(const Source& source, std::size_t row, const float* weights, float* currents) const;
    void fire_tile(const Layer& layer, std::size_t tile, const float* currents, std::size_t current_row,
                   std::size_t current_step, std::size_t position, std::size_t rows, std::size_t offset, Word* spikes);

    const std::uint8_t* whole_rows_of(const Source& source, std::size_t sample, std::size_t begin, std::size_t rows,
                                      Desk& desk) const;
    template <typename Value>
    void expand_row(const Source& source, std::size_t sample, std::size_t row, Value* values) const;

    std::size_t claim_state(std::size_t positions, const Layer& layer);
    LayerReport& report(const std::string& name);
    void record(const std::string& name, std::size_t positions, std::size_t channels, const Word* spikes);

    Network& net;
    const Kernels& kernels;
    Network::Workspace& work;
    const Input& input;
    const std::size_t first, count, time_steps, num_groups;
    const float* state;
    float* next_state;
    std::size_t state_used = 0;
    std::size_t num_tokens = 0;
    std::size_t stream_words = 0;
    std::size_t next_report = 0, next_record = 0;
};

}  // namespace spikformer::engine
