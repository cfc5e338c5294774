#include "chunk.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace spikformer::engine {
namespace {

constexpr std::size_t listed_rows = 32;  // rows whose events lie together

// Adds the time of its life to a total.
class Stopwatch {
public:
    explicit Stopwatch(double& total) : total_(total), begin_(std::chrono::steady_clock::now()) {}
    ~Stopwatch() { total_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(); }

private:
    double& total_;
    std::chrono::steady_clock::time_point begin_;
};

// The pixel a 3x3 kernel reads; false where it lies outside.
bool neighbour(std::size_t height, std::size_t width, std::size_t row, std::size_t index, std::size_t& position) {
    const std::size_t y = row / width + index / 3, x = row % width + index % 3;  // one too large each
    if (y == 0 || x == 0 || y > height || x > width) {
        return false;
    }
    position = (y - 1) * width + x - 1;
    return true;
}

}  // namespace

Chunk::Chunk(Network& network, const Input& input, std::size_t first, std::size_t count, const float* state,
             float* next_state)
    : net(network), kernels(network.kernels), work(network.work), input(input), first(first), count(count),
      time_steps(input.time_steps), num_groups(divide_up(input.time_steps, group_steps)), state(state),
      next_state(next_state) {}

void Chunk::run(float* logits) {
    const Source map = split_patches();
    num_tokens = map.positions();
    for (const Block& block : net.blocks) {
        encode(block);
    }
    read_out(logits);
}

// Stages of convolution, neuron and pool, then X + RPE as the first counts of the residual stream.
Source Chunk::split_patches() {
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
    std::memset(work.counts.reserve(size * word_bits), 0, size * word_bits);
    add_to_stream(map.spikes, map.words);
    add_to_stream(position, map.words);
    return map;
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
        std::int32_t* totals = work.desks[thread].products.data();
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
            kernels.dense_linear(desk.inputs.data(), rows * frames, layer.num_inputs,
                                 layer.weights.data() + tile * layer.num_inputs * kernels.tile, currents);
            for (std::size_t r = 0; r < rows; ++r) {
                fire_tile(layer, tile, currents + r * frames * kernels.tile, input.still ? 0 : kernels.tile,
                          sample * positions + begin + r, offset, spikes);
            }
        }
    });
    record(layer.name, positions, layer.num_outputs, spikes);
}

