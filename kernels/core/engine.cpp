#include "engine.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "executor.hpp"

namespace spikformer::engine {
namespace {

// Weights are read once for all samples of a chunk, whose events must still fit the second-level cache or nearly so.
constexpr std::size_t lists_together = 8192;  // of the largest map that a window over spikes or counts reads
constexpr std::size_t most_together = 16;     // samples

}  // namespace

Engine::Engine(Program program, std::size_t num_threads)
    : program_(std::move(program)), fused_(program_.fuse()), slots_(program_.assign_slots(fused_)),
      threads_(num_threads) {
    std::size_t widest = 0;
    for (const Value& value : program_.forms()) {
        widest = std::max(widest, value.padded());
    }
    no_bias_.assign(widest, 0.0f);
    work_.slots.resize(slots_.kinds.size());
}

std::size_t Engine::find_neurons(const std::string& name) const {
    const std::vector<Op>& ops = program_.ops();
    const auto found = std::find_if(
        ops.begin(), ops.end(), [&](const Op& op) { return op.kind == OpKind::fire && op.name == name; });
    require(found != ops.end(), "The program has no neurons called " + name + ".");
    return static_cast<std::size_t>(found - ops.begin());
}

std::size_t Engine::state_size(std::size_t height, std::size_t width) const {
    return Program::state_size(program_.ops(), program_.values(height, width, false));
}

std::size_t Engine::samples_together(const std::vector<Value>& values, std::size_t time_steps) const {
    std::size_t positions = 1;
    for (const Op& op : program_.ops()) {
        const Value& x = values[op.inputs[0]];
        if (op.kind == OpKind::convolve && op.kernel > 1 && x.kind != Kind::pixels) {
            positions = std::max(positions, x.positions());
        }
    }
    const std::size_t lists = positions * divide_up(time_steps, group_steps);
    return std::clamp<std::size_t>(lists_together / lists, 1, most_together);
}

// What one thread needs for the largest of all ops.
void Engine::reserve_scratch(const std::vector<Value>& values, std::size_t time_steps) {
    const Kernels& kernels = program_.kernels();
    const std::size_t rows = divide_up(fired_rows * time_steps, integer_rows) * integer_rows;
    std::size_t most_inputs = 0, most_floats = 0, table = 0, heads = 0, mixed = 0, totals = 0, sums = 0, pooled = 0;
    for (std::size_t index = 0; index < program_.ops().size(); ++index) {
        const Op& op = program_.ops()[index];
        const Value& x = values[op.inputs[0]];
        if (op.kind == OpKind::convolve) {
            most_inputs = std::max(most_inputs, op.layer.num_inputs);
            if (x.kind == Kind::pixels || !kernels.integers) {
                most_floats = std::max(most_floats, op.layer.num_inputs);
            }
        } else if (op.kind == OpKind::fire && x.kind != Kind::floats) {
            most_floats = std::max(most_floats, x.padded());
        } else if (op.kind == OpKind::pool && slots_.of_buffer[index + 1] == Program::none) {
            const std::size_t tiles = std::min(most_pooled_tiles, x.padded() / kernels.tile);
            pooled = std::max(pooled, (tiles * most_pooled + 1) * x.width * time_steps * kernels.tile);
        } else if (op.kind == OpKind::conjunction) {
            heads = std::max(heads, x.words());
        } else if (op.kind == OpKind::attend) {
            const std::size_t head_dim = x.channels / op.num_heads;
            table = std::max(table, query_key_first(x.positions(), head_dim) ? 0 : head_dim * word_bits);
            mixed = std::max(mixed, x.positions() * time_steps * std::min(std::lcm(head_dim, word_bits), x.padded()));
            heads = std::max(heads, 3 * x.positions() * divide_up(head_dim, word_bits));
        } else if (op.kind == OpKind::sum_tokens || op.kind == OpKind::mean || op.kind == OpKind::read_out) {
            std::size_t& most = x.kind == Kind::floats ? sums : totals;
            most = std::max(most, x.padded());
        }
    }
    work_.scratch.resize(threads_.count());
    for (ThreadScratch& scratch : work_.scratch) {
        scratch.inputs.reserve(fired_rows * time_steps * most_floats);
        scratch.byte_inputs.reserve(kernels.integers ? rows * most_inputs : 0);
        scratch.currents.reserve(rows * widest_tile);
        scratch.mixed.reserve(mixed);
        scratch.table.reserve(table);
        scratch.pooled.reserve(pooled);
        scratch.totals.reserve(totals);
        scratch.sums.reserve(sums);
        scratch.heads.reserve(heads);
    }
}

std::size_t Engine::ThreadScratch::bytes() const {
    return inputs.bytes() + currents.bytes() + mixed.bytes() + table.bytes() + pooled.bytes() + byte_inputs.bytes() +
           totals.bytes() + sums.bytes() + heads.bytes();
}

void Engine::prepare_taps(const std::vector<Value>& values, std::size_t batch_size, std::size_t time_steps) {
    for (Tap& tap : taps) {
        const Value& value = values[tap.op + 1];
        tap.batch_size = batch_size;
        tap.time_steps = time_steps;
        tap.positions = value.positions();
        tap.channels = value.channels;
        tap.words = value.words();
        const std::size_t words = batch_size * tap.positions * time_steps * tap.words;
        tap.spikes.assign(words, 0);
        tap.membranes.assign(tap.wants_membranes ? words * word_bits : 0, 0.0f);
    }
}

void Engine::check_interventions(const std::vector<Value>& values, std::size_t batch_size,
                                 std::size_t time_steps) const {
    for (const Intervention& intervention : interventions) {
        const Value& value = values[intervention.op + 1];
        const std::size_t words = batch_size * value.positions() * time_steps * value.words();
        require(intervention.replacement.empty() || intervention.replacement.size() == words,
                program_.ops()[intervention.op].name +
                    ": the spikes that replace its own are of another number of steps, samples or positions than this "
                    "call's.");
    }
}

void Engine::run(const Input& input, const float* state, float* next_state, float* logits) {
    const std::lock_guard<Mutex> lock(running);
    reports.clear();
    if (input.batch_size == 0) {
        return;  // its steps may be many, and nothing holds them
    }
    const std::vector<Value> values = program_.values(input.height, input.width, input.is_static);
    std::vector<std::size_t> state_offsets;
    Program::state_size(program_.ops(), values, &state_offsets);
    check_interventions(values, input.batch_size, input.time_steps);
    prepare_taps(values, input.batch_size, input.time_steps);
    reserve_scratch(values, input.time_steps);
    const std::size_t together = samples_together(values, input.time_steps);
    for (std::size_t first = 0; first < input.batch_size; first += together) {
        const std::size_t count = std::min(together, input.batch_size - first);
        Executor(*this, input, values, state_offsets, first, count, state, next_state).run(logits);
    }
}

std::size_t Engine::buffer_bytes() const {
    std::size_t sum = work_.lists.bytes();
    for (const Slot& slot : work_.slots) {
        sum += slot.spikes.bytes() + slot.counts.bytes() + slot.floats.bytes();
    }
    for (const ThreadScratch& scratch : work_.scratch) {
        sum += scratch.bytes();
    }
    return sum;
}

}  // namespace spikformer::engine
