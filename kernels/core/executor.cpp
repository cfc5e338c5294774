#include "executor.hpp"

#include <algorithm>
#include <cstring>

namespace spikformer::engine {
namespace {

constexpr std::size_t rows_together = 64;  // of a loop that only moves memory

// A well-mixed number of a place: noise must not depend on who computes it, or in which order.
std::uint64_t hash(std::uint64_t x) {
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

}  // namespace

Executor::Executor(Engine& engine, const Input& input, const std::vector<Value>& values,
                   const std::vector<std::size_t>& state_offsets, std::size_t first, std::size_t count,
                   const float* state, float* next_state)
    : engine(engine), kernels(engine.program_.kernels()), ops(engine.program_.ops()), work(engine.work_), input(input),
      values(values), state_offsets(state_offsets), first(first), count(count), time_steps(input.time_steps),
      num_groups(divide_up(input.time_steps, group_steps)), state(state), next_state(next_state) {
    for (Tap& tap : engine.taps) {
        if (tap.wants_membranes) {
            membranes.resize(ops.size(), nullptr);
            membranes[tap.op] =
                tap.membranes.data() + first * tap.positions * time_steps * tap.words * word_bits;
        }
    }
}

void Executor::run(float* logits) {
    for (const Step& step : engine.steps_) {
        for (std::size_t index = step.first; index < step.last; ++index) {
            if (slot(index + 1) != Program::none) {
                reserve(index + 1);
            }
        }
        switch (ops[step.first].kind) {
            case OpKind::convolve:
                if (ops[step.first].inputs[0] == 0) {
                    convolve_pixels(step);
                } else {
                    convolve(step);
                }
                break;
            case OpKind::attend: attend(step); break;
            case OpKind::fire: fire(step.first); break;
            case OpKind::pool: pool(step.first); break;
            case OpKind::pool_tokens: pool_tokens(step.first); break;
            case OpKind::add: add(step.first); break;
            case OpKind::read_out: read_out(step.first, logits); break;
        }
        for (std::size_t index = step.first; index < step.last; ++index) {
            if (ops[index].kind == OpKind::fire) {
                finish(index);
            }
        }
    }
}

// Products of integers read whole groups of rows, so counts have some behind the last.
void Executor::reserve(std::size_t buffer) {
    const Value& value = values[buffer];
    Engine::Slot& memory = work.slots[slot(buffer)];
    const std::size_t words = words_of(buffer);
    if (value.kind == Kind::spikes) {
        memory.spikes.reserve(words);
    } else if (value.kind == Kind::counts) {
        memory.counts.reserve((words + integer_rows * value.words()) * word_bits);
    } else {
        memory.floats.reserve(words * word_bits);
    }
}

Source Executor::source_of(std::size_t buffer, bool neighbours) {
    const Value& value = values[buffer];
    Source source;
    const std::size_t words = words_of(buffer);
    source.spikes = value.kind == Kind::spikes ? spikes(buffer, 0, words) : nullptr;
    source.counts = value.kind == Kind::counts ? counts(buffer, 0, words * word_bits) : nullptr;
    source.height = neighbours ? value.height : 1;  // without a window, positions are one row
    source.width = neighbours ? value.width : value.positions();
    source.words = value.words();
    source.channels = value.channels;
    source.neighbours = neighbours;
    return source;
}

// The currents of a tile: to its neurons, or with the bias to the buffer that keeps them.
void Executor::finish_tile(const Tile& tile, const float* currents, std::size_t current_row, std::size_t current_step,
                           std::size_t position, std::size_t rows) {
    const Layer& layer = tile.product->layer;
    const std::size_t first_channel = tile.index * kernels.tile;
    const float* bias = layer.bias.data() + first_channel;
    if (tile.neuron) {
        fire_tile(*tile.neuron, static_cast<Word*>(tile.output), layer.words, first_channel, bias, currents,
                  current_row, current_step, position, rows, tile.state_offset);
        return;
    }
    const std::size_t steps = current_step == 0 ? 1 : time_steps;
    float* kept = static_cast<float*>(tile.output) + position * steps * layer.width() + first_channel;
    for (std::size_t r = 0; r < rows; ++r) {
        for (std::size_t t = 0; t < steps; ++t) {
            kernels.add_floats(currents + r * current_row + t * current_step, bias, kernels.tile,
                               kept + (r * steps + t) * layer.width());
        }
    }
}

void Executor::fire_tile(const Op& neuron, Word* spikes, std::size_t words, std::size_t first_channel,
                         const float* bias, const float* currents, std::size_t current_row, std::size_t current_step,
                         std::size_t position, std::size_t rows, std::size_t state_offset) {
    const std::size_t width = words * word_bits, place = state_offset + position * width + first_channel;
    Firing firing;
    firing.currents = currents;
    firing.current_row = current_row;
    firing.current_step = current_step;
    firing.spikes = reinterpret_cast<unsigned char*>(spikes + position * time_steps * words) + first_channel / 8;
    firing.spike_step = words * sizeof(Word);
    firing.spike_row = time_steps * firing.spike_step;
    firing.initial = state ? state + place : nullptr;
    firing.voltage = next_state ? next_state + place : nullptr;
    firing.state_row = width;
    if (!membranes.empty() && membranes[static_cast<std::size_t>(&neuron - ops.data())]) {
        firing.membrane_step = width;
        firing.membrane_row = time_steps * width;
        firing.membranes = membranes[static_cast<std::size_t>(&neuron - ops.data())] +
                           position * firing.membrane_row + first_channel;
    }
    kernels.fire(firing, rows, time_steps, bias, neuron.dynamics);
}

// State is [neurons' ops][B][positions][width]: where those of the chunk's first sample begin.
std::size_t Executor::state_offset(std::size_t neuron) const {
    const Value& value = values[neuron + 1];
    return state_offsets[neuron] * input.batch_size + first * value.positions() * value.padded();
}

// Neurons that read a stream, a pool, or other neurons.
void Executor::fire(std::size_t index) {
    const std::size_t from = ops[index].inputs[0], steps = steps_of(from), offset = state_offset(index);
    const Value& x = values[from];
    const std::size_t positions = x.positions(), width = x.padded(), blocks = divide_up(positions, fired_rows);
    Word* fired = spikes(index + 1, 0, words_of(index + 1));
    engine.threads_.for_each(count * blocks, [&](std::size_t item, std::size_t thread) {
        const std::size_t begin = item % blocks * fired_rows, rows = std::min(fired_rows, positions - begin);
        const std::size_t position = item / blocks * positions + begin;
        const float* currents = nullptr;
        if (x.kind == Kind::floats) {
            currents = floats(from, position * steps * width, rows * steps * width);
        } else {
            const std::size_t size = rows * steps * width, place = position * steps * width;
            float* expanded = work.scratch[thread].inputs.at(0, size);
            if (x.kind == Kind::counts) {
                kernels.expand_counts(counts(from, place, size), size, expanded);
            } else {
                kernels.expand_spikes(spikes(from, place / word_bits, size / word_bits), size / word_bits, expanded);
            }
            currents = expanded;
        }
        for (std::size_t channel = 0; channel < width; channel += kernels.tile) {
            fire_tile(ops[index], fired, x.words(), channel, engine.no_bias_.data(), currents + channel, steps * width,
                      x.is_static ? 0 : width, position, rows, offset);
        }
    });
}

void Executor::pool(std::size_t index) {
    const std::size_t from = ops[index].inputs[0];
    const Value& x = values[from];
    const std::size_t rows = x.height / 2, depth = steps_of(from) * x.words();
    engine.threads_.for_each(count * rows, [&](std::size_t item, std::size_t) {
        const std::size_t sample = item / rows, row = item % rows;
        const std::size_t map = x.positions() * depth, pooled = x.width / 2 * depth;
        if (x.kind == Kind::spikes) {
            kernels.pool_map_row(spikes(from, sample * map, map), x.height, x.width, depth, row,
                                 spikes(index + 1, item * pooled, pooled));
        } else {
            kernels.pool_floats_row(floats(from, sample * map * word_bits, map * word_bits), x.height, x.width,
                                    depth * word_bits, row,
                                    floats(index + 1, item * pooled * word_bits, pooled * word_bits));
        }
    });
}

void Executor::pool_tokens(std::size_t index) {
    const Op& op = ops[index];
    const Value& x = values[op.inputs[0]];
    const std::size_t depth = time_steps * x.words(), size = x.positions() * depth;
    engine.threads_.for_each(count, [&](std::size_t sample, std::size_t) {
        kernels.pool_tokens(spikes(op.inputs[0], sample * size, size), x.positions(), depth, op.kernel,
                            spikes(index + 1, sample * size, size));
    });
}

void Executor::add(std::size_t index) {
    const Op& op = ops[index];
    const std::size_t stream = op.inputs[0], from = op.inputs[1], to = index + 1;
    const Value& sum = values[to];
    const std::size_t positions = count * sum.positions(), size = steps_of(to) * sum.words();
    engine.threads_.for_each(divide_up(positions, rows_together), [&](std::size_t item, std::size_t) {
        const std::size_t begin = item * rows_together, rows = std::min(rows_together, positions - begin);
        const std::size_t place = begin * size, words = rows * size;
        if (sum.kind == Kind::floats) {
            const std::size_t width = sum.padded(), steps = steps_of(to);
            const std::size_t a_steps = steps_of(stream), b_steps = steps_of(from);
            for (std::size_t row = begin; row < begin + rows; ++row) {
                for (std::size_t t = 0; t < steps; ++t) {  // what is static stands for all steps
                    kernels.add_floats(floats(stream, (row * a_steps + t % a_steps) * width, width),
                                       floats(from, (row * b_steps + t % b_steps) * width, width), width,
                                       floats(to, (row * steps + t) * width, width));
                }
            }
            return;
        }
        std::uint8_t* counted = counts(to, place * word_bits, words * word_bits);
        if (values[stream].kind == Kind::spikes) {
            std::memset(counted, 0, words * word_bits);
            kernels.add_spikes(spikes(stream, place, words), words, counted);
        } else if (slot(stream) != slot(to)) {
            std::memcpy(counted, counts(stream, place * word_bits, words * word_bits), words * word_bits);
        }
        kernels.add_spikes(spikes(from, place, words), words, counted);
    });
    if (sum.kind == Kind::counts) {  // what is read beyond the last row
        const std::size_t margin = integer_rows * sum.padded();
        std::memset(counts(to, positions * size * word_bits, margin), 0, margin);
    }
}

void Executor::read_out(std::size_t index, float* logits) {
    const Op& op = ops[index];
    const std::size_t from = op.inputs[0], steps = steps_of(from), num_classes = op.bias.size();
    const Value& x = values[from];
    const std::size_t width = x.padded();
    engine.threads_.for_each(count * time_steps, [&](std::size_t item, std::size_t thread) {
        const std::size_t sample = item / time_steps, t = item % time_steps;
        const std::size_t place = (sample * x.positions() * steps + t % steps) * width;
        const std::size_t seen = ((x.positions() - 1) * steps + 1) * width;  // from there to the last position
        float* answer = logits + (t * input.batch_size + first + sample) * num_classes;
        Scratch& scratch = work.scratch[thread];
        if (x.kind == Kind::counts) {
            std::int32_t* totals = scratch.totals.at(0, x.channels);
            kernels.sum_tokens(counts(from, place, seen), x.positions(), steps * width, x.channels, totals);
            kernels.read_out(totals, x.positions(), x.channels, op.weights.data(), op.bias.data(),
                             num_classes, answer);
        } else {
            double* sums = scratch.sums.at(0, x.channels);
            kernels.sum_floats(floats(from, place, seen), x.positions(), steps * width, x.channels, sums);
            kernels.read_out_floats(sums, x.positions(), x.channels, op.weights.data(), op.bias.data(),
                                    num_classes, answer);
        }
    });
}

void Executor::finish(std::size_t index) {
    for (const Intervention& intervention : engine.interventions) {
        if (intervention.op == index) {
            intervene(intervention);
        }
    }
    for (Tap& tap : engine.taps) {
        if (tap.op == index) {
            const std::size_t size = tap.positions * time_steps * tap.words;
            std::copy_n(spikes(index + 1, 0, count * size), count * size, tap.spikes.data() + first * size);
        }
    }
}

void Executor::intervene(const Intervention& intervention) {
    const std::size_t buffer = intervention.op + 1;
    const Value& value = values[buffer];
    const std::size_t words = value.words(), sample_words = value.positions() * time_steps * words;
    const auto bound = static_cast<std::uint64_t>(intervention.noise * 0x1p53);
    Word* fired = spikes(buffer, 0, count * sample_words);
    if (!intervention.replacement.empty()) {
        std::copy_n(intervention.replacement.data() + first * sample_words, count * sample_words, fired);
    }
    engine.threads_.for_each(count, [&](std::size_t sample, std::size_t) {
        for (std::size_t w = 0; w < sample_words; ++w) {
            Word& word = fired[sample * sample_words + w];
            word &= intervention.kept[w % words];
            const std::size_t channels = std::min(word_bits, value.channels - w % words * word_bits);
            for (std::size_t bit = 0; bound > 0 && bit < channels; ++bit) {
                const std::uint64_t place = ((first + sample) * sample_words + w) * word_bits + bit;
                word |= Word{hash(hash(intervention.seed) ^ place) >> 11 < bound} << bit;
            }
        }
    });
}

OpReport& Executor::report(const std::string& name) {
    if (next_report == engine.reports.size()) {
        engine.reports.emplace_back();
        engine.reports.back().name = name;
    }
    return engine.reports[next_report++];
}

}  // namespace spikformer::engine
