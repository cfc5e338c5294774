// The engine's threads under ThreadSanitizer (`make tsan`): pools that come and go, and threads that share an engine.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <thread>
#include <vector>

#include "../neon/draws.hpp"
#include "core/engine.hpp"

using namespace spikformer::engine;

namespace {

constexpr Dynamics neuron{0.5f, 1, 1, 0};
constexpr std::size_t batch_size = 3, time_steps = 4, channels = 2, size = 16, embedding = 20, hidden = 70, classes = 5;

void expect(bool holds, const char* what) {
    if (!holds) {
        std::printf("Not so: %s\n", what);
        std::exit(1);
    }
}

// A product and its neurons; returns the buffer of their spikes.
std::size_t convolve(Program& program, Draws& draws, const std::string& name, std::size_t input, std::size_t outputs,
                     std::size_t kernel, std::size_t stride = 1) {
    const std::size_t inputs = program.forms()[input].channels;
    const std::vector<float> weights = draws.floats(outputs * kernel * kernel * inputs), bias = draws.floats(outputs);
    return program.convolve(name, input, weights.data(), bias.data(), outputs, kernel, inputs, stride);
}

std::size_t layer(Program& program, Draws& draws, const std::string& name, std::size_t input, std::size_t outputs,
                  std::size_t kernel, std::size_t stride = 1) {
    return program.fire(name, convolve(program, draws, name + ".conv", input, outputs, kernel, stride), neuron);
}

void read_out(Program& program, Draws& draws, std::size_t x) {
    const std::size_t features = program.forms()[x].channels;
    const std::vector<float> weights = draws.floats(classes * features), bias = draws.floats(classes);
    program.read_out("head", x, weights.data(), bias.data(), classes, features);
}

// A stream of floats: a pool before the neuron, a depthwise convolution, masks, counts in a window, means.
std::size_t build_stream(Program& program, Draws& draws, std::size_t x) {
    const std::vector<float> weights = draws.floats(9 * embedding), bias = draws.floats(embedding);
    std::size_t stream = convolve(program, draws, "stream", x, embedding, 1);
    const std::size_t fired = program.fire("stream.fired", stream, neuron);
    const std::size_t local = program.convolve_depthwise("local", fired, weights.data(), bias.data(), 3, embedding);
    stream = program.add("local.add", stream, local);
    const std::size_t read = program.fire("local.fired", stream, neuron);
    const std::size_t gate = program.fire("gate", program.sum_heads("heads", read, 4), neuron);
    const std::size_t global = program.fire("global", program.sum_tokens("tokens", read), neuron);
    std::size_t masked = program.conjunction("masked", program.dilate_heads("dilated", read, 4), gate, 4, false);
    masked = program.conjunction("masked.global", program.dilate("dilated.map", masked), global, 1, true);
    const std::size_t counts = program.pool("counts.pool", program.add("counts", masked, read), 2);
    const std::size_t strided = convolve(program, draws, "strided", counts, embedding, 5, 2);
    return program.mean("mean", program.fire("strided.fired", strided, neuron));
}

// A Spikformer with a block that attends and a block that pools tokens, then a stream of floats.
Program build_network() {
    Draws draws;
    Program program(*choose_kernels(nullptr), channels);
    std::size_t x = program.pool("stages.0.pool", convolve(program, draws, "stages.0.conv", 0, embedding / 2, 7), 3);
    x = program.fire("stages.0", x, neuron);
    x = layer(program, draws, "stages.1", x, embedding, 3);
    x = program.pool("stages.1.pool", x, 3);
    x = program.add("position.add", x, layer(program, draws, "position", x, embedding, 3));
    for (const bool attends : {true, false}) {
        const std::string block = attends ? "attention" : "pooling";
        const std::size_t query = layer(program, draws, block + ".query", x, embedding, 1);
        const std::size_t key = layer(program, draws, block + ".key", x, embedding, 1);
        const std::size_t value = layer(program, draws, block + ".value", x, embedding, 1);
        std::size_t mixed = attends ? program.attend(block + ".attend", query, key, value, 4, 0.125f)
                                    : program.pool_tokens(block + ".pool", value, 3);
        mixed = program.fire(block + ".mixed", mixed, neuron);
        mixed = layer(program, draws, block + ".projection", mixed, embedding, 1);
        x = program.add(block + ".add", x, mixed);
        const std::size_t wide = layer(program, draws, block + ".hidden", x, hidden, 1);
        x = program.add(block + ".mlp", x, layer(program, draws, block + ".output", wide, embedding, 1));
    }
    read_out(program, draws, build_stream(program, draws, x));
    return program;
}

// The ops above as they run where nothing joins them, and on inputs of their other kinds.
Program build_apart() {
    Draws draws;
    Program program(*choose_kernels(nullptr), channels);
    std::size_t x = layer(program, draws, "pixels", 0, embedding, 5, 2);
    x = program.fire("pooled", program.pool("pool.currents", convolve(program, draws, "spikes", x, hidden, 3), 2), neuron);
    const std::size_t currents = convolve(program, draws, "kept", x, hidden, 3);
    const std::size_t query = program.fire("query", currents, neuron), key = layer(program, draws, "key", x, hidden, 5);
    const std::size_t attended = program.attend("attend", query, key, x, 2, 0.125f);
    const std::size_t sum = program.add("sum", attended, program.add("currents.twice", currents, currents));
    const std::size_t mixed = program.conjunction("masked", program.fire("mixed", sum, neuron), query, 1, true);
    const std::size_t once = program.add("counts", x, mixed);
    const std::size_t twice = program.add("counts.twice", once, program.fire("counts.fired", once, neuron));
    const std::size_t means =
        program.add("means", program.mean("mean.floats", sum), program.mean("mean.counts", once));
    const std::size_t gated = program.conjunction("gated", layer(program, draws, "window", twice, hidden, 3),
                                                  program.fire("gate", means, neuron), 1, false);
    const std::size_t pooled = program.fire("pooled.sum", program.pool("pool.floats", sum, 3), neuron);
    const std::size_t joined = program.add("joined", program.pool("pool.spikes", gated, 2), pooled);
    read_out(program, draws, program.add("last", joined, pooled));
    return program;
}

using Build = Program (*)();

struct Call {
    std::vector<float> pixels, logits = std::vector<float>(time_steps * batch_size * classes), state;

