// Attention of spikes: sums of integers for each head and step.
#include <algorithm>
#include <numeric>

#include "executor.hpp"

namespace spikformer::engine {
namespace {

// One head's bits at one step, [num_tokens][head words], out of tokens that are `stride` words apart.
void take_head(const Word* tokens, std::size_t num_tokens, std::size_t stride, std::size_t head, std::size_t head_dim,
               Word* bits) {
    for (std::size_t n = 0; n < num_tokens; ++n) {
        const Word* token = tokens + n * stride;
        for (std::size_t begin = head * head_dim, end = begin + head_dim; begin < end; begin += word_bits) {
            const std::size_t number = std::min(word_bits, end - begin), shift = begin % word_bits;
            Word word = token[begin / word_bits] >> shift;
            if (shift + number > word_bits) {
                word |= token[begin / word_bits + 1] << (word_bits - shift);
            }
            *bits++ = number == word_bits ? word : word & ((Word{1} << number) - 1);
        }
    }
}

}  // namespace

// Q K^T V scale for as few whole heads as fill whole words of spikes at a time, then their neurons or, without any, the
// buffer that keeps the currents.
void Executor::attend(const FusedOps& fused) {
    const Op& op = ops[fused.first];
    const bool fires = fused.last > fused.first + 1;
    const Value& x = values[op.inputs[0]];
    OpReport& done = report(op.name);
    const Stopwatch watch(done.product_seconds);
    const std::size_t num_tokens = x.positions(), head_dim = x.channels / op.num_heads;
    const std::size_t width = std::min(std::lcm(head_dim, word_bits), x.padded());
    const std::size_t heads_together = std::max<std::size_t>(1, width / head_dim);
    const std::size_t groups = divide_up(op.num_heads, heads_together);
    const std::size_t offset = fires ? state_offset(fused.first + 1) : 0;
    Word* fired = fires ? spikes(fused.first + 2, 0, words_of(fused.first + 2)) : nullptr;
    engine.threads_.for_each(count * groups, [&](std::size_t item, std::size_t thread) {
        const std::size_t sample = item / groups, first_head = item % groups * heads_together;
        const std::size_t last_head = std::min(op.num_heads, first_head + heads_together);
        float* currents = work.scratch[thread].mixed.at(0, num_tokens * time_steps * width);  // [num_tokens][T][width]
        if ((last_head - first_head) * head_dim < width) {
            std::fill_n(currents, num_tokens * time_steps * width, 0.0f);
        }
        for (std::size_t head = first_head; head < last_head; ++head) {
            for (std::size_t t = 0; t < time_steps; ++t) {
                mix_head(op, sample, head, t, work.scratch[thread],
                         currents + t * width + (head - first_head) * head_dim, time_steps * width);
            }
        }
        const std::size_t first_channel = first_head * head_dim, position = sample * num_tokens;
        const std::size_t channels = std::min(width, x.padded() - first_channel);
        if (!fires) {
            for (std::size_t row = 0; row < num_tokens * time_steps; ++row) {
                const std::size_t place = (position * time_steps + row) * x.padded() + first_channel;
                std::copy_n(currents + row * width, channels, floats(fused.first + 1, place, channels));
            }
            return;
        }
        for (std::size_t c = 0; c < channels; c += kernels.tile) {
            fire_tile(ops[fused.first + 1], fired, x.words(), first_channel + c,
                      engine.no_bias_.data(), currents + c, time_steps * width, width, position, num_tokens, offset);
        }
    });
    done.samples += count;
}

// The currents of one head at one step, its tokens `stride` apart.
void Executor::mix_head(const Op& op, std::size_t sample, std::size_t index, std::size_t t, Scratch& scratch,
                        float* currents, std::size_t stride) {
    const Value& x = values[op.inputs[0]];
    const std::size_t num_tokens = x.positions(), head_dim = x.channels / op.num_heads;
    const std::size_t token_words = time_steps * x.words(), size = num_tokens * divide_up(head_dim, word_bits);
    const std::size_t first_word = sample * num_tokens * token_words + t * x.words();
    Word* heads[3];
    for (std::size_t part = 0; part < 3; ++part) {
        heads[part] = scratch.heads.at(part * size, size);
        take_head(spikes(op.inputs[part], first_word, (num_tokens - 1) * token_words + x.words()), num_tokens, token_words, index, head_dim, heads[part]);
    }
    const AttentionHead head{heads[0], heads[1], heads[2], num_tokens, head_dim};
    if (query_key_first(num_tokens, head_dim)) {
        kernels.attend_query_key_first(head, op.scale, currents, stride);
    } else {
        kernels.attend_key_value_first(head, op.scale, currents, stride,
                                       scratch.table.at(0, head_dim * word_bits));
    }
}

}  // namespace spikformer::engine
