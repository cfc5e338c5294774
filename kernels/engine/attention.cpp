// SN(Q K^T V scale): whole numbers for each head and step, then the neuron at its own threshold.
#include <algorithm>
#include <numeric>

#include "chunk.hpp"

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

std::size_t head_dim_of(const Block& block) {
    return block.value.num_outputs / (block.mixes ? block.num_heads : 1);
}

std::size_t mixed_width(const Block& block) {
    const std::size_t head_dim = head_dim_of(block);
    return block.mixes ? std::min(std::lcm(head_dim, word_bits), block.value.width()) : block.value.width();
}

void Chunk::attend(const Block& block, Word* spikes) {
    LayerReport& told = report(block.name + ".mixing");
    const Stopwatch watch(told.product_seconds);
    const std::size_t heads = block.mixes ? block.num_heads : 1, head_dim = head_dim_of(block);
    const std::size_t width = mixed_width(block), heads_together = std::max<std::size_t>(1, width / head_dim);
    const std::size_t groups = divide_up(heads, heads_together), offset = claim_state(num_tokens, block.value);
    net.threads.for_each(count * groups, [&](std::size_t item, std::size_t thread) {
        const std::size_t sample = item / groups, first_head = item % groups * heads_together;
        const std::size_t last_head = std::min(heads, first_head + heads_together);
        float* currents = work.desks[thread].mixed.data();  // [num_tokens][T][width]
        if ((last_head - first_head) * head_dim < width) {
            std::fill_n(currents, num_tokens * time_steps * width, 0.0f);
        }
        for (std::size_t head = first_head; head < last_head; ++head) {
            for (std::size_t t = 0; t < time_steps; ++t) {
                mix_head(block, sample, head, t, work.desks[thread],
                         currents + t * width + (head - first_head) * head_dim, time_steps * width);
            }
        }
        const std::size_t first_channel = first_head * head_dim;
        const std::size_t channels = std::min(width, stream_words * word_bits - first_channel);
        Firing firing;
        firing.current_step = width;
        firing.current_row = time_steps * width;
        firing.spike_step = stream_words * sizeof(Word);
        firing.spike_row = time_steps * firing.spike_step;
        firing.state_row = stream_words * word_bits;
        for (std::size_t c = 0; c < channels; c += kernels.tile) {
            const std::size_t channel = first_channel + c, position = sample * num_tokens;
            const std::size_t place = offset + position * firing.state_row + channel;
            firing.currents = currents + c;
            firing.spikes = reinterpret_cast<unsigned char*>(spikes) + position * firing.spike_row + channel / 8;
            firing.initial = state ? state + place : nullptr;
            firing.voltage = next_state ? next_state + place : nullptr;
            kernels.fire(firing, num_tokens, time_steps, net.no_bias.data(), block.mixed);
        }
    });
    told.samples += count;
    record(block.name + ".neuron", num_tokens, block.value.num_outputs, spikes);
}

// The currents of one head at one step, its tokens `stride` apart: the scaled product, or the value itself.
void Chunk::mix_head(const Block& block, std::size_t sample, std::size_t index, std::size_t t, Desk& desk,
                     float* currents, std::size_t stride) {
    const std::size_t head_dim = head_dim_of(block), head_words = divide_up(head_dim, word_bits);
    const std::size_t token_words = time_steps * stream_words, size = num_tokens * head_words;
    const std::size_t first_word = sample * num_tokens * token_words + t * stream_words;
    Word *query = desk.heads.data(), *key = query + size, *value = key + size;
    take_head(work.value.data() + first_word, num_tokens, token_words, index, head_dim, value);
    if (!block.mixes) {
        for (std::size_t n = 0; n < num_tokens; ++n) {
            for (std::size_t d = 0; d < head_dim; ++d) {
                const bool fires = value[n * head_words + d / word_bits] >> (d % word_bits) & 1;
                currents[n * stride + d] = fires ? block.scale : 0.0f;
            }
        }
        return;
    }
    take_head(work.query.data() + first_word, num_tokens, token_words, index, head_dim, query);
    take_head(work.key.data() + first_word, num_tokens, token_words, index, head_dim, key);
    const AttentionHead head{query, key, value, num_tokens, head_dim};
    if (2 * num_tokens < head_dim) {  // fewer pairs of tokens than of features
        kernels.attend_query_key_first(head, block.scale, currents, stride);
    } else {
        kernels.attend_key_value_first(head, block.scale, currents, stride, desk.table.data());
    }
}

}  // namespace spikformer::engine
