// Rows of a product: by events or densely, sample by sample, tile by tile.
#include <algorithm>
#include <numeric>
#include <type_traits>

#include "executor.hpp"
#include "integer_scope.hpp"

namespace spikformer::engine {
namespace {

constexpr std::size_t cached_weights = 512 * 1024;  // bytes: a part of a second-level cache
constexpr std::size_t cached_digits = 1024 * 1024;  // a larger one: little else is read

}  // namespace

// How a product is shared by the threads. By events, a thread takes a few tiles at once: their weights stay in its
// second-level cache while they serve all rows, and it writes neighbouring spikes before another thread does; rows are
// split only if there are too few tiles. In integers it takes as many tiles as that cache holds, and a part of the
// rows: those are expanded once for all these tiles.
Executor::Share Executor::share_of(const Source& source, std::size_t num_tiles, std::size_t num_inputs) const {
    const std::size_t items = items_per_thread * engine.threads_.count();
    const std::size_t blocks = count * divide_up(source.rows(), fired_rows);
    const auto dense = static_cast<std::size_t>(std::count(work.by_events.begin(), work.by_events.end(), false));
    if (kernels.integers && 2 * dense > count) {
        const std::size_t most = cached_digits / (num_inputs * kernels.tile * num_digits);
        const std::size_t tiles = std::clamp<std::size_t>(most, 1, num_tiles);
        return {tiles, std::min(blocks, divide_up(items, divide_up(num_tiles, tiles)))};
    }
    const std::size_t splits = std::min(blocks, divide_up(items, num_tiles));
    const std::size_t most = cached_weights / (num_inputs * kernels.tile * sizeof(float));
    return {std::max<std::size_t>(1, std::min(num_tiles * splits / items, most)), splits};
}

// How many additions events would take, and with them what is cheaper for each sample.
void Executor::choose_modes(const Source& source, OpReport& done) {
    const std::size_t height = source.window.height;
    work.row_additions.resize(count * height);
    engine.threads_.for_each(count * height, [&](std::size_t item, std::size_t) {
        work.row_additions[item] = count_additions(source, item / height, item % height);
    });
    work.by_events.assign(count, engine.mode == Mode::events);
    const double threshold = engine.density_thresholds[source.counts ? 2 : source.window.kernel > 1 ? 0 : 1];
    const double inputs = static_cast<double>(source.rows() * time_steps * source.row_inputs());
    for (std::size_t sample = 0; sample < count; ++sample) {
        const auto rows = work.row_additions.begin() + static_cast<std::ptrdiff_t>(sample * height);
        const auto additions = static_cast<double>(
            std::accumulate(rows, rows + static_cast<std::ptrdiff_t>(height), std::uint64_t{0}));
        if (engine.mode == Mode::automatic) {
            work.by_events[sample] = additions <= threshold * inputs;
        }
        done.additions += additions;
        done.dense_samples += !work.by_events[sample];
    }
    done.samples += count;
    done.inputs += static_cast<double>(count) * inputs;
}

// Of one row of a map: a position counts for every window that sees it.
std::uint64_t Executor::count_additions(const Source& source, std::size_t sample, std::size_t row) const {
    const Window& window = source.window;
    const std::size_t first = (sample * window.height + row) * window.width, depth = time_steps * source.words;
    const auto active = [&](std::size_t position, std::size_t positions) -> std::uint64_t {
        return source.counts ? kernels.count_active(source.counts + position * depth * word_bits,
                                                    positions * depth * word_bits)
                             : kernels.count_spikes(source.spikes + position * depth, positions * depth);
    };
    if (window.is_plain()) {
        return active(first, window.width);
    }
    const std::size_t rows = window.seen_by(row, window.height);
    std::uint64_t additions = 0;
    for (std::size_t x = 0; rows > 0 && x < window.width; ++x) {
        const std::size_t columns = window.seen_by(x, window.width);
        additions += columns > 0 ? active(first + x, 1) * columns : 0;
    }
    return additions * rows;
}

void Executor::list_events(const Source& source, OpReport& done) {
    const Stopwatch watch(done.list_seconds);
    choose_modes(source, done);
    if (std::count(work.by_events.begin(), work.by_events.end(), true) > 0) {
        work.lists.list(kernels, engine.threads_, source, work.by_events, time_steps);
    }
}

// A few rows of one sample, in one tile after another: their currents, then their neurons.
void Executor::multiply_rows(const Source& source, std::size_t sample, std::size_t begin, std::size_t rows,
                             const Tile* first_tile, const Tile* last_tile, Scratch& scratch) {
    const std::size_t first_row = sample * source.rows() + begin, row_size = time_steps * kernels.tile;
    const bool dense = !work.by_events[sample];
    const IntegerKernels* integers = dense ? kernels.integers : nullptr;
    const IntegerScope scope(integers);
    const std::uint8_t* byte_inputs = integers ? byte_rows_of(source, sample, begin, rows, scratch) : nullptr;
    const std::size_t expanded = time_steps * source.row_words() * word_bits;
    for (std::size_t r = 0; dense && !integers && r < rows; ++r) {
        expand_row(source, sample, begin + r, scratch.inputs.at(r * expanded, expanded));
    }
    // Products of integers write rows up to a multiple of integer_rows.
    float* currents = scratch.currents.at(0, divide_up(rows * time_steps, integer_rows) * integer_rows * kernels.tile);
    for (const Tile* tile = first_tile; tile != last_tile; ++tile) {
        const Layer& layer = tile->product->layer;
        const float* weights = layer.weights.data() + tile->index * layer.num_inputs * kernels.tile;
        if (layer.only_pads(tile->index * kernels.tile)) {
            std::fill_n(currents, rows * row_size, 0.0f);
        } else if (integers) {
            const std::size_t first_output = tile->index * kernels.tile;
            integers->integer_linear(byte_inputs, rows * time_steps, layer.num_inputs,
                                 layer.digits.data() + first_output * layer.num_inputs * num_digits,
                                 layer.scales.data() + first_output * num_digits, kernels.tile, currents);
        } else if (dense) {
            kernels.dense_linear(scratch.inputs.data(), rows * time_steps, layer.num_inputs, weights, currents);
        } else {
            for (std::size_t r = 0; r < rows; ++r) {
                add_events(source, first_row + r, weights, currents + r * row_size);
            }
        }
        finish_tile(*tile, currents, row_size, kernels.tile, first_row, rows);
    }
}

// The currents of one row and tile at all steps; rows count through all samples.
void Executor::add_events(const Source& source, std::size_t row, const float* weights, float* currents) const {
    for (std::size_t group = 0; group < num_groups; ++group) {
        const EventLists::Row listed = work.lists.row(row, group);
        const std::size_t steps = std::min(group_steps, time_steps - group * group_steps);
        float* sums = currents + group * group_steps * kernels.tile;
        if (source.counts) {
            kernels.count_linear(listed.indices, listed.values, listed.ends, steps, weights, sums);
        } else {
            kernels.spike_linear(listed.indices, listed.ends, steps, weights, sums);
        }
    }
}

// Rows [T][row_words * 64] in bytes: counts lie that way already, unless a window or a stride takes them apart.
const std::uint8_t* Executor::byte_rows_of(const Source& source, std::size_t sample, std::size_t begin, std::size_t rows,
                                         Scratch& scratch) const {
    const std::size_t row_size = time_steps * source.row_words() * word_bits;
    if (source.counts && source.window.is_plain()) {
        return source.counts + (sample * source.rows() + begin) * row_size;
    }
    for (std::size_t r = 0; r < rows; ++r) {
        expand_row(source, sample, begin + r, scratch.byte_inputs.at(r * row_size, row_size));
    }
    return scratch.byte_inputs.at(0, divide_up(rows * time_steps, integer_rows) * integer_rows * source.row_words() * word_bits);
}

// All steps [T][row_words * 64] of what a row sees, as floats or bytes; beyond the border there is silence.
template <typename Value>
void Executor::expand_row(const Source& source, std::size_t sample, std::size_t row, Value* values) const {
    const Window& window = source.window;
    const std::size_t size = source.words * word_bits, row_size = window.places() * size;
    const auto expand = [&](std::size_t place, std::size_t position) {
        for (std::size_t t = 0; t < time_steps; ++t) {
            const std::size_t step = (sample * window.positions() + position) * time_steps + t;
            Value* to = values + t * row_size + place * size;
            if constexpr (std::is_same_v<Value, std::uint8_t>) {
                if (source.counts) {
                    std::copy_n(source.counts + step * size, size, to);
                } else {
                    kernels.integers->expand_bytes(source.spikes + step * source.words, source.words, to);
                }
            } else if (source.counts) {
                kernels.expand_counts(source.counts + step * size, size, to);
            } else {
                kernels.expand_spikes(source.spikes + step * source.words, source.words, to);
            }
        }
    };
    if (window.kernel == 1) {
        expand(0, window.stride == 1 ? row : window.centre(row));
        return;
    }
    std::size_t seen = 0;
    window.for_each_seen(row, [&](std::size_t, std::size_t) { ++seen; });
    if (seen < window.places()) {
        std::fill_n(values, time_steps * row_size, Value{0});
    }
    window.for_each_seen(row, expand);
}

}  // namespace spikformer::engine