void Chunk::multiply_and_fire(const Source& source, std::initializer_list<Target> targets) {
    LayerReport& told = report(targets.begin()->layer->name, targets.size());
    list_events(source, told);
    const Stopwatch watch(told.product_seconds);
    std::size_t num_tiles = 0, offsets[3] = {}, ends[3] = {};
    for (std::size_t i = 0; i < targets.size(); ++i) {
        offsets[i] = claim_state(source.positions(), *targets.begin()[i].layer);
        num_tiles += targets.begin()[i].layer->num_tiles;
        ends[i] = num_tiles;
    }
    // A tile's weights serve as many samples as possible; samples are split only if there are too few tiles to share.
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
    const std::size_t positions = source.positions(), blocks = divide_up(positions, listed_rows);
    const std::size_t capacity = list_capacity(source);
    work.indices.reserve(count * blocks * capacity);
    const std::size_t value_capacity = list_values(source);
    work.values.reserve(count * blocks * value_capacity);
    work.starts.reserve(count * positions * num_groups);
    work.value_starts.reserve(count * positions * num_groups);
    work.ends.reserve(count * positions * num_groups * num_patterns);
    work.additions.assign(count * blocks, 0);
    net.threads.for_each(count * blocks, [&](std::size_t item, std::size_t thread) {
        const std::size_t sample = item / blocks, begin = item % blocks * listed_rows;
        Desk& desk = work.desks[thread];
        Index* indices = work.indices.data() + item * capacity;
        float* values = work.values.data() + item * value_capacity;
        std::uint32_t used = 0, values_used = 0;
        std::size_t additions = 0;
        for (std::size_t row = begin; row < std::min(positions, begin + listed_rows); ++row) {
            for (std::size_t group = 0; group < num_groups; ++group) {
                const std::size_t steps = steps_of(group), step = group * group_steps, words = source.row_words();
                const std::size_t list = (sample * positions + row) * num_groups + group;
                std::uint32_t* ends = work.ends.data() + list * num_patterns;
                if (source.counts) {
                    const std::size_t size = words * word_bits;
                    const std::uint8_t* counts =
                        source.counts + ((sample * positions + row) * time_steps + step) * size;
                    work.value_starts.data()[list] = values_used;
                    const std::size_t found = kernels.list_counts(counts, size, steps, indices + used,
                                                                  values + values_used, ends, desk.events.data());
                    values_used += static_cast<std::uint32_t>(found);
                    additions += found;
                } else {
                    const Word* bits = spikes_of_row(source, sample, row, step, steps, desk);
                    additions += kernels.list_events(bits, words, steps, indices + used, ends, desk.events.data());
                }
                work.starts.data()[list] = used;
                used += ends[num_patterns - 1];
            }
        }
        work.additions[item] = additions;
    });
    std::uint64_t total = 0;
    for (std::size_t sample = 0; sample < count; ++sample) {
        std::uint64_t of_sample = 0;
        for (std::size_t block = 0; block < blocks; ++block) {
            of_sample += work.additions[sample * blocks + block];
        }
        work.additions[sample] = of_sample;  // takes the place of blocks that have been added up already
        total += of_sample;
        told.dense_samples += takes_dense(source, sample);
    }
    told.samples += count;
    told.additions += static_cast<double>(total);
    told.inputs += static_cast<double>(count * positions * time_steps * source.row_inputs());
}

// One sample, one tile: currents of a few rows at a time, then their neurons.
void Chunk::multiply_tile(const Source& source, const Target& target, std::size_t tile, std::size_t sample,
                          std::size_t offset, Desk& desk) {
    const Layer& layer = *target.layer;
    const float* weights = layer.weights.data() + tile * layer.num_inputs * kernels.tile;
    const std::size_t positions = source.positions(), row_size = time_steps * kernels.tile;
    const std::size_t blocks = divide_up(positions, listed_rows), capacity = list_capacity(source);
    const bool dense = takes_dense(source, sample);
    for (std::size_t begin = 0; begin < positions; begin += fired_rows) {
        const std::size_t rows = std::min(fired_rows, positions - begin);
        float* currents = desk.currents.data();
        if (dense) {
            for (std::size_t r = 0; r < rows; ++r) {
                expand_row(source, sample, begin + r, desk, desk.inputs.data() + r * time_steps * layer.num_inputs);
            }
            kernels.dense_linear(desk.inputs.data(), rows * time_steps, layer.num_inputs, weights, currents);
        } else {
            for (std::size_t r = 0; r < rows; ++r) {
                const std::size_t row = begin + r;
                const std::size_t block = sample * blocks + row / listed_rows;
                const Index* indices = work.indices.data() + block * capacity;
                const float* values = work.values.data() + block * list_values(source);
                for (std::size_t group = 0; group < num_groups; ++group) {
                    const std::size_t list = (sample * positions + row) * num_groups + group;
                    const std::uint32_t* ends = work.ends.data() + list * num_patterns;
                    float* sums = currents + r * row_size + group * group_steps * kernels.tile;
                    if (source.counts) {
                        kernels.count_linear(indices + work.starts.data()[list],
                                             values + work.value_starts.data()[list], ends, steps_of(group), weights,
                                             sums);
                    } else {
                        kernels.spike_linear(indices + work.starts.data()[list], ends, steps_of(group), weights, sums);
                    }
                }
            }
        }
        for (std::size_t r = 0; r < rows; ++r) {
            fire_tile(layer, tile, currents + r * row_size, kernels.tile, sample * positions + begin + r, offset,
                      target.spikes);
        }
    }
}

