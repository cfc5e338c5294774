#include "lists.hpp"

#include <algorithm>
#include <cassert>

namespace spikformer::engine {
namespace {

constexpr std::size_t block_rows = 32;  // rows whose events lie together, listed by one thread

}  // namespace

void EventLists::Lists::reserve(std::size_t num_blocks, std::size_t num_rows, std::size_t num_groups,
                                std::size_t row_inputs) {
    capacity = block_rows * num_groups * row_inputs + merge_margin;
    indices.reserve(num_blocks * capacity);
    starts.reserve(num_rows * num_groups);
    ends.reserve(num_rows * num_groups * num_patterns);
}

void EventLists::list(const Kernels& kernels, Threads& threads, const Source& source,
                      const std::vector<bool>& listed, std::size_t time_steps) {
    const std::size_t count = listed.size();
    positions_ = source.positions();
    time_steps_ = time_steps;
    num_groups_ = divide_up(time_steps, group_steps);
    const std::size_t blocks = divide_up(positions_, block_rows), row_inputs = source.row_words() * word_bits;
    value_capacity_ = source.counts ? block_rows * time_steps * row_inputs + value_margin : 0;
    scratch_.resize(threads.count());
    for (Buffer<std::uint32_t>& scratch : scratch_) {
        scratch.reserve(source.words * word_bits);
    }
    rows_.reserve(count * blocks, count * positions_, num_groups_, row_inputs);
    if (source.neighbours) {
        places_.reserve(count * blocks, count * positions_, num_groups_, source.words * word_bits);
        list_positions(kernels, threads, source, listed, places_);
        merge_neighbours(kernels, threads, source, listed);
    } else {
        values_.reserve(count * blocks * value_capacity_);
        value_starts_.reserve(count * positions_ * num_groups_);
        list_positions(kernels, threads, source, listed, rows_);
    }
}

EventLists::Row EventLists::row(std::size_t row, std::size_t group) const {
    const std::size_t list = row * num_groups_ + group;
    return {rows_.indices.data() + rows_.starts.data()[list],
            value_capacity_ == 0 ? nullptr : values_.data() + value_starts_.data()[list],
            rows_.ends.data() + list * num_patterns};
}

// Each position on its own: all of a row, or a ninth of it.
void EventLists::list_positions(const Kernels& kernels, Threads& threads, const Source& source,
                                const std::vector<bool>& listed, Lists& lists) {
    const std::size_t blocks = divide_up(positions_, block_rows), size = source.words * word_bits;
    threads.for_each(listed.size() * blocks, [&](std::size_t item, std::size_t thread) {
        if (!listed[item / blocks]) {
            return;
        }
        const std::size_t first = item / blocks * positions_ + item % blocks * block_rows;
        const std::size_t last = std::min(first + block_rows, (item / blocks + 1) * positions_);
        std::size_t used = item * lists.capacity, values_used = item * value_capacity_;
        for (std::size_t position = first; position < last; ++position) {
            for (std::size_t group = 0; group < num_groups_; ++group) {
                const std::size_t step = position * time_steps_ + group * group_steps, steps = steps_of(group);
                const std::size_t list = position * num_groups_ + group;
                std::uint32_t* ends = lists.ends.at(list * num_patterns, num_patterns);
                *lists.starts.at(list, 1) = used;
                if (source.counts) {
                    *value_starts_.at(list, 1) = values_used;
                    values_used += kernels.list_counts(source.counts + step * size, size, steps,
                                                       lists.indices.at(used, size),
                                                       values_.at(values_used, steps * size + value_margin), ends,
                                                       scratch_[thread].at(0, size));
                } else {
                    kernels.list_events(source.spikes + step * source.words, source.words, steps,
                                        lists.indices.at(used, size), ends, scratch_[thread].at(0, size));
                }
                used += ends[num_patterns - 1];
            }
        }
    });
}

void EventLists::merge_neighbours(const Kernels& kernels, Threads& threads, const Source& source,
                                  const std::vector<bool>& listed) {
    const std::size_t blocks = divide_up(positions_, block_rows);
    threads.for_each(listed.size() * blocks, [&](std::size_t item, std::size_t) {
        if (!listed[item / blocks]) {
            return;
        }
        const std::size_t sample = item / blocks * positions_, first = item % blocks * block_rows;
        std::size_t used = item * rows_.capacity;
        for (std::size_t row = first; row < std::min(first + block_rows, positions_); ++row) {
            for (std::size_t group = 0; group < num_groups_; ++group) {
                PartOfRow parts[9];
                std::size_t num_parts = 0;
                for (std::size_t place = 0; place < 9; ++place) {
                    std::size_t position = 0;
                    if (neighbour(source.height, source.width, row, place, position)) {
                        const std::size_t list = (sample + position) * num_groups_ + group;
                        const std::uint32_t* ends = places_.ends.at(list * num_patterns, num_patterns);
                        const std::size_t events = ends[num_patterns - 1];
                        parts[num_parts++] = {places_.indices.at(*places_.starts.at(list, 1), events + merge_margin),
                                              ends,
                                              static_cast<Index>(place * source.words * word_bits)};
                    }
                }
                const std::size_t list = (sample + row) * num_groups_ + group;
                std::uint32_t* ends = rows_.ends.at(list * num_patterns, num_patterns);
                *rows_.starts.at(list, 1) = used;
                kernels.merge_events(parts, num_parts, rows_.indices.data() + used, ends);
                used += ends[num_patterns - 1];
                assert(used + merge_margin <= (item + 1) * rows_.capacity);
            }
        }
    });
}

std::size_t EventLists::steps_of(std::size_t group) const {
    return std::min(group_steps, time_steps_ - group * group_steps);
}

std::size_t EventLists::bytes() const {
    std::size_t sum = values_.bytes() + value_starts_.bytes();
    for (const Lists* lists : {&rows_, &places_}) {
        sum += lists->indices.bytes() + lists->starts.bytes() + lists->ends.bytes();
    }
    for (const Buffer<std::uint32_t>& scratch : scratch_) {
        sum += scratch.bytes();
    }
    return sum;
}

}  // namespace spikformer::engine
