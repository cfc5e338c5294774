// Products with their neurons: by events or densely, sample by sample, tile by tile.
#include <algorithm>
#include <numeric>
#include <type_traits>

#include "executor.hpp"
#include "integer_scope.hpp"

namespace spikformer::engine {
namespace {

constexpr std::size_t items_per_thread = 6;         // so that none waits long for the last
constexpr std::size_t cached_weights = 512 * 1024;  // bytes: a part of a second-level cache
constexpr std::size_t cached_digits = 1024 * 1024;  // a larger one: little else is read

// How many of three neighbours along one side of a map there are.
std::size_t reach(std::size_t place, std::size_t length) {
    return 1 + (place > 0) + (place + 1 < length);
}

}  // namespace

// The first product sees real numbers. A static image is multiplied once, and its neurons see the result at every step.
void Executor::convolve_pixels(const Step& step) {
    const Op& op = ops[step.first];
    const Layer& layer = op.layer;
    OpReport& done = report(op.name);
    const Stopwatch watch(done.product_seconds);
    const std::size_t positions = input.height * input.width, frames = input.is_static ? 1 : time_steps;
    const std::size_t blocks = divide_up(positions, fired_rows), channels = values[0].channels;
    done.inputs += static_cast<double>(count * positions * frames * layer.num_inputs);
    done.samples += count;
    done.dense_samples += count;
    work.tiles.clear();
    add_tiles(step.first, step.last > step.first + 1);
    engine.threads_.for_each(count * blocks, [&](std::size_t item, std::size_t thread) {
        const std::size_t sample = item / blocks, begin = item % blocks * fired_rows;
        const std::size_t rows = std::min(fired_rows, positions - begin);
        Scratch& scratch = work.scratch[thread];
        float* pixels = scratch.inputs.at(0, rows * frames * layer.num_inputs);
        for (std::size_t r = 0; r < rows; ++r) {
            for (std::size_t t = 0; t < frames; ++t) {
                const float* frame = input.values + (t * input.batch_size + first + sample) * channels * positions;
                for (std::size_t n = 0; n < op.kernel * op.kernel; ++n) {
                    std::size_t position = begin + r;
                    const bool inside =
                        op.kernel == 1 || neighbour(input.height, input.width, begin + r, n, position);
                    for (std::size_t c = 0; c < channels; ++c) {
                        *pixels++ = inside ? frame[c * positions + position] : 0.0f;
                    }
                }
            }
        }
        float* currents = scratch.currents.at(0, rows * frames * kernels.tile);
        for (const Tile& tile : work.tiles) {
            if (layer.only_pads(tile.index * kernels.tile)) {
                std::fill_n(currents, rows * frames * kernels.tile, 0.0f);
            } else {
                kernels.dense_linear(scratch.inputs.data(), rows * frames, layer.num_inputs,
                                     layer.weights.data() + tile.index * layer.num_inputs * kernels.tile, currents);
            }
            finish_tile(tile, currents, frames * kernels.tile, input.is_static ? 0 : kernels.tile,
                        sample * positions + begin, rows);
        }
    });
}

void Executor::convolve(const Step& step) {
    const Op& op = ops[step.first];
    const Source source = source_of(op.inputs[0], op.kernel > 1);
    OpReport& done = report(op.name);
    list_events(source, done);
    const Stopwatch watch(done.product_seconds);
    std::vector<Tile>& tiles = work.tiles;
    tiles.clear();
    const bool fires = step.last > step.first + 1;
    for (std::size_t product = step.first; product < step.last; product += fires ? 2 : 1) {
        add_tiles(product, fires);
    }
    const Share share = share_of(source, tiles.size(), op.layer.num_inputs);
    const std::size_t groups = divide_up(tiles.size(), share.tiles);
    const std::size_t sample_blocks = divide_up(source.positions(), fired_rows), blocks = count * sample_blocks;
    engine.threads_.for_each(groups * share.splits, [&](std::size_t item, std::size_t thread) {
        const std::size_t group = item / share.splits, split = item % share.splits;
        const Tile* first_tile = tiles.data() + group * share.tiles;
        const Tile* last_tile = tiles.data() + std::min(tiles.size(), (group + 1) * share.tiles);
        for (std::size_t block = split * blocks / share.splits; block < (split + 1) * blocks / share.splits; ++block) {
            multiply_rows(source, block / sample_blocks, block % sample_blocks * fired_rows, first_tile, last_tile,
                          work.scratch[thread]);
        }
    });
}

// The tiles of one product; `fires`: the op after it reads their currents at once.
void Executor::add_tiles(std::size_t product, bool fires) {
    const std::size_t buffer = product + (fires ? 2 : 1);
    const std::size_t words = words_of(buffer);
    void* output = fires ? static_cast<void*>(spikes(buffer, 0, words))
                         : static_cast<void*>(floats(buffer, 0, words * word_bits));
    const Op* neuron = fires ? &ops[product + 1] : nullptr;
    for (std::size_t index = 0; index < ops[product].layer.num_tiles; ++index) {
        work.tiles.push_back({&ops[product], neuron, output, index, fires ? state_offset(product + 1) : 0});
    }
}

// How a product is shared by the threads. By events, a thread takes a few tiles at once: their weights stay in its
// second-level cache while they serve all rows, and it writes neighbouring spikes before another thread does; rows are
// split only if there are too few tiles. In integers it takes as many tiles as that cache holds, and a part of the
// rows: those are expanded once for all these tiles.
Executor::Share Executor::share_of(const Source& source, std::size_t num_tiles, std::size_t num_inputs) const {
    const std::size_t items = items_per_thread * engine.threads_.count();
    const std::size_t blocks = count * divide_up(source.positions(), fired_rows);
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
    work.row_additions.resize(count * source.height);
    engine.threads_.for_each(count * source.height, [&](std::size_t item, std::size_t) {
        work.row_additions[item] = count_additions(source, item / source.height, item % source.height);
    });
    work.by_events.assign(count, engine.mode == Mode::events);
    const double threshold = engine.density_thresholds[source.neighbours ? 0 : source.spikes ? 1 : 2];
    const double inputs = static_cast<double>(source.positions() * time_steps * source.row_inputs());
    for (std::size_t sample = 0; sample < count; ++sample) {
        const auto rows = work.row_additions.begin() + static_cast<std::ptrdiff_t>(sample * source.height);
        const auto additions = static_cast<double>(
            std::accumulate(rows, rows + static_cast<std::ptrdiff_t>(source.height), std::uint64_t{0}));
        if (engine.mode == Mode::automatic) {
            work.by_events[sample] = additions <= threshold * inputs;
        }
        done.additions += additions;
        done.dense_samples += !work.by_events[sample];
    }
    done.samples += count;
    done.inputs += static_cast<double>(count) * inputs;
}

// Of one row of a map: in a convolution, a position is seen by all its neighbours.
std::uint64_t Executor::count_additions(const Source& source, std::size_t sample, std::size_t row) const {
    const std::size_t first = (sample * source.height + row) * source.width, depth = time_steps * source.words;
    if (source.counts) {
        return kernels.count_active(source.counts + first * depth * word_bits, source.width * depth * word_bits);
    }
    if (!source.neighbours) {
        return kernels.count_spikes(source.spikes + first * depth, source.width * depth);
    }
    std::uint64_t additions = 0;
    for (std::size_t x = 0; x < source.width; ++x) {
        additions += kernels.count_spikes(source.spikes + (first + x) * depth, depth) * reach(x, source.width);
    }
    return additions * reach(row, source.height);
}

void Executor::list_events(const Source& source, OpReport& done) {
    const Stopwatch watch(done.list_seconds);
    choose_modes(source, done);
    if (std::count(work.by_events.begin(), work.by_events.end(), true) > 0) {
        work.lists.list(kernels, engine.threads_, source, work.by_events, time_steps);
    }
}

// A few rows of one sample, in one tile after another: their currents, then their neurons.
void Executor::multiply_rows(const Source& source, std::size_t sample, std::size_t begin, const Tile* first_tile,
                          const Tile* last_tile, Scratch& scratch) {
    const std::size_t positions = source.positions(), row_size = time_steps * kernels.tile;
    const std::size_t rows = std::min(fired_rows, positions - begin);
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
                add_events(source, sample * positions + begin + r, weights, currents + r * row_size);
            }
        }
        finish_tile(*tile, currents, row_size, kernels.tile, sample * positions + begin, rows);
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

