// The events of every row that a product reads, listed once and used by all its tiles.
#pragma once

#include <vector>

#include "buffer.hpp"
#include "kernels.hpp"
#include "threads.hpp"
#include "window.hpp"

namespace spikformer::engine {

// What a product reads: a map or tokens of spikes, or the counts of the residual stream.
struct Source {
    const Word* spikes = nullptr;
    const std::uint8_t* counts = nullptr;
    Window window;
    std::size_t words = 0;
    std::size_t channels = 0;

    std::size_t rows() const { return window.outputs(); }  // of inputs, one for each output position
    std::size_t row_words() const { return window.places() * words; }
    std::size_t row_inputs() const { return window.places() * channels; }
};

class EventLists {
public:
    struct Row {
        const Index* indices;
        const float* values;  // of counts alone
        const std::uint32_t* ends;
    };

    // Lists every row of the samples that are `listed`. A convolution's rows are put together from the lists of the
    // positions that it sees: each position is sorted once, and not once for each window.
    void list(const Kernels& kernels, Threads& threads, const Source& source, const std::vector<bool>& listed,
              std::size_t time_steps);

    // Rows count through all samples.
    Row row(std::size_t row, std::size_t group) const;
    std::size_t bytes() const;

private:
    struct Lists {
        std::size_t capacity = 0, value_capacity = 0;  // of one block of rows
        Buffer<Index> indices;
        Buffer<float> values;  // of counts alone
        Buffer<std::size_t> starts, value_starts;  // of each list
        Buffer<std::uint32_t> ends;

        void reserve(std::size_t count, std::size_t rows, std::size_t time_steps, std::size_t row_inputs, bool counted);
        std::size_t bytes() const;
    };

    void list_positions(const Kernels& kernels, Threads& threads, const Source& source, const std::vector<bool>& listed,
                        Lists& lists, std::size_t rows);
    void merge_positions(const Kernels& kernels, Threads& threads, const Source& source,
                         const std::vector<bool>& listed);
    std::size_t steps_of(std::size_t group) const;

    std::size_t time_steps_ = 0, num_groups_ = 0;
    Lists rows_, places_;  // what products read; the positions that a convolution's rows are made of
    std::vector<Buffer<std::uint32_t>> scratch_;  // of each thread
};

}  // namespace spikformer::engine