    Call() : pixels(Draws().floats(batch_size * channels * size * size)) {}

    void run(Engine& engine) {
        const Input input{pixels.data(), true, batch_size, time_steps, size, size};
        engine.program().check_size(size, size, time_steps, batch_size);
        state.assign(batch_size * engine.state_size(size, size), 0.0f);
        engine.run(input, state.data(), state.data(), logits.data());
    }
};

void in_threads(std::size_t count, const std::function<void()>& work) {
    std::vector<std::thread> threads;
    for (std::size_t thread = 0; thread < count; ++thread) {
        threads.emplace_back(work);
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
}

// A pool runs every item once, however many there are, and ends with or without having run.
void use_pool(std::size_t num_threads) {
    Threads unused(num_threads), threads(num_threads);
    for (const std::size_t num_items : {0, 1, 2, 3, 100, 1000}) {
        std::vector<int> done(num_items), by(num_threads);
        threads.for_each(num_items, [&](std::size_t item, std::size_t thread) {
            ++done[item];
            ++by[thread];
        });
        expect(done == std::vector<int>(num_items, 1), "every item is done once");
        expect(std::accumulate(by.begin(), by.end(), std::size_t{0}) == num_items, "threads share the items");
    }
}

// A tap and noise at the first neurons.
void set_options(Engine& engine, Mode mode) {
    const std::vector<Op>& ops = engine.program().ops();
    const auto is_neuron = [](const Op& op) { return op.kind == OpKind::fire; };
    const auto first = static_cast<std::size_t>(std::find_if(ops.begin(), ops.end(), is_neuron) - ops.begin());
    engine.mode = mode;
    engine.density_thresholds.fill(0.2);
    engine.taps.push_back(Tap(first, true));
    const std::vector<Word> kept(engine.program().forms()[first + 1].words(), 0xFFFFFFFFFFFFFF0F);
    engine.interventions.push_back({first, {}, kept, 0.1, 7});
}

// As the binding does: run, and read the reports under the same lock.
void share_engine(Build build, Mode mode, std::size_t num_threads, const std::vector<float>& expected) {
    Engine engine(build(), num_threads);
    set_options(engine, mode);
    in_threads(2, [&] {
        Call call;
        for (int repeat = 0; repeat < 2; ++repeat) {
            call.run(engine);
            expect(call.logits == expected, "the same bits from every thread");
            const std::lock_guard<std::mutex> lock(engine.running);
            expect(!engine.reports.empty() && !engine.taps[0].membranes.empty(), "reports and membranes");
            expect(engine.buffer_bytes() > 0, "memory");
        }
    });
}

void share_engines(Build build, Mode mode) {
    Engine engine(build(), 1);
    set_options(engine, mode);
    Call call;
    call.run(engine);
    for (const std::size_t num_threads : {1, 3}) {
        share_engine(build, mode, num_threads, call.logits);
    }
    in_threads(2, [&] { share_engine(build, mode, 2, call.logits); });
}

}  // namespace

int main() {
    for (const std::size_t num_threads : {1, 2, 3, 5}) {
        use_pool(num_threads);
    }
    in_threads(2, [] { use_pool(3); });
    share_engines(build_network, Mode::automatic);
    for (const Mode mode : {Mode::automatic, Mode::events, Mode::dense}) {
        share_engines(build_apart, mode);
    }
    std::puts("Pools and shared engines: the same bits from all threads.");
}
