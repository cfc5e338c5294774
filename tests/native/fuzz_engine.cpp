// Any bytes as a network and calls of it (`make fuzz-engine`): libFuzzer looks for bytes that crash it under sanitizers.
//
// The same network runs on the best floats of this machine and on the scalar set: wrong arrays must raise
// std::invalid_argument or std::bad_alloc in both, right ones must give the same bits, in memory that is bounded by
// what was given. Arrays are exactly as large as their shapes say, so that AddressSanitizer sees every step beyond.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <new>
#include <random>
#include <string>
#include <vector>

#include <fuzzer/FuzzedDataProvider.h>

#include "engine/build.hpp"

using namespace spikformer::engine;

namespace {

constexpr std::size_t most_given = 1 << 15;  // elements of an array
constexpr std::size_t most_rows = 1 << 7;    // pixels of all samples and steps of a call
constexpr int most_calls = 4;

const Kernels& best_floats() {
    for (const char* name : {"avx512", "avx2", "neon"}) {
        if (const Kernels* kernels = choose_kernels(name)) {
            return *kernels;
        }
    }
    return *choose_kernels("scalar");
}

struct Array {
    std::vector<std::size_t> shape;
    std::vector<float> values;
};

class Fuzz {
public:
    Fuzz(const std::uint8_t* data, std::size_t size)
        : bytes_(data, size), threads_(bytes_.ConsumeBool() ? 1 : 2), best_(best_floats(), threads_),
          scalar_(*choose_kernels("scalar"), 1) {}

    void run() {
        if (bytes_.ConsumeIntegralInRange(0, 3) > 0) {  // in the right order, which chance takes long to find
            for (int stages = bytes_.ConsumeIntegralInRange(1, 3); stages > 0; --stages) {
                stage();
            }
            position();
            for (int blocks = bytes_.ConsumeIntegralInRange(0, 2); blocks > 0; --blocks) {
                whole_block();
            }
            head();
            call();
        }
        while (bytes_.remaining_bytes() > 0 && calls_ < most_calls) {
            switch (bytes_.ConsumeIntegralInRange(0, 7)) {
                case 0: stage(); break;
                case 1: position(); break;
                case 2: block(); break;
                case 3: block_layer(bytes_.ConsumeBool() ? "query" : bytes_.ConsumeRandomLengthString(8)); break;
                case 4: head(); break;
                case 5: whole_block(); break;
                default: call(); break;
            }
        }
    }

private:
    // Mostly what is wanted; else anything small, or absurd.
    std::size_t length(std::size_t wanted) {
        switch (bytes_.ConsumeIntegralInRange(0, 63)) {
            case 1: return bytes_.ConsumeIntegralInRange<std::size_t>(0, 140);
            case 2: return bytes_.ConsumeIntegral<std::size_t>();
            default: return wanted;
        }
    }

    // What would be too large to exist has no elements: as in NumPy, a length of 0 allows any others.
    Array array(std::vector<std::size_t> shape) {
        double size = 1;
        for (const std::size_t each : shape) {
            size *= static_cast<double>(each);
        }
        if (size > most_given) {
            shape[bytes_.ConsumeIntegralInRange<std::size_t>(0, shape.size() - 1)] = 0;
            size = std::find(shape.begin(), shape.end(), 0u) == shape.end() ? 1 : 0;
        }
        Array array{shape, std::vector<float>(static_cast<std::size_t>(size))};
        std::minstd_rand random(bytes_.ConsumeIntegral<std::uint8_t>());
        const float scale = bytes_.PickValueInArray({0.0f, 0.3f, 1.0f, 30.0f, 1e-39f, 1e30f, 3e38f});
        for (float& value : array.values) {
            value = scale * (static_cast<float>(random() % 2001) / 1000 - 1);
        }
        if (!array.values.empty() && bytes_.ConsumeIntegralInRange(0, 63) == 1) {
            array.values[random() % array.values.size()] =
                bytes_.PickValueInArray({NAN, INFINITY, -INFINITY, 3.4e38f, -0.0f});
        }
        return array;
    }

