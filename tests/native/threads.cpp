// The engine's threads under ThreadSanitizer (`make tsan`): pools that come and go, and threads that share an engine.
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <thread>
#include <vector>

#include "../neon/draws.hpp"
#include "engine/build.hpp"

using namespace spikformer::engine;

namespace {

constexpr Dynamics neuron{0.5f, 1, 1, 0};
constexpr std::size_t batch_size = 3, time_steps = 4, channels = 2, size = 8, embedding = 20, classes = 5;

void expect(bool holds, const char* what) {
    if (!holds) {
        std::printf("Not so: %s\n", what);
        std::exit(1);
    }
}

struct Drawn {
    std::size_t outputs, neighbours, inputs;
    std::vector<float> values, bias;

    Drawn(Draws& draws, std::size_t outputs, std::size_t neighbours, std::size_t inputs)
        : outputs(outputs), neighbours(neighbours), inputs(inputs), values(draws.floats(outputs * neighbours * inputs)),
          bias(draws.floats(outputs)) {}

    Weights weights() const { return {values.data(), outputs, neighbours, inputs, bias.data(), bias.size()}; }
};

void build(Network& network) {
    Draws draws;
    add_stage(network, "stages.0", Drawn(draws, embedding / 2, 9, channels).weights(), neuron, false);
    add_stage(network, "stages.1", Drawn(draws, embedding, 9, embedding / 2).weights(), neuron, true);
    set_position(network, "position", Drawn(draws, embedding, 9, embedding).weights(), neuron);
    for (const bool mixes : {true, false}) {
        begin_block(network, "block", 4, 0.125f, 3, neuron, mixes);
        for (const char* part : {"query", "key", "value", "projection"}) {
            set_block_layer(network, part, part, Drawn(draws, embedding, 1, embedding).weights(), neuron);
        }
        set_block_layer(network, "hidden", "hidden", Drawn(draws, 70, 1, embedding).weights(), neuron);
        set_block_layer(network, "output", "output", Drawn(draws, embedding, 1, 70).weights(), neuron);
    }
    set_head(network, Drawn(draws, classes, 1, embedding).weights());
}

struct Call {
    std::vector<float> pixels, logits = std::vector<float>(time_steps * batch_size * classes), state;

    Call() : pixels(Draws().floats(batch_size * channels * size * size)) {}

    void run(Network& network) {
        const Input input{pixels.data(), true, batch_size, time_steps, size, size};
        check_call(network, input, channels);
        state.assign(batch_size * network.state_size(size, size), 0.0f);
        network.run(input, state.data(), state.data(), logits.data());
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

// As the binding does: run, and read the reports under the same lock.
void share_engine(std::size_t num_threads, const std::vector<float>& expected) {
    Network network(*choose_kernels(nullptr), num_threads);
    build(network);
    network.crossover = 0.2;
    network.recording = true;
    in_threads(2, [&] {
        Call call;
        for (int repeat = 0; repeat < 5; ++repeat) {
            call.run(network);
            expect(call.logits == expected, "the same bits from every thread");
            const std::lock_guard<std::mutex> lock(network.running);
            expect(!network.reports.empty() && !network.recorded.empty(), "reports and spikes");
        }
    });
}

}  // namespace

int main() {
    std::vector<float> expected;
    {
        Network network(*choose_kernels(nullptr), 1);
        build(network);
        network.crossover = 0.2;
        Call call;
        call.run(network);
        expected = call.logits;
    }
    for (const std::size_t num_threads : {1, 2, 3, 5}) {
        use_pool(num_threads);
        share_engine(num_threads, expected);
    }
    in_threads(2, [] { use_pool(3); });
    in_threads(2, [&] { share_engine(2, expected); });
    std::puts("Pools and shared engines: the same bits from all threads.");
}