// `position` counts through all samples of the chunk; `offset` is the layer's place in a sample's state.
void Chunk::fire_tile(const Layer& layer, std::size_t tile, const float* currents, std::size_t current_stride,
                      std::size_t position, std::size_t offset, Word* spikes) {
    const std::size_t step_bytes = layer.words * sizeof(Word);
    unsigned char* bits = reinterpret_cast<unsigned char*>(spikes + position * time_steps * layer.words);
    const std::size_t place = offset + position * layer.width() + tile * kernels.tile;
    kernels.fire(currents, current_stride, time_steps, layer.bias.data() + tile * kernels.tile, layer.dynamics,
                 state ? state + place : nullptr, next_state ? next_state + place : nullptr,
                 bits + tile * kernels.tile / 8, step_bytes);
}

// Steps [steps][row_words] of what a row sees: in place, or gathered from nine neighbours.
const Word* Chunk::spikes_of_row(const Source& source, std::size_t sample, std::size_t row, std::size_t step,
                                 std::size_t steps, Desk& desk) const {
    const std::size_t words = source.words;
    const Word* map = source.spikes + sample * source.positions() * time_steps * words + step * words;
    if (!source.neighbours) {
        return map + row * time_steps * words;
    }
    Word* gathered = desk.row.data();
    for (std::size_t n = 0; n < 9; ++n) {
        std::size_t position = 0;
        const bool inside = neighbour(source.height, source.width, row, n, position);
        const Word* from = map + position * time_steps * words;
        for (std::size_t t = 0; t < steps; ++t) {
            Word* to = gathered + (t * 9 + n) * words;
            for (std::size_t w = 0; w < words; ++w) {
                to[w] = inside ? from[t * words + w] : 0;
            }
        }
    }
    return gathered;
}