    Weights weights_of(const Array& weights, const Array& bias) {
        return {weights.values.data(), weights.shape[0],   weights.shape[1],
                weights.shape[2],      bias.values.data(), bias.shape[0]};
    }

    Dynamics dynamics() {
        if (bytes_.ConsumeIntegralInRange(0, 15) > 0) {
            return {0.5f, 1, 1, 0};
        }
        const auto any = [&] {
            return bytes_.PickValueInArray({0.0f, 1.0f, -1.0f, 0.25f, 1e-45f, 3e38f, -3e38f, INFINITY, NAN});
        };
        return {any(), any(), any(), any()};
    }

    // The same of both networks; both must accept it, or neither.
    bool both(const std::function<void(Network&)>& build) {
        const auto accepts = [&](Network& network) {
            try {
                build(network);
                return true;
            } catch (const std::invalid_argument&) {
            } catch (const std::bad_alloc&) {
            }
            return false;
        };
        const bool accepted = accepts(best_);
        expect(accepts(scalar_) == accepted);
        return accepted;
    }

    void layer(std::size_t outputs, std::size_t neighbours, std::size_t channels,
               const std::function<void(Network&, const Weights&, const Dynamics&)>& build) {
        const Array weights = array({length(outputs), length(neighbours), length(channels)});
        const Array bias = array({length(weights.shape[0])});
        const Dynamics neuron = dynamics();
        both([&](Network& network) { build(network, weights_of(weights, bias), neuron); });
    }

    void stage() {
        const std::size_t outputs = bytes_.ConsumeIntegralInRange<std::size_t>(1, 70);
        const std::size_t channels = best_.stages.empty() ? bytes_.ConsumeIntegralInRange<std::size_t>(1, 4)
                                                          : best_.stages.back().num_outputs;
        const bool pooled = bytes_.ConsumeBool();
        layer(outputs, 9, channels, [&](Network& network, const Weights& weights, const Dynamics& neuron) {
            add_stage(network, "stage", weights, neuron, pooled);
        });
    }

    void position() {
        const std::size_t dim = best_.stages.empty() ? 1 : best_.stages.back().num_outputs;
        layer(dim, 9, dim, [](Network& network, const Weights& weights, const Dynamics& neuron) {
            set_position(network, "position", weights, neuron);
        });
    }

    void block() {
        const std::size_t num_heads = length(bytes_.PickValueInArray<std::size_t>({1, 2, 3, 4}));
        const std::size_t pool = length(bytes_.PickValueInArray<std::size_t>({1, 3, 7}));
        const float scale = bytes_.PickValueInArray({0.125f, 1.0f, 0.0f, -1.0f, 3e38f, NAN});
        const Dynamics neuron = dynamics();
        const bool mixes = bytes_.ConsumeBool();
        both([&](Network& network) { begin_block(network, "block", num_heads, scale, pool, neuron, mixes); });
    }

    void block_layer(const std::string& part) {
        const std::size_t dim = best_.position.num_outputs;
        const std::size_t hidden = bytes_.ConsumeIntegralInRange<std::size_t>(1, 70);
        const std::size_t outputs = part == "hidden" ? hidden : dim;
        const bool reads_hidden = part == "output" && !best_.blocks.empty();
        const std::size_t inputs = reads_hidden ? best_.blocks.back().hidden.num_outputs : dim;
        layer(outputs, 1, inputs, [&](Network& network, const Weights& weights, const Dynamics& neuron) {
            set_block_layer(network, part, "layer", weights, neuron);
        });
    }

    void whole_block() {
        block();
        for (const char* part : {"query", "key", "value", "projection", "hidden", "output"}) {
            block_layer(part);
        }
    }

