#include "network.hpp"

#include <algorithm>

#include "chunk.hpp"

namespace spikformer::engine {
namespace {

// Weights are read once for all samples of a chunk, whose events must still fit the second-level cache or nearly so.
constexpr std::size_t lists_together = 8192;  // of the largest map that convolutions of spikes read
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
    const std::size_t positions = std::max<std::size_t>(1, input.height * input.width / (pooled[0] ? 4 : 1));
    const std::size_t lists = positions * divide_up(input.time_steps, group_steps);
    return std::clamp<std::size_t>(lists_together / lists, 1, most_together);
}

void Network::reserve_desks(const Input& input) {
    std::size_t most_inputs = 0;
    for (const Layer& stage : stages) {
        most_inputs = std::max(most_inputs, stage.num_inputs);
    }
    most_inputs = std::max(most_inputs, position.num_inputs);
    std::size_t positions = input.height * input.width;
    for (const bool halved : pooled) {
        positions /= halved ? 4 : 1;
    }
    std::size_t table = 0, heads = 0, mixed = 0;
    for (const Block& block : blocks) {
        most_inputs = std::max({most_inputs, block.hidden.num_inputs, block.output.num_inputs});
        const std::size_t head = head_dim_of(block);
        table = std::max(table, block.mixes ? head * word_bits : 0);
        mixed = std::max(mixed, positions * input.time_steps * mixed_width(block));
        heads = std::max(heads, 3 * positions * divide_up(head, word_bits));
    }
    work.desks.resize(threads.count());
    for (Desk& desk : work.desks) {
        const std::size_t rows = divide_up(fired_rows * input.time_steps, whole_rows) * whole_rows;
        const std::size_t most_floats = kernels.whole_linear ? stages[0].num_inputs : most_inputs;
        desk.inputs.reserve(fired_rows * input.time_steps * most_floats);
        desk.whole_inputs.reserve(kernels.whole_linear ? rows * most_inputs : 0);
        desk.currents.reserve(rows * widest_tile);
        desk.mixed.reserve(mixed);
        desk.table.reserve(table);
        desk.totals.reserve(position.width());
        desk.heads.reserve(heads);
    }
}

void Network::run(const Input& input, const float* state, float* next_state, float* logits) {
    const std::lock_guard<std::mutex> lock(running);
    reports.clear();
    recorded.clear();
    if (input.batch_size == 0) {
        return;  // its steps may be many, and nothing holds them
    }
    reserve_desks(input);
    no_bias.assign(position.width(), 0.0f);
    const std::size_t together = samples_together(input);
    for (std::size_t first = 0; first < input.batch_size; first += together) {
        const std::size_t count = std::min(together, input.batch_size - first);
        Chunk(*this, input, first, count, state, next_state).run(logits);
    }
}

std::size_t Network::buffer_bytes() const {
    std::size_t sum = work.counts.bytes() + work.lists.bytes();
    for (const Buffer<Word>* buffer : {&work.map, &work.pooled, &work.query, &work.key, &work.value, &work.mixed,
                                       &work.hidden, &work.pool}) {
        sum += buffer->bytes();
    }
    for (const Desk& desk : work.desks) {
        sum += desk.inputs.bytes() + desk.whole_inputs.bytes() + desk.currents.bytes() + desk.mixed.bytes() +
               desk.table.bytes() + desk.totals.bytes() + desk.heads.bytes();
    }
    return sum;
}

}  // namespace spikformer::engine
