// A few samples on their way through the network: every operation is a loop whose items the threads share.
#pragma once

#include <initializer_list>

#include "network.hpp"

namespace spikformer::engine {

// What a product reads: a map or tokens of spikes, or the counts of the residual stream.
struct Source {
    const Word* spikes = nullptr;
    const std::uint8_t* counts = nullptr;
    std::size_t height = 1, width = 1;  // tokens are a map of one row
    std::size_t words = 0;
    std::size_t channels = 0;
    bool neighbours = false;  // a 3x3 convolution: a row is nine positions

    std::size_t positions() const { return height * width; }
    std::size_t row_words() const { return neighbours ? 9 * words : words; }
    std::size_t row_inputs() const { return neighbours ? 9 * channels : channels; }
};

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

    Source split_patches();  // the map that the position embedding was added to
    void encode(const Block& block);
    void read_out(float* logits);

    void convolve_pixels(const Layer& layer, Word* spikes);
    void multiply_and_fire(const Source& source, std::initializer_list<Target> targets);
    void pool_map(const Source& map, Word* pooled);
    void pool_tokens(Buffer<Word>& tokens, std::size_t words, std::size_t kernel);
    void attend(const Block& block, Word* spikes);
    void add_to_stream(const Word* spikes, std::size_t words);

    void list_events(const Source& source, LayerReport& report);
    void multiply_tile(const Source& source, const Target& target, std::size_t tile, std::size_t sample,
                       std::size_t offset, Desk& desk);
    void fire_tile(const Layer& layer, std::size_t tile, const float* currents, std::size_t current_stride,
                   std::size_t position, std::size_t offset, Word* spikes);

    const Word* spikes_of_row(const Source& source, std::size_t sample, std::size_t row, std::size_t step,
                              std::size_t steps, Desk& desk) const;
    void expand_row(const Source& source, std::size_t sample, std::size_t row, Desk& desk, float* values) const;
    bool takes_dense(const Source& source, std::size_t sample) const;

    std::size_t steps_of(std::size_t group) const;
    std::size_t list_capacity(const Source& source) const;
    std::size_t list_values(const Source& source) const;
    std::size_t claim_state(std::size_t positions, const Layer& layer);
    LayerReport& report(const std::string& name, std::size_t num_layers = 1);
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
