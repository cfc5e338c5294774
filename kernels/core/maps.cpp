// Ops without weights over whole maps: pools and max filters, sums, masks, and the readout.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "executor.hpp"

namespace spikformer::engine {
namespace {

constexpr std::size_t rows_together = 64;  // of a loop that only moves memory

}  // namespace

// Of floats, counts or spikes: all steps of a position lie side by side, and are pooled together.
void Executor::pool(std::size_t index) {
    const Op& op = ops[index];
    const std::size_t from = op.inputs[0], to = index + 1;
    const Value& x = values[from];
    const Window window{x.height, x.width, op.kernel, op.stride};
    const std::size_t rows = values[to].height, words = steps_of(from) * x.words();
    engine.threads_.for_each(count * rows, [&](std::size_t item, std::size_t) {
        const std::size_t sample = item / rows, row = item % rows;
        const auto pool_row = [&](auto* map, auto* pooled, std::size_t depth, const auto& kernel) {
            kernel(pooled_rows<std::remove_pointer_t<decltype(map)>>(
                       window, row, depth, [&](std::size_t y) { return map + y * x.width * depth; }),
                   pooled);
        };
        const std::size_t map = x.positions() * words, pooled = values[to].width * words;
        if (x.kind == Kind::spikes) {
            pool_row(spikes(from, sample * map, map), spikes(to, item * pooled, pooled), words, kernels.pool_map_row);
            return;
        }
        const std::size_t map_size = map * word_bits, size = pooled * word_bits;
        if (x.kind == Kind::counts) {
            pool_row(counts(from, sample * map_size, map_size), counts(to, item * size, size), words * word_bits,
                     kernels.pool_counts_row);
        } else {
            pool_row(floats(from, sample * map_size, map_size), floats(to, item * size, size), words * word_bits,
                     kernels.pool_floats_row);
        }
    });
    if (x.kind == Kind::counts) {
        clear_margin(to);
    }
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

void Executor::dilate_heads(std::size_t index) {
    const Op& op = ops[index];
    const Value& x = values[op.inputs[0]];
    const std::size_t size = x.positions() * time_steps * x.words();
    engine.threads_.for_each(count, [&](std::size_t sample, std::size_t) {
        kernels.dilate_heads(spikes(op.inputs[0], sample * size, size), x.positions(), time_steps, x.words(),
                             op.bounds.firsts.data(), op.bounds.lasts.data(), spikes(index + 1, sample * size, size));
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
    if (sum.kind == Kind::counts) {
        clear_margin(to);
    }
}

void Executor::conjunction(std::size_t index) {
    const Op& op = ops[index];
    const std::size_t from = op.inputs[0], by = op.inputs[1];
    const Value &x = values[from], &mask = values[by];
    const MaskForm form = mask_form(op, x, mask);
    const Word flip = op.inverted ? ~Word{0} : Word{0};
    const std::size_t positions = count * x.positions(), depth = time_steps * x.words();
    const std::size_t mask_depth = time_steps * mask.words(), head_dim = x.channels / op.num_heads;
    engine.threads_.for_each(divide_up(positions, rows_together), [&](std::size_t item, std::size_t thread) {
        const std::size_t first_row = item * rows_together, last_row = std::min(first_row + rows_together, positions);
        const std::size_t rows = last_row - first_row;
        const Word* bits = spikes(from, first_row * depth, rows * depth);
        Word* masked = spikes(index + 1, first_row * depth, rows * depth);
        if (form == MaskForm::same) {
            kernels.and_spikes(bits, spikes(by, first_row * depth, rows * depth), rows * depth, flip, masked);
            return;
        }
        for (std::size_t row = first_row; row < last_row; ++row, bits += depth, masked += depth) {
            if (form == MaskForm::positions) {
                kernels.and_spikes(bits, spikes(by, row / x.positions() * depth, depth), depth, flip, masked);
                continue;
            }
            Word* spread = work.scratch[thread].heads.at(0, x.words());
            const Word* heads = spikes(by, row * mask_depth, mask_depth);
            for (std::size_t t = 0; t < time_steps; ++t) {
                kernels.spread_heads(heads + t * mask.words(), op.num_heads, head_dim, spread);
                kernels.and_spikes(bits + t * x.words(), spread, x.words(), flip, masked + t * x.words());
            }
        }
    });
}

const std::int32_t* Executor::totals_of(std::size_t buffer, std::size_t sample, std::size_t t, Scratch& scratch) {
    const Value& x = values[buffer];
    const std::size_t words = x.words(), positions = x.positions();
    const std::size_t place = (sample * positions * time_steps + t) * words;
    const std::size_t seen = ((positions - 1) * time_steps + 1) * words;  // from there to the last position
    std::int32_t* totals = scratch.totals.at(0, x.padded());
    if (x.kind == Kind::spikes) {
        kernels.sum_spikes(spikes(buffer, place, seen), positions, time_steps * words, words, totals);
    } else {
        kernels.sum_tokens(counts(buffer, place * word_bits, seen * word_bits), positions,
                           time_steps * words * word_bits, x.padded(), totals);
    }
    return totals;
}

const double* Executor::sums_of(std::size_t buffer, std::size_t sample, std::size_t t, Scratch& scratch) {
    const Value& x = values[buffer];
    const std::size_t steps = steps_of(buffer), width = x.padded();
    const std::size_t place = (sample * x.positions() * steps + t % steps) * width;
    double* sums = scratch.sums.at(0, width);
    kernels.sum_floats(floats(buffer, place, ((x.positions() - 1) * steps + 1) * width), x.positions(), steps * width,
                       width, sums);
    return sums;
}

// Sums over tokens, or means.
void Executor::sum_tokens(std::size_t index) {
    const std::size_t from = ops[index].inputs[0], steps = steps_of(from);
    const Value& x = values[from];
    const double divisor = ops[index].kind == OpKind::mean ? static_cast<double>(x.positions()) : 1.0;
    engine.threads_.for_each(count * steps, [&](std::size_t item, std::size_t thread) {
        float* to = floats(index + 1, item * x.padded(), x.padded());
        const auto divide = [&](const auto* totals) {
            for (std::size_t c = 0; c < x.padded(); ++c) {
                to[c] = static_cast<float>(static_cast<double>(totals[c]) / divisor);
            }
        };
        if (x.kind == Kind::floats) {
            divide(sums_of(from, item / steps, item % steps, work.scratch[thread]));
        } else {
            divide(totals_of(from, item / steps, item % steps, work.scratch[thread]));
        }
    });
}

void Executor::sum_heads(std::size_t index) {
    const Op& op = ops[index];
    const Value &x = values[op.inputs[0]], &sum = values[index + 1];
    const std::size_t rows = count * x.positions() * time_steps, words = x.words(), width = sum.padded();
    engine.threads_.for_each(divide_up(rows, rows_together), [&](std::size_t item, std::size_t) {
        for (std::size_t row = item * rows_together; row < std::min((item + 1) * rows_together, rows); ++row) {
            float* to = floats(index + 1, row * width, width);
            kernels.sum_heads(spikes(op.inputs[0], row * words, words), op.num_heads, x.channels / op.num_heads, to);
            std::fill(to + op.num_heads, to + width, 0.0f);
        }
    });
}

void Executor::read_out(std::size_t index, float* logits) {
    const Op& op = ops[index];
    const std::size_t from = op.inputs[0], num_classes = op.bias.size();
    const Value& x = values[from];
    engine.threads_.for_each(count * time_steps, [&](std::size_t item, std::size_t thread) {
        const std::size_t sample = item / time_steps, t = item % time_steps;
        float* answer = logits + (t * input.batch_size + first + sample) * num_classes;
        Scratch& scratch = work.scratch[thread];
        if (x.kind == Kind::floats) {
            kernels.read_out_floats(sums_of(from, sample, t, scratch), x.positions(), x.channels, op.weights.data(),
                                    op.bias.data(), num_classes, answer);
        } else {
            kernels.read_out(totals_of(from, sample, t, scratch), x.positions(), x.channels, op.weights.data(),
                             op.bias.data(), num_classes, answer);
        }
    });
}

}  // namespace spikformer::engine
