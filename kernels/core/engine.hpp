// The engine: a program on one machine, with its threads and the memory it runs in. Knows nothing of Python or files.
//
// A call is cut into chunks of samples that fit the caches; a chunk goes through the program op by op, its rows and tiles
// shared by the threads. Every sample is computed in an order that depends on that sample alone.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "lists.hpp"
#include "program.hpp"
#include "threads.hpp"

namespace spikformer::engine {

constexpr std::size_t fired_rows = 16;  // rows whose currents wait for their neurons, in the first-level cache
constexpr std::size_t most_pooled_tiles = 8;  // of a product whose currents are pooled, that a thread computes at once

// How a product of spikes or counts is computed: by its events, densely, or by the cheaper of the two for each sample.
enum class Mode { automatic = 0, events = 1, dense = 2 };

// What an op with a product did in the last call, over all samples.
struct OpReport {
    std::string name;
    double list_seconds = 0, product_seconds = 0;
    // Inputs of every step that are spikes or counts, and those of them that are not 0: their share is the density.
    double additions = 0, inputs = 0;
    std::size_t dense_samples = 0, samples = 0;
};

// What a call keeps of one op's neurons, for all its samples. Spikes are as other ops read them, after interventions.
struct Tap {
    Tap(std::size_t op, bool wants_membranes) : op(op), wants_membranes(wants_membranes) {}

    std::size_t op;
    bool wants_membranes;
    std::size_t batch_size = 0, time_steps = 0;  // of the last call, as all below
    std::size_t positions = 0, channels = 0, words = 0;
    std::vector<Word> spikes;      // [B][positions][T][words]
    std::vector<float> membranes;  // [B][positions][T][words * 64], before the reset
};

// A change to the spikes that an op fires, before anything reads them: they are replaced, then some channels are
// silenced, then any of them get spikes of noise, each with the same probability and by its own place in the call alone.
struct Intervention {
    std::size_t op;
    std::vector<Word> replacement;  // [B][positions][T][words], of every call until it ends; empty: none
    std::vector<Word> kept;         // [words]: the channels that may fire
    double noise = 0;               // probability of a spike that was not there
    std::uint64_t seed = 0;
};

struct Input {
    const float* values;  // [B][C][H][W], or [T][B][C][H][W] where it is not static
    bool is_static;
    std::size_t batch_size, time_steps, height, width;
};

class Engine {
public:
    Engine(Program program, std::size_t num_threads);

    const Program& program() const { return program_; }
    std::size_t find_neurons(const std::string& name) const;  // an op's index; std::invalid_argument if there are none
    std::size_t num_threads() const { return threads_.count(); }

    // Voltages of one sample. A batch's are [neurons' ops][B][positions][padded channels].
    std::size_t state_size(std::size_t height, std::size_t width) const;

    // Logits [T][B][K] after each step on its own. `state` and `next_state` hold B * state_size voltages, or are null.
    // One call at a time: the buffers are shared, so others wait.
    void run(const Input& input, const float* state, float* next_state, float* logits);

    Mutex running;

    Mode mode = Mode::automatic;
    // Where the mode is automatic, a sample's product is dense above this density: of windows over spikes, of spikes, and
    // of counts.
    std::array<double, 3> density_thresholds{0.5, 0.5, 0.5};
    std::vector<Intervention> interventions;

    std::vector<OpReport> reports;
    std::vector<Tap> taps;

    std::size_t buffer_bytes() const;

private:
    friend class Executor;

    struct ThreadScratch {
        Buffer<float> inputs, currents, mixed, table, pooled;
        Buffer<std::uint8_t> byte_inputs;
        Buffer<std::int32_t> totals;
        Buffer<double> sums;
        Buffer<Word> heads;

        std::size_t bytes() const;
    };

    // Memory of one slot; a slot keeps one kind of buffer.
    struct Slot {
        Buffer<Word> spikes;
        Buffer<std::uint8_t> counts;
        Buffer<float> floats;
    };

    // A tile of a product, and where its currents go: added to a stream, kept, read by neurons; each may be null.
    struct Tile {
        const Op* product = nullptr;
        std::size_t index = 0;
        const float* residual = nullptr;
        std::size_t residual_steps = 1;
        float* kept = nullptr;  // the tile's first channel, of the position below
        std::size_t kept_width = 0, kept_position = 0;
        const Op* neuron = nullptr;
        Word* spikes = nullptr;
        std::size_t state_offset = 0;
    };

    struct Workspace {
        std::vector<Slot> slots;
        EventLists lists;
        std::vector<ThreadScratch> scratch;
        std::vector<Tile> tiles;
        std::vector<std::uint64_t> row_additions;  // of each row of each map
        std::vector<bool> by_events;               // each sample
    };

    void prepare_taps(const std::vector<Value>& values, std::size_t batch_size, std::size_t time_steps);
    void check_interventions(const std::vector<Value>& values, std::size_t batch_size, std::size_t time_steps) const;
    void reserve_scratch(const std::vector<Value>& values, std::size_t time_steps);
    std::size_t samples_together(const std::vector<Value>& values, std::size_t time_steps) const;

    Program program_;
    std::vector<FusedOps> fused_;
    Program::Slots slots_;
    Threads threads_;
    Workspace work_;
    std::vector<float> no_bias_;  // of neurons that read no product
};

}  // namespace spikformer::engine
