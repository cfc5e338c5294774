// Products with their neurons: by events or densely, sample by sample, tile by tile.
#include <algorithm>

#include "chunk.hpp"

namespace spikformer::engine {

void Chunk::multiply_and_fire(const Source& source, std::initializer_list<Target> targets) {
    LayerReport& told = report(targets.begin()->layer->name);
    list_events(source, told);
    const Stopwatch watch(told.product_seconds);
    std::size_t num_tiles = 0, offsets[3] = {}, ends[3] = {};
    for (std::size_t i = 0; i < targets.size(); ++i) {
        offsets[i] = claim_state(source.positions(), *targets.begin()[i].layer);
        num_tiles += targets.begin()[i].layer->num_tiles;
        ends[i] = num_tiles;
    }
    // A tile's weights serve as many samples as possible; samples are split only if there are too few tiles to share:
    // four items a thread, so that none waits long for the last.
    const std::size_t splits = std::min(count, divide_up(4 * net.threads.count(), num_tiles));
    net.threads.for_each(num_tiles * splits, [&](std::size_t item, std::size_t thread) {
        const std::size_t tile = item / splits, split = item % splits;
        std::size_t i = 0;
        while (tile >= ends[i]) {
            ++i;
        }
        const Target& target = targets.begin()[i];
        for (std::size_t sample = split * count / splits; sample < (split + 1) * count / splits; ++sample) {
            multiply_tile(source, target, tile - (i == 0 ? 0 : ends[i - 1]), sample, offsets[i], work.desks[thread]);
        }
    });
    for (const Target& target : targets) {
        record(target.layer->name, source.positions(), target.layer->num_outputs, target.spikes);
    }
}

void Chunk::list_events(const Source& source, LayerReport& told) {
    const Stopwatch watch(told.list_seconds);
    work.lists.list(kernels, net.threads, source, count, time_steps);
    for (std::size_t sample = 0; sample < count; ++sample) {
        told.additions += static_cast<double>(work.lists.additions(sample));
        told.dense_samples += takes_dense(source, sample);
    }
    told.samples += count;
    told.inputs += static_cast<double>(count * source.positions() * time_steps * source.row_inputs());
}

// One sample, one tile: currents of a few rows at a time, then their neurons.
void Chunk::multiply_tile(const Source& source, const Target& target, std::size_t tile, std::size_t sample,
                          std::size_t offset, Desk& desk) {
    const Layer& layer = *target.layer;
    const float* weights = layer.weights.data() + tile * layer.num_inputs * kernels.tile;
    const std::size_t positions = source.positions(), row_size = time_steps * kernels.tile;
    const bool dense = takes_dense(source, sample);
    for (std::size_t begin = 0; begin < positions; begin += fired_rows) {
        const std::size_t rows = std::min(fired_rows, positions - begin);
        float* currents = desk.currents.data();
        if (dense) {
            for (std::size_t r = 0; r < rows; ++r) {
                expand_row(source, sample, begin + r, desk.inputs.data() + r * time_steps * layer.num_inputs);
            }
            kernels.dense_linear(desk.inputs.data(), rows * time_steps, layer.num_inputs, weights, currents);
        } else {
            for (std::size_t r = 0; r < rows; ++r) {
                add_events(source, sample * positions + begin + r, weights, currents + r * row_size);
            }
        }
        for (std::size_t r = 0; r < rows; ++r) {
            fire_tile(layer, tile, currents + r * row_size, kernels.tile, sample * positions + begin + r, offset,
                      target.spikes);
        }
    }
}

// The currents of one row and tile at all steps; rows count through all samples.
void Chunk::add_events(const Source& source, std::size_t row, const float* weights, float* currents) const {
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

// All steps [T][row_words * 64] of what a row sees, as floats; beyond the border there is silence.
void Chunk::expand_row(const Source& source, std::size_t sample, std::size_t row, float* values) const {
    const std::size_t size = source.words * word_bits, first = sample * source.positions();
    for (std::size_t t = 0; t < time_steps; ++t) {
        if (source.counts) {
            kernels.expand_counts(source.counts + ((first + row) * time_steps + t) * size, size, values);
            values += size;
            continue;
        }
        for (std::size_t place = 0; place < (source.neighbours ? 9 : 1); ++place, values += size) {
            std::size_t position = row;
            if (source.neighbours && !neighbour(source.height, source.width, row, place, position)) {
                std::fill_n(values, size, 0.0f);
                continue;
            }
            kernels.expand_spikes(source.spikes + ((first + position) * time_steps + t) * source.words, source.words,
                                  values);
        }
    }
}

bool Chunk::takes_dense(const Source& source, std::size_t sample) const {
    if (net.way != Way::measured) {
        return net.way == Way::dense;
    }
    const std::size_t inputs = source.positions() * time_steps * source.row_inputs();
    return static_cast<double>(work.lists.additions(sample)) > net.crossover * static_cast<double>(inputs);
}

}  // namespace spikformer::engine
