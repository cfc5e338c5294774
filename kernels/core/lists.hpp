// The events of every row that a product reads, listed once and used by all its tiles.
#pragma once

#include <vector>

#include "buffer.hpp"
#include "kernels.hpp"
#include "threads.hpp"

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

// The pixel a 3x3 kernel reads at one of its nine places; false where it lies outside.
inline bool neighbour(std::size_t height, std::size_t width, std::size_t row, std::size_t place,
                      std::size_t& position) {
    const std::size_t y = row / width + place / 3, x = row % width + place % 3;  // one too large each
    if (y == 0 || x == 0 || y > height || x > width) {
        return false;
    }
    position = (y - 1) * width + x - 1;
    return true;
}

class EventLists {
public:
    struct Row {
        const Index* indices;
        const float* values;  // of counts alone
        const std::uint32_t* ends;
    };

    // Lists every row of the samples that are `listed`. A convolution's rows are put together from the lists of their
    // nine neighbours: each position is sorted once, not nine times.
    void list(const Kernels& kernels, Threads& threads, const Source& source, const std::vector<bool>& listed,
              std::size_t time_steps);

    // Rows count through all samples.
    Row row(std::size_t row, std::size_t group) const;
    std::size_t bytes() const;

private:
    struct Lists {
        std::size_t capacity = 0;  // of one block of rows
        Buffer<Index> indices;
        Buffer<std::size_t> starts;  // of each list, in indices
        Buffer<std::uint32_t> ends;

        void reserve(std::size_t num_blocks, std::size_t num_rows, std::size_t num_groups, std::size_t row_inputs);
    };

    void list_positions(const Kernels& kernels, Threads& threads, const Source& source, const std::vector<bool>& listed,
                        Lists& lists);
    void merge_neighbours(const Kernels& kernels, Threads& threads, const Source& source,
                          const std::vector<bool>& listed);
    std::size_t steps_of(std::size_t group) const;

    std::size_t positions_ = 0, time_steps_ = 0, num_groups_ = 0;
    Lists rows_, places_;  // what products read; the positions that a convolution's rows are made of
    std::size_t value_capacity_ = 0;
    Buffer<float> values_;
    Buffer<std::size_t> value_starts_;
    std::vector<Buffer<std::uint32_t>> scratch_;  // of each thread
};

}  // namespace spikformer::engine