    void head() {
        const Array weights = array({length(bytes_.ConsumeIntegralInRange<std::size_t>(1, 12)), length(1),
                                     length(best_.position.num_outputs)});
        const Array bias = array({length(weights.shape[0])});
        both([&](Network& network) { set_head(network, weights_of(weights, bias)); });
    }

    void call() {
        ++calls_;
        std::size_t patch = 1;
        for (const bool halved : best_.pooled) {
            patch *= halved ? 2 : 1;
        }
        const bool still = bytes_.ConsumeBool();
        const std::size_t steps = length(bytes_.ConsumeIntegralInRange<std::size_t>(1, 9));
        const std::size_t batch = length(bytes_.ConsumeIntegralInRange<std::size_t>(1, 3));
        const std::size_t height = length(patch * bytes_.ConsumeIntegralInRange<std::size_t>(1, 3));
        const std::size_t width = length(patch * bytes_.ConsumeIntegralInRange<std::size_t>(1, 3));
        const Array x = array({still ? 1 : steps, batch, length(best_.in_channels), height, width});
        const std::size_t time_steps = still ? steps : x.shape[0];
        const Input input{x.values.data(), still, x.shape[1], time_steps, x.shape[3], x.shape[4]};
        const std::size_t channels = x.shape[2];
        best_.way = scalar_.way = bytes_.PickValueInArray({Way::measured, Way::events, Way::dense});
        best_.crossover = scalar_.crossover = bytes_.PickValueInArray({0.0, 0.1, 0.5, 1.0});
        best_.recording = scalar_.recording = bytes_.ConsumeBool();
        if (!both([&](Network& network) { check_call(network, input, channels); })) {
            return;
        }
        const std::size_t classes = best_.head.num_classes;
        const std::size_t rows = input.batch_size * input.height * input.width;
        if (rows > 0 && time_steps > most_rows / rows) {
            return;  // the same again, many times
        }
        const std::size_t state_size = input.batch_size * best_.state_size(input.height, input.width);
        const std::size_t logits_size = input.batch_size == 0 ? 0 : time_steps * input.batch_size * classes;
        const bool streams = bytes_.ConsumeBool();
        std::vector<float> before(streams ? state_size : 0, bytes_.PickValueInArray({0.0f, 0.5f, -3e38f, 3e38f, NAN}));
        std::vector<float> logits[2], after[2];
        std::size_t index = 0;
        const bool ran = both([&](Network& network) {
            logits[index].assign(logits_size, 0.0f);
            after[index].assign(before.size(), 0.0f);
            network.run(input, streams ? before.data() : nullptr, streams ? after[index].data() : nullptr,
                        logits[index].data());
            ++index;
        });
        expect(ran);  // what was checked does run
        expect(same(logits[0], logits[1]));
        expect(same(after[0], after[1]));
        check_memory(input);
    }

    // What docs/engine.md promises.
    void check_memory(const Input& input) const {
        std::size_t widest = std::max(best_.position.num_inputs, best_.position.width());
        for (const Layer& stage : best_.stages) {
            widest = std::max({widest, stage.num_inputs, stage.width()});
        }
        for (const Block& block : best_.blocks) {
            widest = std::max(widest, block.hidden.width());
        }
        const std::size_t positions = input.height * input.width;
        largest_ = std::max(largest_, 16 * (16 + threads_) * (positions + 32) * (input.time_steps + 16) * widest);
        expect(best_.buffer_bytes() <= largest_);
    }

    static bool same(const std::vector<float>& a, const std::vector<float>& b) {
        return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float x, float y) {
            return std::memcmp(&x, &y, sizeof x) == 0 || (std::isnan(x) && std::isnan(y));
        });
    }

    static void expect(bool holds) {
        if (!holds) {
            std::abort();
        }
    }

    FuzzedDataProvider bytes_;
    std::size_t threads_;
    Network best_, scalar_;
    int calls_ = 0;
    mutable std::size_t largest_ = 0;  // bound over all calls: buffers only grow
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Fuzz(data, size).run();
    return 0;
}
