#include "lists.hpp"

#include <algorithm>
#include <cassert>

namespace spikformer::engine {
namespace {

constexpr std::size_t block_rows = 32;  // rows whose events lie together, listed by one thread

}  // namespace

void EventLists::Lists::reserve(std::size_t count, std::size_t rows, std::size_t time_steps, std::size_t row_inputs,
                                bool counted) {
    const std::size_t num_blocks = count * divide_up(rows, block_rows);
    const std::size_t num_lists = count * rows * divide_up(time_steps, group_steps);
    capacity = block_rows * divide_up(time_steps, group_steps) * row_inputs + merge_margin;
    indices.reserve(num_blocks * capacity);
    starts.reserve(num_lists);
    ends.reserve(num_lists * num_patterns);
    value_capacity = counted ? block_rows * time_steps * row_inputs + merge_margin : 0;
    values.reserve(num_blocks * value_capacity);
    value_starts.reserve(counted ? num_lists : 0);
}

std::size_t EventLists::Lists::bytes() const {
    return indices.bytes() + values.bytes() + starts.bytes() + value_starts.bytes() + ends.bytes();
}

void EventLists::list(const Kernels& kernels, Threads& threads, const Source& source,
                      const std::vector<bool>& listed, std::size_t time_steps) {
    time_steps_ = time_steps;
    num_groups_ = divide_up(time_steps, group_steps);
    scratch_.resize(threads.count());
    for (Buffer<std::uint32_t>& scratch : scratch_) {
        scratch.reserve(source.words * word_bits);
    }
    const bool counted = source.counts != nullptr;
    rows_.reserve(listed.size(), source.rows(), time_steps, source.row_words() * word_bits, counted);
    if (source.window.kernel == 1) {
        list_positions(kernels, threads, source, listed, rows_, source.rows());
        return;
    }
    const std::size_t positions = source.window.positions();
    places_.reserve(listed.size(), positions, time_steps, source.words * word_bits, counted);
    list_positions(kernels, threads, source, listed, places_, positions);
    merge_positions(kernels, threads, source, listed);
}

EventLists::Row EventLists::row(std::size_t row, std::size_t group) const {
    const std::size_t list = row * num_groups_ + group;
    return {rows_.indices.data() + rows_.starts.data()[list],
            rows_.value_capacity == 0 ? nullptr : rows_.values.data() + rows_.value_starts.data()[list],
            rows_.ends.data() + list * num_patterns};
}

// Each position on its own: all of a row, or a part of it. Without a window, a stride leaves some out.
void EventLists::list_positions(const Kernels& kernels, Threads& threads, const Source& source,
                                const std::vector<bool>& listed, Lists& lists, std::size_t rows) {
    const Window& window = source.window;
    const std::size_t blocks = divide_up(rows, block_rows), size = source.words * word_bits;
    threads.for_each(listed.size() * blocks, [&](std::size_t item, std::size_t thread) {
        const std::size_t sample = item / blocks, first = item % blocks * block_rows;
        if (!listed[sample]) {
            return;
        }
        std::size_t used = item * lists.capacity, values_used = item * lists.value_capacity;
        for (std::size_t row = first; row < std::min(first + block_rows, rows); ++row) {
            const std::size_t position = window.kernel == 1 && window.stride > 1 ? window.centre(row) : row;
            for (std::size_t group = 0; group < num_groups_; ++group) {
                const std::size_t list = (sample * rows + row) * num_groups_ + group, steps = steps_of(group);
                const std::size_t step =
                    (sample * window.positions() + position) * time_steps_ + group * group_steps;
                std::uint32_t* ends = lists.ends.at(list * num_patterns, num_patterns);
                *lists.starts.at(list, 1) = used;
                if (source.counts) {
                    *lists.value_starts.at(list, 1) = values_used;
                    values_used += kernels.list_counts(source.counts + step * size, size, steps,
                                                       lists.indices.at(used, size),
                                                       lists.values.at(values_used, steps * size + value_margin), ends,
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

void EventLists::merge_positions(const Kernels& kernels, Threads& threads, const Source& source,
                                 const std::vector<bool>& listed) {
    const Window& window = source.window;
    const std::size_t rows = source.rows(), blocks = divide_up(rows, block_rows);
    assert(window.places() <= most_parts);
    threads.for_each(listed.size() * blocks, [&](std::size_t item, std::size_t) {
        const std::size_t sample = item / blocks, first = item % blocks * block_rows;
        if (!listed[sample]) {
            return;
        }
        std::size_t used = item * rows_.capacity, values_used = item * rows_.value_capacity;
        for (std::size_t row = first; row < std::min(first + block_rows, rows); ++row) {
            for (std::size_t group = 0; group < num_groups_; ++group) {
                PartOfRow parts[most_parts];
                std::size_t num_parts = 0;
                window.for_each_seen(row, [&](std::size_t place, std::size_t position) {
                    const std::size_t list = (sample * window.positions() + position) * num_groups_ + group;
                    const std::uint32_t* ends = places_.ends.at(list * num_patterns, num_patterns);
                    const std::size_t events = ends[num_patterns - 1];
                    PartOfRow& part = parts[num_parts++];
                    part.indices = places_.indices.at(*places_.starts.at(list, 1), events + merge_margin);
                    part.ends = ends;
                    part.first = static_cast<Index>(place * source.words * word_bits);
                    part.values = source.counts ? places_.values.data() + *places_.value_starts.at(list, 1) : nullptr;
                });
                const std::size_t list = (sample * rows + row) * num_groups_ + group;
                std::uint32_t* ends = rows_.ends.at(list * num_patterns, num_patterns);
                *rows_.starts.at(list, 1) = used;
                if (source.counts) {
                    *rows_.value_starts.at(list, 1) = values_used;
                    values_used += kernels.merge_counts(parts, num_parts, rows_.indices.data() + used,
                                                        rows_.values.data() + values_used, ends);
                } else {
                    kernels.merge_events(parts, num_parts, rows_.indices.data() + used, ends);
                }
                used += ends[num_patterns - 1];
                assert(used + merge_margin <= (item + 1) * rows_.capacity);
                assert(!source.counts || values_used + merge_margin <= (item + 1) * rows_.value_capacity);
            }
        }
    });
}

std::size_t EventLists::steps_of(std::size_t group) const {
    return std::min(group_steps, time_steps_ - group * group_steps);
}

std::size_t EventLists::bytes() const {
    std::size_t sum = rows_.bytes() + places_.bytes();
    for (const Buffer<std::uint32_t>& scratch : scratch_) {
        sum += scratch.bytes();
    }
    return sum;
}

}  // namespace spikformer::engine