void Chunk::expand_row(const Source& source, std::size_t sample, std::size_t row, Desk& desk, float* values) const {
    const std::size_t words = source.row_words();
    for (std::size_t t = 0; t < time_steps; ++t) {
        float* step = values + t * words * word_bits;
        if (source.counts) {
            const std::size_t position = sample * source.positions() + row;
            kernels.expand_counts(source.counts + (position * time_steps + t) * words * word_bits, words * word_bits,
                                  step);
        } else {
            kernels.expand_spikes(spikes_of_row(source, sample, row, t, 1, desk), words, step);
        }
    }
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

// SN(Q K^T V scale): whole numbers for each head, then the neuron at its own threshold.
void Chunk::attend(const Block& block, Word* spikes) {
    LayerReport& told = report(block.name + ".mixing");
    const Stopwatch watch(told.product_seconds);
    const std::size_t width = stream_words * word_bits, heads = block.mixes ? block.num_heads : 1;
    const std::size_t head_dim = block.value.num_outputs / heads, head_words = divide_up(head_dim, word_bits);
    float* currents = work.attention.reserve(count * num_tokens * time_steps * width);
    if (block.value.num_outputs < width) {
        std::fill_n(currents, count * num_tokens * time_steps * width, 0.0f);
    }
    net.threads.for_each(count * heads * time_steps, [&](std::size_t item, std::size_t thread) {
        const std::size_t sample = item / (heads * time_steps), head = item / time_steps % heads;
        const std::size_t t = item % time_steps;
        Desk& desk = work.desks[thread];
        Word* bits = desk.heads.data();
        const std::size_t size = num_tokens * head_words;
        const auto take_head = [&](const Word* tokens, Word* to) {
            for (std::size_t n = 0; n < num_tokens; ++n) {
                const Word* token = tokens + ((sample * num_tokens + n) * time_steps + t) * stream_words;
                for (std::size_t w = 0; w < head_words; ++w) {
                    const std::size_t begin = head * head_dim + w * word_bits, shift = begin % word_bits;
                    const std::size_t bits_left = std::min(word_bits, head_dim - w * word_bits);
                    Word word = token[begin / word_bits] >> shift;
                    if (shift != 0 && shift + bits_left > word_bits) {
                        word |= token[begin / word_bits + 1] << (word_bits - shift);
                    }
                    to[n * head_words + w] = bits_left == word_bits ? word : word & ((Word{1} << bits_left) - 1);
                }
            }
        };
        take_head(work.value.data(), bits + 2 * size);
        std::int32_t* products = desk.products.data();
        if (!block.mixes) {
            for (std::size_t i = 0; i < num_tokens * head_dim; ++i) {
                const std::size_t n = i / head_dim, d = i % head_dim;
                products[i] = bits[2 * size + n * head_words + d / word_bits] >> (d % word_bits) & 1;
            }
        } else {
            take_head(work.query.data(), bits);
            take_head(work.key.data(), bits + size);
            if (2 * num_tokens >= head_dim) {
                kernels.attend_key_value_first(bits, bits + size, bits + 2 * size, num_tokens, head_dim, products,
                                               bits + 3 * size);
            } else {
                kernels.attend_query_key_first(bits, bits + size, bits + 2 * size, num_tokens, head_dim, products);
            }
        }
        for (std::size_t n = 0; n < num_tokens; ++n) {
            float* to = currents + ((sample * num_tokens + n) * time_steps + t) * width + head * head_dim;
            for (std::size_t d = 0; d < head_dim; ++d) {
                to[d] = static_cast<float>(products[n * head_dim + d]) * block.scale;
            }
        }
    });
    const std::size_t offset = claim_state(num_tokens, block.value), tiles = width / kernels.tile;
    net.threads.for_each(count * num_tokens, [&](std::size_t position, std::size_t) {
        for (std::size_t tile = 0; tile < tiles; ++tile) {
            const std::size_t place = offset + position * width + tile * kernels.tile;
            unsigned char* bits = reinterpret_cast<unsigned char*>(spikes + position * time_steps * stream_words);
            kernels.fire(currents + position * time_steps * width + tile * kernels.tile, width, time_steps,
                         net.no_bias.data(), block.mixed, state ? state + place : nullptr,
                         next_state ? next_state + place : nullptr, bits + tile * kernels.tile / 8,
                         stream_words * sizeof(Word));
        }
    });
    told.samples += count;
    record(block.name + ".neuron", num_tokens, block.value.num_outputs, spikes);
}

void Chunk::add_to_stream(const Word* spikes, std::size_t words) {
    const std::size_t positions = count * num_tokens, size = time_steps * words, rows = 64;
    net.threads.for_each(divide_up(positions, rows), [&](std::size_t item, std::size_t) {
        const std::size_t begin = item * rows, end = std::min(positions, begin + rows);
        kernels.add_spikes(spikes + begin * size, (end - begin) * size, work.counts.data() + begin * size * word_bits);
    });
}

bool Chunk::takes_dense(const Source& source, std::size_t sample) const {
    if (net.path != Path::measured) {
        return net.path == Path::dense;
    }
    const std::size_t computed = source.positions() * time_steps * source.row_words() * word_bits;  // padding, too
    return static_cast<double>(work.additions[sample]) > net.crossover * static_cast<double>(computed);
}

std::size_t Chunk::steps_of(std::size_t group) const {
    return std::min(group_steps, time_steps - group * group_steps);
}

std::size_t Chunk::list_capacity(const Source& source) const {
    return listed_rows * num_groups * source.row_words() * word_bits;
}

std::size_t Chunk::list_values(const Source& source) const {
    return source.counts ? listed_rows * time_steps * source.row_words() * word_bits + 1 : 0;
}

// State is [layers][B][positions][width]: where this layer's voltages of the chunk's first sample are.
std::size_t Chunk::claim_state(std::size_t positions, const Layer& layer) {
    const std::size_t offset = state_used + first * positions * layer.width();
    state_used += input.batch_size * positions * layer.width();
    return offset;
}

LayerReport& Chunk::report(const std::string& name, std::size_t num_layers) {
    if (next_report == net.reports.size()) {
        net.reports.emplace_back();
        net.reports.back().name = name;
        net.reports.back().num_layers = num_layers;
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
