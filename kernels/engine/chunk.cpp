#include "chunk.hpp"

#include <algorithm>
#include <cstring>

namespace spikformer::engine {

Chunk::Chunk(Network& network, const Input& input, std::size_t first, std::size_t count, const float* state,
             float* next_state)
    : net(network), kernels(network.kernels), work(network.work), input(input), first(first), count(count),
      time_steps(input.time_steps), num_groups(divide_up(input.time_steps, group_steps)), state(state),
      next_state(next_state) {}

void Chunk::run(float* logits) {
    split_patches();
    for (const Block& block : net.blocks) {
        encode(block);
    }
    read_out(logits);
}

// Stages of convolution, neuron and pool, then X + RPE as the first counts of the residual stream.
void Chunk::split_patches() {
    Source map;
    map.height = input.height;
    map.width = input.width;
    map.neighbours = true;
    for (std::size_t index = 0; index < net.stages.size(); ++index) {
        const Layer& layer = net.stages[index];
        Word* spikes = work.map.reserve(count * map.positions() * time_steps * layer.words);
        if (index == 0) {
            convolve_pixels(layer, spikes);
        } else {
            multiply_and_fire(map, {{&layer, spikes}});
        }
        map.words = layer.words;
        map.channels = layer.num_outputs;
        map.spikes = spikes;
        if (net.pooled[index]) {
            Word* pooled = work.pooled.reserve(count * map.positions() / 4 * time_steps * layer.words);
            pool_map(map, pooled);
            map.height /= 2;
            map.width /= 2;
            map.spikes = pooled;
        } else {
            std::swap(work.map, work.pooled);  // the next stage writes into `map` and reads what this one wrote
        }
    }
    const std::size_t size = count * map.positions() * time_steps * map.words;
    Word* position = work.map.reserve(size);
    multiply_and_fire(map, {{&net.position, position}});
    num_tokens = map.positions();
    stream_words = map.words;
    const std::size_t margin = whole_rows * map.words * word_bits;  // the last product of whole numbers reads on
    std::memset(work.counts.reserve(size * word_bits + margin), 0, size * word_bits + margin);
    add_to_stream(map.spikes, map.words);
    add_to_stream(position, map.words);
}

void Chunk::encode(const Block& block) {
    Source stream;
    stream.counts = work.counts.data();
    stream.width = num_tokens;
    stream.words = stream_words;
    stream.channels = block.value.num_outputs;
    const std::size_t size = count * num_tokens * time_steps * stream_words;
    Word* value = work.value.reserve(size);
    Word* mixed = work.mixed.reserve(size);
    if (block.mixes) {
        multiply_and_fire(stream, {{&block.query, work.query.reserve(size)},
                                   {&block.key, work.key.reserve(size)},
                                   {&block.value, value}});
        pool_tokens(work.query, stream_words, block.query_key_pool);
        pool_tokens(work.key, stream_words, block.query_key_pool);
    } else {
        multiply_and_fire(stream, {{&block.value, value}});
    }
    attend(block, mixed);
    Source spikes;
    spikes.width = num_tokens;
    spikes.spikes = mixed;
    spikes.words = stream_words;
    spikes.channels = stream.channels;
    multiply_and_fire(spikes, {{&block.projection, value}});
    add_to_stream(value, stream_words);

    Word* hidden = work.hidden.reserve(count * num_tokens * time_steps * block.hidden.words);
    multiply_and_fire(stream, {{&block.hidden, hidden}});
    spikes.spikes = hidden;
    spikes.words = block.hidden.words;
    spikes.channels = block.hidden.num_outputs;
    multiply_and_fire(spikes, {{&block.output, value}});
    add_to_stream(value, stream_words);
}

void Chunk::read_out(float* logits) {
    const std::size_t width = stream_words * word_bits, size = net.head.weights.size() / net.head.num_classes;
    net.threads.for_each(count * time_steps, [&](std::size_t item, std::size_t thread) {
        const std::size_t sample = item / time_steps, t = item % time_steps;
        std::int32_t* totals = work.desks[thread].totals.data();
        kernels.sum_tokens(work.counts.data() + (sample * num_tokens * time_steps + t) * width, num_tokens,
                           time_steps * width, size, totals);
        kernels.read_out(totals, num_tokens, size, net.head.weights.data(), net.head.bias.data(), net.head.num_classes,
                         logits + (t * input.batch_size + first + sample) * net.head.num_classes);
    });
}

// The first convolution sees real numbers. A still image is convolved once, and its neurons see the result T times.
void Chunk::convolve_pixels(const Layer& layer, Word* spikes) {
    LayerReport& told = report(layer.name);
    const Stopwatch watch(told.product_seconds);
    const std::size_t positions = input.height * input.width, frames = input.still ? 1 : time_steps;
    const std::size_t blocks = divide_up(positions, fired_rows), offset = claim_state(positions, layer);
    told.inputs += static_cast<double>(count * positions * frames * layer.num_inputs);
    told.samples += count;
    told.dense_samples += count;
    net.threads.for_each(count * blocks, [&](std::size_t item, std::size_t thread) {
        const std::size_t sample = item / blocks, begin = item % blocks * fired_rows;
        const std::size_t rows = std::min(fired_rows, positions - begin);
        Desk& desk = work.desks[thread];
        float* values = desk.inputs.data();
        for (std::size_t r = 0; r < rows; ++r) {
            for (std::size_t t = 0; t < frames; ++t) {
                const float* frame =
                    input.values + (t * input.batch_size + first + sample) * net.in_channels * positions;
                for (std::size_t n = 0; n < 9; ++n) {
                    std::size_t position = 0;
                    const bool inside = neighbour(input.height, input.width, begin + r, n, position);
                    for (std::size_t c = 0; c < net.in_channels; ++c) {
                        *values++ = inside ? frame[c * positions + position] : 0.0f;
                    }
                }
            }
        }
        for (std::size_t tile = 0; tile < layer.num_tiles; ++tile) {
            float* currents = desk.currents.data();
            if (layer.only_pads(tile * kernels.tile)) {
                std::fill_n(currents, rows * frames * kernels.tile, 0.0f);
            } else {
                kernels.dense_linear(desk.inputs.data(), rows * frames, layer.num_inputs,
                                     layer.weights.data() + tile * layer.num_inputs * kernels.tile, currents);
            }
            fire_tile(layer, tile, currents, frames * kernels.tile, input.still ? 0 : kernels.tile,
                      sample * positions + begin, rows, offset, spikes);
        }
    });
    record(layer.name, positions, layer.num_outputs, spikes);
}

// Rows are positions one after another. `position` counts through all samples of the chunk; `offset` is where the
// layer's voltages of its first sample are.
void Chunk::fire_tile(const Layer& layer, std::size_t tile, const float* currents, std::size_t current_row,
                      std::size_t current_step, std::size_t position, std::size_t rows, std::size_t offset,
                      Word* spikes) {
    const std::size_t first_output = tile * kernels.tile;
    const std::size_t place = offset + position * layer.width() + first_output;
    Firing firing;
    firing.currents = currents;
    firing.current_row = current_row;
    firing.current_step = current_step;
    firing.spikes = reinterpret_cast<unsigned char*>(spikes + position * time_steps * layer.words) + first_output / 8;
    firing.spike_step = layer.words * sizeof(Word);
    firing.spike_row = time_steps * firing.spike_step;
    firing.initial = state ? state + place : nullptr;
    firing.voltage = next_state ? next_state + place : nullptr;
    firing.state_row = layer.width();
    kernels.fire(firing, rows, time_steps, layer.bias.data() + first_output, layer.dynamics);
}

void Chunk::pool_map(const Source& map, Word* pooled) {
    const std::size_t depth = time_steps * map.words, rows = map.height / 2;
    net.threads.for_each(count * rows, [&](std::size_t item, std::size_t) {
        const std::size_t sample = item / rows, row = item % rows;
        kernels.pool_map_row(map.spikes + sample * map.positions() * depth, map.height, map.width, depth, row,
                             pooled + item * (map.width / 2) * depth);
    });
}

void Chunk::pool_tokens(Buffer<Word>& tokens, std::size_t words, std::size_t kernel) {
    if (kernel == 1) {
        return;
    }
    const std::size_t depth = time_steps * words, size = num_tokens * depth;
    Word* pooled = work.pool.reserve(count * size);
    net.threads.for_each(count, [&](std::size_t sample, std::size_t) {
        kernels.pool_tokens(tokens.data() + sample * size, num_tokens, depth, kernel, pooled + sample * size);
    });
    std::swap(tokens, work.pool);
}

void Chunk::add_to_stream(const Word* spikes, std::size_t words) {
    const std::size_t positions = count * num_tokens, size = time_steps * words, rows = 64;
    net.threads.for_each(divide_up(positions, rows), [&](std::size_t item, std::size_t) {
        const std::size_t begin = item * rows, end = std::min(positions, begin + rows);
        kernels.add_spikes(spikes + begin * size, (end - begin) * size, work.counts.data() + begin * size * word_bits);
    });
}

// State is [layers][B][positions][width]: where this layer's voltages of the chunk's first sample are.
std::size_t Chunk::claim_state(std::size_t positions, const Layer& layer) {
    const std::size_t offset = state_used + first * positions * layer.width();
    state_used += input.batch_size * positions * layer.width();
    return offset;
}

LayerReport& Chunk::report(const std::string& name) {
    if (next_report == net.reports.size()) {
        net.reports.emplace_back();
        net.reports.back().name = name;
    }
    return net.reports[next_report++];
}

void Chunk::record(const std::string& name, std::size_t positions, std::size_t channels, const Word* spikes) {
    if (!net.recording) {
        return;
    }
    const std::size_t words = divide_up(channels, word_bits), size = positions * time_steps * words;
    if (next_record == net.recorded.size()) {
        net.recorded.push_back({name, positions, channels, words, std::vector<Word>(input.batch_size * size)});
    }
    std::copy_n(spikes, count * size, net.recorded[next_record++].spikes.data() + first * size);
}

}  // namespace spikformer::engine