// Rows [T][row_words * 64] in bytes: counts lie that way already.
const std::uint8_t* Executor::byte_rows_of(const Source& source, std::size_t sample, std::size_t begin, std::size_t rows,
                                         Scratch& scratch) const {
    const std::size_t row_size = time_steps * source.row_words() * word_bits;
    if (source.counts) {
        return source.counts + (sample * source.positions() + begin) * row_size;
    }
    for (std::size_t r = 0; r < rows; ++r) {
        expand_row(source, sample, begin + r, scratch.byte_inputs.at(r * row_size, row_size));
    }
    return scratch.byte_inputs.at(0, divide_up(rows * time_steps, integer_rows) * integer_rows * source.row_words() * word_bits);
}

// All steps [T][row_words * 64] of what a row sees, as floats or bytes; beyond the border there is silence.
template <typename Value>
void Executor::expand_row(const Source& source, std::size_t sample, std::size_t row, Value* values) const {
    const std::size_t size = source.words * word_bits, first = sample * source.positions();
    for (std::size_t t = 0; t < time_steps; ++t) {
        for (std::size_t place = 0; place < (source.neighbours ? 9 : 1); ++place, values += size) {
            std::size_t position = row;
            if (source.neighbours && !neighbour(source.height, source.width, row, place, position)) {
                std::fill_n(values, size, Value{0});
                continue;
            }
            const std::size_t step = (first + position) * time_steps + t;
            if constexpr (std::is_same_v<Value, std::uint8_t>) {
                kernels.integers->expand_bytes(source.spikes + step * source.words, source.words, values);
            } else if (source.counts) {
                kernels.expand_counts(source.counts + step * size, size, values);
            } else {
                kernels.expand_spikes(source.spikes + step * source.words, source.words, values);
            }
        }
    }
}

}  // namespace spikformer::engine
