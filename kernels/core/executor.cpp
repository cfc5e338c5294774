#include "executor.hpp"

#include <algorithm>

namespace spikformer::engine {

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
    for (const FusedOps& fused : engine.fused_) {
        for (std::size_t index = fused.first; index < fused.last; ++index) {
            if (slot(index + 1) != Program::none) {
                reserve(index + 1);
            }
        }
        switch (ops[fused.first].kind) {
            case OpKind::convolve:
                if (ops[fused.first].inputs[0] == 0) {
                    convolve_pixels(fused);
                } else {
                    convolve(fused);
                }
                break;
            case OpKind::convolve_depthwise: convolve_depthwise(fused); break;
            case OpKind::attend: attend(fused); break;
            case OpKind::fire: fire(fused.first); break;
            case OpKind::pool:
            case OpKind::dilate: pool(fused.first); break;
            case OpKind::pool_tokens: pool_tokens(fused.first); break;
            case OpKind::dilate_heads: dilate_heads(fused.first); break;
            case OpKind::add: add(fused.first); break;
            case OpKind::conjunction: conjunction(fused.first); break;
            case OpKind::sum_tokens:
            case OpKind::mean: sum_tokens(fused.first); break;
            case OpKind::sum_heads: sum_heads(fused.first); break;
            case OpKind::read_out: read_out(fused.first, logits); break;
        }
        for (std::size_t index = fused.first; index < fused.last; ++index) {
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

// What is read beyond the last row of counts must be there.
void Executor::clear_margin(std::size_t buffer) {
    const std::size_t margin = integer_rows * values[buffer].padded();
    std::fill_n(counts(buffer, words_of(buffer) * word_bits, margin), margin, std::uint8_t{0});
}

Source Executor::source_of(const Op& product) {
    const std::size_t buffer = product.inputs[0], words = words_of(buffer);
    const Value& value = values[buffer];
    Source source;
    source.spikes = value.kind == Kind::spikes ? spikes(buffer, 0, words) : nullptr;
    source.counts = value.kind == Kind::counts ? counts(buffer, 0, words * word_bits) : nullptr;
    source.window = {value.height, value.width, product.kernel, product.stride};
    if (source.window.is_plain()) {  // positions are one row
        source.window = {1, value.positions()};
    }
    source.words = value.words();
    source.channels = value.channels;
    return source;
}

// The currents of a tile, which it changes: straight to its neurons, or with the bias and the stream they are added to,
// if there is one, to where they are kept, and from there to neurons.
void Executor::finish_tile(const Tile& tile, float* currents, std::size_t current_row, std::size_t current_step,
                           std::size_t position, std::size_t rows) {
    const Layer& layer = tile.product->layer;
    const std::size_t first_channel = tile.index * kernels.tile;
    const float* bias = layer.bias.data() + first_channel;
    if (!tile.kept) {
        fire_tile(*tile.neuron, tile.spikes, layer.words, first_channel, bias, currents, current_row, current_step,
                  position, rows, tile.state_offset);
        return;
    }
    const std::size_t steps = current_step == 0 ? 1 : time_steps, width = tile.kept_width;
    float* kept = tile.kept + (position - tile.kept_position) * steps * width;
    for (std::size_t r = 0; r < rows; ++r) {
        for (std::size_t t = 0; t < steps; ++t) {
            float* current = currents + r * current_row + t * current_step;
            float* to = kept + (r * steps + t) * width;
            kernels.add_floats(current, bias, kernels.tile, tile.residual ? current : to);
            if (tile.residual) {  // which may be what is kept
                const std::size_t before = (position + r) * tile.residual_steps + t % tile.residual_steps;
                kernels.add_floats(tile.residual + before * layer.width() + first_channel, current, kernels.tile, to);
            }
        }
    }
    if (tile.neuron) {
        fire_tile(*tile.neuron, tile.spikes, layer.words, first_channel, engine.no_bias_.data(), kept, steps * width,
                  width, position, rows, tile.state_offset);
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

}  // namespace spikformer::engine
