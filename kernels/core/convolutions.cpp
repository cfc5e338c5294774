// Products with what takes their currents: neurons, streams, pools. Rows are in products.cpp.
#include <algorithm>

#include "executor.hpp"

namespace spikformer::engine {
namespace {

constexpr std::size_t cached_currents = 512 * 1024;  // bytes: a part of a second-level cache

}  // namespace

// The tiles of one product, and where their currents go; without a tail, to the buffer that keeps them.
void Executor::add_tiles(std::size_t product, const Tail& tail) {
    const Op& op = ops[product];
    Tile tile;
    tile.product = &op;
    if (tail.neuron) {
        tile.neuron = tail.neuron;
        tile.spikes = spikes(tail.end, 0, words_of(tail.end));
        tile.state_offset = state_offset(tail.end - 1);
    }
    float* kept = nullptr;
    if (tail.add) {
        const auto sum = static_cast<std::size_t>(tail.add - ops.data()) + 1;
        tile.residual = floats(tail.residual, 0, words_of(tail.residual) * word_bits);
        tile.residual_steps = steps_of(tail.residual);
        kept = floats(sum, 0, words_of(sum) * word_bits);
    } else if (!tail.neuron) {
        kept = floats(product + 1, 0, words_of(product + 1) * word_bits);
    }
    tile.kept_width = op.layer.width();
    for (tile.index = 0; tile.index < op.layer.num_tiles; ++tile.index) {
        tile.kept = kept ? kept + tile.index * kernels.tile : nullptr;
        work.tiles.push_back(tile);
    }
}

// The first product sees real numbers. A static image is multiplied once, and its neurons see the result at every step.
void Executor::convolve_pixels(const FusedOps& fused) {
    const Op& op = ops[fused.first];
    OpReport& done = report(op.name);
    const Stopwatch watch(done.product_seconds);
    const std::size_t positions = values[fused.first + 1].positions(), blocks = divide_up(positions, fired_rows);
    done.samples += count;
    done.dense_samples += count;
    work.tiles.clear();
    const Tail tail = engine.program_.tail(fused, fused.first);
    add_tiles(fused.first, tail);
    const auto multiply = [&](std::size_t sample, std::size_t begin, std::size_t rows, const Tile* first_tile,
                              const Tile* last_tile, Scratch& scratch) {
        multiply_pixels(op, sample, begin, rows, first_tile, last_tile, scratch);
    };
    if (tail.pool) {
        pool_currents(fused, multiply);
        return;
    }
    const Tile* tiles = work.tiles.data();
    engine.threads_.for_each(count * blocks, [&](std::size_t item, std::size_t thread) {
        const std::size_t begin = item % blocks * fired_rows;
        multiply(item / blocks, begin, std::min(fired_rows, positions - begin), tiles, tiles + work.tiles.size(),
                 work.scratch[thread]);
    });
}

void Executor::multiply_pixels(const Op& op, std::size_t sample, std::size_t begin, std::size_t rows,
                               const Tile* first_tile, const Tile* last_tile, Scratch& scratch) {
    const Layer& layer = op.layer;
    const Window window{input.height, input.width, op.kernel, op.stride};
    const std::size_t frames = steps_of(0), channels = values[0].channels, positions = window.positions();
    float* pixels = scratch.inputs.at(0, rows * frames * layer.num_inputs);
    std::fill_n(pixels, rows * frames * layer.num_inputs, 0.0f);
    for (std::size_t r = 0; r < rows; ++r) {
        for (std::size_t t = 0; t < frames; ++t, pixels += layer.num_inputs) {
            const float* frame = input.values + (t * input.batch_size + first + sample) * channels * positions;
            window.for_each_seen(begin + r, [&](std::size_t place, std::size_t position) {
                for (std::size_t c = 0; c < channels; ++c) {
                    pixels[place * channels + c] = frame[c * positions + position];
                }
            });
        }
    }
    float* currents = scratch.currents.at(0, rows * frames * kernels.tile);
    for (const Tile* tile = first_tile; tile != last_tile; ++tile) {
        if (layer.only_pads(tile->index * kernels.tile)) {
            std::fill_n(currents, rows * frames * kernels.tile, 0.0f);
        } else {
            kernels.dense_linear(scratch.inputs.data(), rows * frames, layer.num_inputs,
                                 layer.weights.data() + tile->index * layer.num_inputs * kernels.tile, currents);
        }
        finish_tile(*tile, currents, frames * kernels.tile, input.is_static ? 0 : kernels.tile,
                    sample * window.outputs() + begin, rows);
    }
}

void Executor::convolve(const FusedOps& fused) {
    const Op& op = ops[fused.first];
    const Source source = source_of(op);
    OpReport& done = report(op.name);
    list_events(source, done);
    const Stopwatch watch(done.product_seconds);
    std::vector<Tile>& tiles = work.tiles;
    tiles.clear();
    bool pools = false;
    for (std::size_t product = fused.first; product < fused.last;) {
        const Tail tail = engine.program_.tail(fused, product);
        add_tiles(product, tail);
        pools = tail.pool != nullptr;
        product = tail.end;
    }
    const auto multiply = [&](std::size_t sample, std::size_t begin, std::size_t rows, const Tile* first_tile,
                              const Tile* last_tile, Scratch& scratch) {
        multiply_rows(source, sample, begin, rows, first_tile, last_tile, scratch);
    };
    if (pools) {
        pool_currents(fused, multiply);
        return;
    }
    const Share share = share_of(source, tiles.size(), op.layer.num_inputs);
    const std::size_t groups = divide_up(tiles.size(), share.tiles);
    const std::size_t sample_blocks = divide_up(source.rows(), fired_rows), blocks = count * sample_blocks;
    engine.threads_.for_each(groups * share.splits, [&](std::size_t item, std::size_t thread) {
        const std::size_t group = item / share.splits, split = item % share.splits;
        const Tile* first_tile = tiles.data() + group * share.tiles;
        const Tile* last_tile = tiles.data() + std::min(tiles.size(), (group + 1) * share.tiles);
        for (std::size_t block = split * blocks / share.splits; block < (split + 1) * blocks / share.splits; ++block) {
            const std::size_t begin = block % sample_blocks * fired_rows;
            multiply(block / sample_blocks, begin, std::min(fired_rows, source.rows() - begin), first_tile, last_tile,
                     work.scratch[thread]);
        }
    });
}

// A product, the pool of its currents and their neurons, a row of the pool at a time: of a few tiles, the rows of
// currents that a window sees stay in the cache, and no buffer keeps the map. Threads share tiles, samples and bands of
// rows; where bands meet, a row of currents is computed twice.
template <typename Multiply>
void Executor::pool_currents(const FusedOps& fused, const Multiply& multiply) {
    const Value &map = values[fused.first + 1], &pooled = values[fused.first + 2];
    const Window window{map.height, map.width, ops[fused.first + 1].kernel, ops[fused.first + 1].stride};
    const std::size_t steps = steps_of(fused.first + 1), depth = steps * kernels.tile, row_size = map.width * depth;
    const std::vector<Tile>& tiles = work.tiles;
    const std::size_t fitting = cached_currents / (most_pooled * row_size * sizeof(float));
    const std::size_t together = std::clamp<std::size_t>(fitting, 1, std::min(most_pooled_tiles, tiles.size()));
    const std::size_t groups = divide_up(tiles.size(), together), wanted = items_per_thread * engine.threads_.count();
    const std::size_t bands = std::min(pooled.height, divide_up(wanted, groups * count));
    engine.threads_.for_each(groups * count * bands, [&](std::size_t item, std::size_t thread) {
        const std::size_t group = item / (count * bands), sample = item / bands % count, band = item % bands;
        const std::size_t num_tiles = std::min(together, tiles.size() - group * together);
        const Tile* own = tiles.data() + group * together;
        Tile kept[most_pooled_tiles];
        std::copy_n(own, num_tiles, kept);
        Scratch& scratch = work.scratch[thread];
        const auto row_of = [&](std::size_t tile, std::size_t y) {
            return scratch.pooled.at((tile * most_pooled + y % most_pooled) * row_size, row_size);
        };
        float* maxima = scratch.pooled.at(num_tiles * most_pooled * row_size, pooled.width * depth);
        std::size_t done = 0;  // rows of currents
        for (std::size_t row = band * pooled.height / bands; row < (band + 1) * pooled.height / bands; ++row) {
            const std::size_t reach = (window.kernel - 1) / 2, centre = row * window.stride;
            const std::size_t end = std::min(centre + window.kernel - reach, map.height);
            for (done = std::max(done, centre < reach ? 0 : centre - reach); done < end; ++done) {
                for (std::size_t tile = 0; tile < num_tiles; ++tile) {
                    kept[tile].neuron = nullptr;
                    kept[tile].kept = row_of(tile, done);
                    kept[tile].kept_width = kernels.tile;
                    kept[tile].kept_position = sample * map.positions() + done * map.width;
                }
                for (std::size_t x = 0; x < map.width; x += fired_rows) {
                    multiply(sample, done * map.width + x, std::min(fired_rows, map.width - x), kept, kept + num_tiles,
                             scratch);
                }
            }
            for (std::size_t tile = 0; tile < num_tiles; ++tile) {
                kernels.pool_floats_row(
                    pooled_rows<float>(window, row, depth, [&](std::size_t y) { return row_of(tile, y); }), maxima);
                fire_tile(*own[tile].neuron, own[tile].spikes, map.words(), own[tile].index * kernels.tile,
                          engine.no_bias_.data(), maxima, depth, steps_of(fused.first + 2) == 1 ? 0 : kernels.tile,
                          sample * pooled.positions() + row * pooled.width, pooled.width, own[tile].state_offset);
            }
        }
    });
}

// Neighbours add their weights where they fire, a few positions at a time in one tile after another.
void Executor::convolve_depthwise(const FusedOps& fused) {
    const Op& op = ops[fused.first];
    const Value& x = values[op.inputs[0]];
    OpReport& done = report(op.name);
    const Stopwatch watch(done.product_seconds);
    done.samples += count;
    work.tiles.clear();
    add_tiles(fused.first, engine.program_.tail(fused, fused.first));
    const Window window{x.height, x.width, op.kernel, 1};
    const std::size_t positions = x.positions(), blocks = divide_up(positions, fired_rows);
    const std::size_t words = x.words(), depth = time_steps * words, row_size = time_steps * kernels.tile;
    const Word* bits = spikes(op.inputs[0], 0, words_of(op.inputs[0]));
    engine.threads_.for_each(count * blocks, [&](std::size_t item, std::size_t thread) {
        const std::size_t sample = item / blocks, begin = item % blocks * fired_rows;
        const std::size_t rows = std::min(fired_rows, positions - begin);
        SeenPlace seen[fired_rows][most_parts];
        std::size_t num_seen[fired_rows] = {};
        for (std::size_t r = 0; r < rows; ++r) {
            window.for_each_seen(begin + r, [&](std::size_t place, std::size_t position) {
                seen[r][num_seen[r]++] = {bits + (sample * positions + position) * depth, place};
            });
        }
        float* currents = work.scratch[thread].currents.at(0, rows * row_size);
        for (const Tile& tile : work.tiles) {
            const std::size_t channel = tile.index * kernels.tile;
            const float* weights = op.layer.weights.data() + tile.index * window.places() * kernels.tile;
            for (std::size_t r = 0; r < rows; ++r) {
                for (std::size_t t = 0; t < time_steps; t += group_steps) {
                    kernels.depthwise_linear(seen[r], num_seen[r], std::min(group_steps, time_steps - t), words,
                                             t * words + channel / word_bits, channel % word_bits, weights,
                                             currents + r * row_size + t * kernels.tile);
                }
            }
            finish_tile(tile, currents, row_size, kernels.tile, sample * positions + begin, rows);
        }
    });
}

}  // namespace spikformer::engine
