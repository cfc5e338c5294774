// A few samples on their way through a program: every op is a loop whose items the threads share.
#pragma once

#include <chrono>

#include "engine.hpp"

namespace spikformer::engine {

constexpr std::size_t items_per_thread = 6;  // of a loop, so that none waits long for the last

// Adds the time of its life to a total.
class Stopwatch {
public:
    explicit Stopwatch(double& total) : total_(total), begin_(std::chrono::steady_clock::now()) {}
    ~Stopwatch() { total_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(); }

private:
    double& total_;
    std::chrono::steady_clock::time_point begin_;
};

class Executor {
public:
    // Samples first ... first + count of a call. `values` and `state_offsets` are those of the program for this input;
    // `state` and `next_state` are those of the whole call, or null.
    Executor(Engine& engine, const Input& input, const std::vector<Value>& values,
             const std::vector<std::size_t>& state_offsets, std::size_t first, std::size_t count, const float* state,
             float* next_state);

    void run(float* logits);

private:
    using Scratch = Engine::ThreadScratch;
    using Tile = Engine::Tile;

    // What a thread takes of a product at once: tiles, and one of several splits of the rows.
    struct Share {
        std::size_t tiles, splits;
    };

    // Each op, or several that run together.
    void convolve_pixels(const FusedOps& fused);
    void convolve(const FusedOps& fused);
    void convolve_depthwise(const FusedOps& fused);
    void attend(const FusedOps& fused);
    void fire(std::size_t index);
    void pool(std::size_t index);
    void pool_tokens(std::size_t index);
    void dilate_heads(std::size_t index);
    void add(std::size_t index);
    void conjunction(std::size_t index);
    void sum_tokens(std::size_t index);
    void sum_heads(std::size_t index);
    void read_out(std::size_t index, float* logits);

    // Buffers by their number.
    std::size_t steps_of(std::size_t buffer) const { return values[buffer].is_static ? 1 : time_steps; }
    Word* spikes(std::size_t buffer, std::size_t begin, std::size_t size) {
        return work.slots[slot(buffer)].spikes.at(begin, size);
    }
    std::uint8_t* counts(std::size_t buffer, std::size_t begin, std::size_t size) {
        return work.slots[slot(buffer)].counts.at(begin, size);
    }
    float* floats(std::size_t buffer, std::size_t begin, std::size_t size) {
        return work.slots[slot(buffer)].floats.at(begin, size);
    }
    std::size_t words_of(std::size_t buffer) const {  // of all samples
        return count * values[buffer].positions() * steps_of(buffer) * values[buffer].words();
    }
    std::size_t slot(std::size_t buffer) const { return engine.slots_.of_buffer[buffer]; }
    void reserve(std::size_t buffer);
    Source source_of(const Op& product);
    void clear_margin(std::size_t buffer);

    // Products. Rows are one for each output position; `begin` counts those of a sample.
    void add_tiles(std::size_t product, const Tail& tail);
    template <typename Multiply>
    void pool_currents(const FusedOps& fused, const Multiply& multiply);
    void multiply_pixels(const Op& op, std::size_t sample, std::size_t begin, std::size_t rows, const Tile* first_tile,
                         const Tile* last_tile, Scratch& scratch);
    void choose_modes(const Source& source, OpReport& report);
    std::uint64_t count_additions(const Source& source, std::size_t sample, std::size_t row) const;
    void list_events(const Source& source, OpReport& report);
    Share share_of(const Source& source, std::size_t num_tiles, std::size_t num_inputs) const;
    void multiply_rows(const Source& source, std::size_t sample, std::size_t begin, std::size_t rows,
                       const Tile* first_tile, const Tile* last_tile, Scratch& scratch);
    void add_events(const Source& source, std::size_t row, const float* weights, float* currents) const;
    const std::uint8_t* byte_rows_of(const Source& source, std::size_t sample, std::size_t begin, std::size_t rows,
                                      Scratch& scratch) const;
    template <typename Value>
    void expand_row(const Source& source, std::size_t sample, std::size_t row, Value* values) const;
    void mix_head(const Op& op, std::size_t sample, std::size_t head, std::size_t t, Scratch& scratch, float* currents,
                  std::size_t stride);

    // Neurons. Rows are positions one after another; `position` counts through all samples of the chunk.
    void finish_tile(const Tile& tile, float* currents, std::size_t current_row, std::size_t current_step,
                     std::size_t position, std::size_t rows);
    void fire_tile(const Op& neuron, Word* spikes, std::size_t words, std::size_t first_channel, const float* bias,
                   const float* currents, std::size_t current_row, std::size_t current_step, std::size_t position,
                   std::size_t rows, std::size_t state_offset);
    std::size_t state_offset(std::size_t neuron) const;

    // Sums over the positions of one sample at one step, of spikes and counts, or of floats.
    const std::int32_t* totals_of(std::size_t buffer, std::size_t sample, std::size_t t, Scratch& scratch);
    const double* sums_of(std::size_t buffer, std::size_t sample, std::size_t t, Scratch& scratch);

    // After an op has fired: interventions, then taps.
    void finish(std::size_t index);
    void intervene(const Intervention& intervention);
    OpReport& report(const std::string& name);

    Engine& engine;
    const Kernels& kernels;
    const std::vector<Op>& ops;
    Engine::Workspace& work;
    const Input& input;
    const std::vector<Value>& values;
    const std::vector<std::size_t>& state_offsets;
    const std::size_t first, count, time_steps, num_groups;
    const float* state;
    float* next_state;
    std::vector<float*> membranes;  // of each op that is tapped for them; empty: of none
    std::size_t next_report = 0;
};

}  // namespace spikformer::engine
