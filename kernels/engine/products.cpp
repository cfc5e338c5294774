// Products with their neurons: by events or densely, sample by sample, tile by tile.
#include <algorithm>

#include "chunk.hpp"

namespace spikformer::engine {
namespace {

constexpr std::size_t items_per_thread = 3;         // so that none waits long for the last
constexpr std::size_t cached_weights = 512 * 1024;  // bytes: a part of a second-level cache

}  // namespace

void Chunk::multiply_and_fire(const Source& source, std::initializer_list<Target> targets) {
    LayerReport& told = report(targets.begin()->layer->name);
    list_events(source, told);
    const Stopwatch watch(told.product_seconds);
    std::vector<Tile>& tiles = work.tiles;
    tiles.clear();
    for (const Target& target : targets) {
        const std::size_t state_offset = claim_state(source.positions(), *target.layer);
        for (std::size_t index = 0; index < target.layer->num_tiles; ++index) {
            tiles.push_back({target.layer, target.spikes, index, state_offset});
        }
    }
    // A thread takes a few tiles at once: their weights stay in its second-level cache while they serve all samples,
    // and it writes neighbouring spikes before another thread does. Samples are split only if there are too few tiles.
    const std::size_t items = items_per_thread * net.threads.count();
    const std::size_t splits = std::min(count, divide_up(items, tiles.size()));
    const std::size_t tile_bytes = targets.begin()->layer->num_inputs * kernels.tile * sizeof(float);
    const std::size_t together =
        std::max<std::size_t>(1, std::min(tiles.size() * splits / items, cached_weights / tile_bytes));
    const std::size_t groups = divide_up(tiles.size(), together);
    net.threads.for_each(groups * splits, [&](std::size_t item, std::size_t thread) {
        const std::size_t group = item / splits, split = item % splits;
        const Tile* first_tile = tiles.data() + group * together;
        const Tile* last_tile = tiles.data() + std::min(tiles.size(), (group + 1) * together);
        for (std::size_t sample = split * count / splits; sample < (split + 1) * count / splits; ++sample) {
            multiply_tiles(source, sample, first_tile, last_tile, work.desks[thread]);
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

// One sample: the currents of a few rows in one tile, then their neurons; then the same rows in the next tile.
void Chunk::multiply_tiles(const Source& source, std::size_t sample, const Tile* first_tile, const Tile* last_tile,
                           Desk& desk) {
    const std::size_t positions = source.positions(), row_size = time_steps * kernels.tile;
    const bool dense = takes_dense(source, sample);
    float* currents = desk.currents.data();
    for (std::size_t begin = 0; begin < positions; begin += fired_rows) {
        const std::size_t rows = std::min(fired_rows, positions - begin);
        if (dense) {
            for (std::size_t r = 0; r < rows; ++r) {
                expand_row(source, sample, begin + r,
                           desk.inputs.data() + r * time_steps * source.row_words() * word_bits);
            }
        }
        for (const Tile* tile = first_tile; tile != last_tile; ++tile) {
            const Layer& layer = *tile->layer;
            const float* weights = layer.weights.data() + tile->index * layer.num_inputs * kernels.tile;
            if (layer.only_pads(tile->index * kernels.tile)) {
                std::fill_n(currents, rows * row_size, 0.0f);
            } else if (dense) {
                kernels.dense_linear(desk.inputs.data(), rows * time_steps, layer.num_inputs, weights, currents);
            } else {
                for (std::size_t r = 0; r < rows; ++r) {
                    add_events(source, sample * positions + begin + r, weights, currents + r * row_size);
                }
            }
            for (std::size_t r = 0; r < rows; ++r) {
                fire_tile(layer, tile->index, currents + r * row_size, kernels.tile, sample * positions + begin + r,
                          tile->state_offset, tile->spikes);
            }
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
