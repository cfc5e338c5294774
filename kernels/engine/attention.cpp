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

std::size_t mixed_width(const Block& block) {
    const std::size_t head_dim = block.value.num_outputs / block.num_heads;
    return block.mixes ? std::min(std::lcm(head_dim, word_bits), block.value.width()) : block.value.width();
}

void Chunk::attend(const Block& block, Word* spikes) {
    LayerReport& told = report(block.name + ".mixing");
    const Stopwatch watch(told.product_seconds);
    const std::size_t heads = block.mixes ? block.num_heads : 1, head_dim = block.value.num_outputs / heads;
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
                const std::int32_t* products = mix_head(block, sample, head, head_dim, t, work.desks[thread]);
                for (std::size_t n = 0; n < num_tokens; ++n) {
                    float* to = currents + (n * time_steps + t) * width + (head - first_head) * head_dim;
                    for (std::size_t d = 0; d < head_dim; ++d) {
                        to[d] = static_cast<float>(products[n * head_dim + d]) * block.scale;
                    }
                }
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

// [num_tokens][head_dim], on the desk: the product of one head at one step, or the value itself.
const std::int32_t* Chunk::mix_head(const Block& block, std::size_t sample, std::size_t head, std::size_t head_dim,
                                    std::size_t t, Desk& desk) {
    const std::size_t stride = time_steps * stream_words, begin = sample * num_tokens * stride + t * stream_words;
    const std::size_t head_words = divide_up(head_dim, word_bits), size = num_tokens * head_words;
    Word *query = desk.heads.data(), *key = query + size, *value = key + size;
    std::int32_t* products = desk.products.data();
    take_head(work.value.data() + begin, num_tokens, stride, head, head_dim, value);
    if (!block.mixes) {
        for (std::size_t n = 0; n < num_tokens; ++n) {
            for (std::size_t d = 0; d < head_dim; ++d) {
                products[n * head_dim + d] = value[n * head_words + d / word_bits] >> (d % word_bits) & 1;
            }
        }
        return products;
    }
    take_head(work.query.data() + begin, num_tokens, stride, head, head_dim, query);
    take_head(work.key.data() + begin, num_tokens, stride, head, head_dim, key);
    if (2 * num_tokens >= head_dim) {  // else there are fewer pairs of tokens than of features
        std::int32_t* shared = products + num_tokens * head_dim;
        kernels.attend_key_value_first(query, key, value, num_tokens, head_dim, products, shared);
    } else {
        kernels.attend_query_key_first(query, key, value, num_tokens, head_dim, products);
    }
    return products;
}

}  // namespace spikformer::engine
