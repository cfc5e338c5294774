#include "network.hpp"

#include <algorithm>

#include "chunk.hpp"

namespace spikformer::engine {
namespace {

constexpr std::size_t rows_together = 8192;   // of the largest map that convolutions of spikes read
constexpr std::size_t most_together = 16;     // samples

}  // namespace

std::size_t Network::state_size(std::size_t height, std::size_t width) const {
    std::size_t size = 0, positions = height * width;
    for (std::size_t index = 0; index < stages.size(); ++index) {
        size += positions * stages[index].width();
        positions /= pooled[index] ? 4 : 1;
    }
    size += positions * position.width();
    for (const Block& block : blocks) {
        const std::size_t attention = (block.mixes ? 4 : 2) * block.value.width();  // Q, K, V and the neuron after them
        size += positions * (attention + block.projection.width() + block.hidden.width() + block.output.width());
    }
    return size;
}

std::size_t Network::samples_together(const Input& input) const {
    if (chunk_size > 0) {
        return chunk_size;
    }
    const std::size_t largest = std::max<std::size_t>(1, input.height * input.width / (pooled[0] ? 4 : 1));
    return std::clamp<std::size_t>(rows_together / largest, 1, most_together);
}

void Network::reserve_desks(const Input& input) {
    std::size_t words = 0, most_inputs = 0;
    for (const Layer& stage : stages) {
        words = std::max(words, 9 * stage.words);
        most_inputs = std::max(most_inputs, stage.num_inputs);
    }
    most_inputs = std::max(most_inputs, position.num_inputs);
    std::size_t positions = input.height * input.width;
    for (const bool halved : pooled) {
        positions /= halved ? 4 : 1;
    }
    std::size_t products = position.width(), heads = 0;
    for (const Block& block : blocks) {
        const std::size_t head_dim = block.value.num_outputs / block.num_heads;
        words = std::max({words, block.value.words, block.hidden.words});
        most_inputs = std::max({most_inputs, block.hidden.num_inputs, block.output.num_inputs});
        const std::size_t head = block.mixes ? head_dim : block.value.num_outputs;
        products = std::max(products, positions * head);
        heads = std::max(heads, 3 * positions * divide_up(head, word_bits) +
                                    2 * head * divide_up(positions, word_bits) + head * head / 2 + 1);
    }
    work.desks.resize(threads.count());
    for (Desk& desk : work.desks) {
        desk.events.reserve(words * word_bits + gather_margin);
        desk.row.reserve(words * group_steps);
        desk.inputs.reserve(fired_rows * input.time_steps * most_inputs);
        desk.currents.reserve(fired_rows * input.time_steps * widest_tile);
        desk.products.reserve(products);
        desk.heads.reserve(heads);
    }
}

void Network::run(const Input& input, const float* state, float* next_state, float* logits) {
    const std::lock_guard<std::mutex> lock(running);
    reserve_desks(input);
    no_bias.assign(position.width(), 0.0f);
    reports.clear();
    recorded.clear();
    const std::size_t together = samples_together(input);
    for (std::size_t first = 0; first < input.batch_size; first += together) {
        const std::size_t count = std::min(together, input.batch_size - first);
        Chunk(*this, input, first, count, state, next_state).run(logits);
    }
}

std::size_t Network::weight_bytes() const {
    const auto bytes = [](const Layer& layer) { return layer.weights.bytes() + layer.bias.bytes(); };
    std::size_t sum = bytes(position) + (head.weights.size() + head.bias.size()) * sizeof(float);
    for (const Layer& stage : stages) {
        sum += bytes(stage);
    }
    for (const Block& block : blocks) {
        for (const Layer* layer : {&block.query, &block.key, &block.value, &block.projection, &block.hidden, &block.output}) {
            sum += bytes(*layer);
        }
    }
    return sum;
}

std::size_t Network::buffer_bytes() const {
    std::size_t sum = work.counts.bytes() + work.attention.bytes() + work.indices.bytes() + work.values.bytes() +
                      work.starts.bytes() + work.value_starts.bytes() + work.ends.bytes();
    for (const Buffer<Word>* buffer : {&work.map, &work.pooled, &work.query, &work.key, &work.value, &work.mixed,
                                       &work.hidden, &work.pool}) {
        sum += buffer->bytes();
    }
    for (const Desk& desk : work.desks) {
        sum += desk.events.bytes() + desk.row.bytes() + desk.inputs.bytes() + desk.currents.bytes() +
               desk.products.bytes() + desk.heads.bytes();
    }
    return sum;
}

}  // namespace spikformer::engine
