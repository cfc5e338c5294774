// Every kernel of two instruction sets on the same random inputs, bit by bit: the scalar set, and the one that is named
// on the command line. `make neon` runs it on an emulated ARM processor, `make wasm-kernels` in Node, where the set for
// browsers is the only one: its fingerprint is compared with the scalar one's of this machine.
#include "comparison.hpp"
#include "draws.hpp"
#include "maps.hpp"
#include "products.hpp"

using namespace spikformer::engine;

namespace {

constexpr Dynamics neurons[] = {{0.5f, 1, 1, 0}, {1, 0, 1, 0}, {1 / 1.7f, 1, 0.5f, -0.25f}};  // LIF, IF, PLIF
constexpr double densities[] = {0, 0.02, 0.3, 1};

// `drive` is added to every bias: from hardly a spike to hardly a silence.
void compare_fire(Comparison& compare, Draws& draws, std::size_t width, std::size_t time_steps, float drive,
                  const Dynamics& dynamics) {
    constexpr std::size_t rows = 3;
    const std::vector<float> currents = draws.floats(time_steps * rows * width), initial = draws.floats(rows * width);
    std::vector<float> bias = draws.floats(width);
    for (float& each : bias) {
        each += drive;
    }
    for (const std::size_t current_step : {std::size_t{0}, rows * width}) {
        for (const std::string way : {"dropped", "from rest", "from initial", "in place"}) {
            compare("fire", [&](const Kernels& kernels) {
                Output<unsigned char> spikes(time_steps * rows * width / 8);
                Output<float> voltage(rows * width), membranes(time_steps * rows * width);
                if (way == "in place") {
                    std::copy(initial.begin(), initial.end(), voltage.data());
                }
                for (std::size_t begin = 0; begin < width; begin += kernels.tile) {
                    const float* before = way == "from initial" ? initial.data() + begin
                                          : way == "in place"   ? voltage.data() + begin
                                                                : nullptr;
                    Firing firing;
                    firing.currents = currents.data() + begin;
                    firing.current_row = firing.state_row = firing.membrane_row = width;
                    firing.current_step = current_step;
                    firing.spikes = spikes.data() + begin / 8;
                    firing.spike_row = width / 8;
                    firing.spike_step = rows * width / 8;
                    firing.initial = before;
                    firing.voltage = way == "dropped" ? nullptr : voltage.data() + begin;
                    firing.membranes = way == "dropped" ? nullptr : membranes.data() + begin;
                    firing.membrane_step = rows * width;
                    kernels.fire(firing, rows, time_steps, bias.data() + begin, dynamics);
                }
                return Bytes().add(spikes).add(voltage).add(membranes);
            }, "width", width, "steps", time_steps, "stride", current_step, "drive", drive, "gain", dynamics.gain,
               "leak", dynamics.leak, "threshold", dynamics.v_threshold, "reset", dynamics.v_reset, "voltage", way);
        }
    }
}

void compare_attention(Comparison& compare, Draws& draws, std::size_t num_tokens, std::size_t head_dim,
                       double density) {
    const std::vector<Word> query = draws.spikes(num_tokens, head_dim, density);
    const std::vector<Word> key = draws.spikes(num_tokens, head_dim, density);
    const std::vector<Word> value = draws.spikes(num_tokens, head_dim, density);
    const AttentionHead head{query.data(), key.data(), value.data(), num_tokens, head_dim};
    const auto attend = [&](const char* name, const auto& attend_with) {
        compare(name, [&](const Kernels& kernels) {
            Output<float> currents(num_tokens * head_dim);
            Output<float> table(head_dim * word_bits);
            attend_with(kernels, currents.data(), table.data());
            return Bytes().add(currents).add(table, 0);
        }, "tokens", num_tokens, "head_dim", head_dim, "density", density);
    };
    attend("attend_query_key_first", [&](const Kernels& kernels, float* currents, float*) {
        kernels.attend_query_key_first(head, 0.125f, currents, head_dim);
    });
    attend("attend_key_value_first", [&](const Kernels& kernels, float* currents, float* table) {
        kernels.attend_key_value_first(head, 0.125f, currents, head_dim, table);
    });
}

void compare_stream(Comparison& compare, Draws& draws, std::size_t words, double density) {
    const std::size_t size = words * word_bits;
    const std::vector<Word> spikes = draws.spikes(1, size, density);
    std::vector<std::uint8_t> counts = draws.counts(size, density);
    std::fill_n(counts.begin(), size / 2, std::uint8_t{255});  // which is the most there can be
    compare("add_spikes", [&](const Kernels& kernels) {
        Output<std::uint8_t> sums(size);
        std::copy(counts.begin(), counts.end(), sums.data());
        kernels.add_spikes(spikes.data(), words, sums.data());
        return Bytes().add(sums);
    }, "words", words, "density", density);
    compare("count_spikes", [&](const Kernels& kernels) {
        const std::uint64_t count = kernels.count_spikes(spikes.data(), words);
        return Bytes().add(&count, 1);
    }, "words", words, "density", density);
    compare("count_active", [&](const Kernels& kernels) {
        const std::uint64_t count = kernels.count_active(counts.data() + 5, size - 5);
        return Bytes().add(&count, 1);
    }, "size", size - 5, "density", density);
    compare("expand_spikes", [&](const Kernels& kernels) {
        Output<float> values(size);
        kernels.expand_spikes(spikes.data(), words, values.data());
        return Bytes().add(values);
    }, "words", words, "density", density);
    for (const std::size_t part : {size, size - 1, size / 2 + 3}) {
        compare("expand_counts", [&](const Kernels& kernels) {
            Output<float> values(part);
            kernels.expand_counts(counts.data() + (size - part), part, values.data());
            return Bytes().add(values);
        }, "size", part, "density", density);
    }
}

void compare_readout(Comparison& compare, Draws& draws, std::size_t num_tokens, std::size_t size,
                     std::size_t num_classes, double density) {
    const std::size_t token_stride = divide_up(size, word_bits) * word_bits * 2;  // of two steps, one is read
    const std::vector<std::uint8_t> counts = draws.counts(num_tokens * token_stride, density);
    const std::vector<float> weights = draws.floats(num_classes * size), bias = draws.floats(num_classes);
    const auto sum_tokens = [&](const Kernels& kernels) {
        Output<std::int32_t> totals(size);
        kernels.sum_tokens(counts.data(), num_tokens, token_stride, size, totals.data());
        return totals;
    };
    compare("sum_tokens", [&](const Kernels& kernels) { return Bytes().add(sum_tokens(kernels)); }, "tokens",
            num_tokens, "size", size, "density", density);
    const Output<std::int32_t> totals = sum_tokens(compare.scalar());
    compare("read_out", [&](const Kernels& kernels) {
        Output<float> logits(num_classes);
        kernels.read_out(totals.data(), num_tokens, size, weights.data(), bias.data(), num_classes, logits.data());
        return Bytes().add(logits);
    }, "tokens", num_tokens, "size", size, "classes", num_classes, "density", density);
}

void compare_floats(Comparison& compare, Draws& draws, std::size_t height, std::size_t width, std::size_t words,
                    std::size_t num_classes) {
    const std::size_t depth = words * word_bits, num_tokens = height * width, size = num_tokens * depth;
    const std::vector<float> map = draws.floats(size), other = draws.floats(size);
    const std::vector<float> weights = draws.floats(num_classes * depth), bias = draws.floats(num_classes);
    for (const bool in_place : {false, true}) {
        compare("add_floats", [&](const Kernels& kernels) {
            Output<float> sum(size);
            std::copy(map.begin(), map.end(), sum.data());
            kernels.add_floats(in_place ? sum.data() : map.data(), other.data(), size, sum.data());
            return Bytes().add(sum);
        }, "size", size, "in place", in_place);
    }
    for (const std::size_t features : {depth, depth - 1, depth / 2 + 3}) {  // the rest is padding
        const auto sum_floats = [&](const Kernels& kernels) {
            Output<double> totals(features);
            kernels.sum_floats(map.data(), num_tokens, depth, features, totals.data());
            return totals;
        };
        compare("sum_floats", [&](const Kernels& kernels) { return Bytes().add(sum_floats(kernels)); }, "tokens",
                num_tokens, "features", features);
        const Output<double> totals = sum_floats(compare.scalar());
        compare("read_out_floats", [&](const Kernels& kernels) {
            Output<float> logits(num_classes);
            kernels.read_out_floats(totals.data(), num_tokens, features, weights.data(), bias.data(), num_classes,
                                    logits.data());
            return Bytes().add(logits);
        }, "tokens", num_tokens, "features", features, "classes", num_classes);
    }
}

void compare_all(Comparison& compare, Draws& draws) {
    for (const double density : densities) {
        for (std::size_t steps = 1; steps <= group_steps; ++steps) {
            for (const std::size_t words : {1, 2, 3, 27}) {
                compare_events(compare, draws, words, steps, density);
            }
            for (const std::size_t words : {1, 3, 113}) {  // nine times 113 words are nearly the most a row can have
                compare_merge_events(compare, draws, words, steps, density, 3);
            }
            compare_merge_events(compare, draws, 20, steps, density, 7);  // 49 times 20 words
            for (const std::size_t kernel : {3, 5, 7}) {
                compare_depthwise(compare, draws, kernel, 80, steps, density);
            }
        }
        for (const std::size_t rows : {1, 7, 8, 9, 19}) {
            for (const std::size_t num_inputs : {1, 27, 64, 576}) {
                compare_dense(compare, draws, rows, num_inputs, density);
            }
        }
        for (const std::size_t num_tokens : {1, 4, 63, 64, 65, 196}) {
            for (const std::size_t head_dim : {1, 12, 32, 64, 100, 130}) {
                compare_attention(compare, draws, num_tokens, head_dim, density);
            }
        }
        for (const std::size_t depth : {1, 3, 8}) {
            compare_pools(compare, draws, 2, 2, depth, density);
            compare_pools(compare, draws, 8, 6, depth, density);
        }
        for (const std::size_t head_dim : {1, 5, 32, 64, 130}) {
            for (const std::size_t num_heads : {1, 3, 70}) {
                compare_heads(compare, draws, num_heads, head_dim, density);
            }
        }
        for (const std::size_t num_tokens : {1, 64, 255, 256, 700}) {
            compare_sum_spikes(compare, draws, num_tokens, 3, density);
        }
        for (const std::size_t words : {1, 2, 12}) {
            compare_stream(compare, draws, words, density);
        }
        for (const std::size_t num_tokens : {1, 16, 196}) {
            for (const std::size_t size : {1, 10, 64, 384}) {
                compare_readout(compare, draws, num_tokens, size, 1, density);
                compare_readout(compare, draws, num_tokens, size, 10, density);
            }
        }
    }
    compare_events(compare, draws, 1024, group_steps, 1);  // up to the largest index
    for (const std::size_t inputs : {16, 64, 192}) {
        for (const std::uint32_t most_count : {3, 5, 15, 16, 255}) {
            compare_hard_products(compare, draws, inputs, most_count);
        }
    }
    compare_hardest_sums(compare);
    for (const std::size_t words : {1, 3, 6}) {
        compare_floats(compare, draws, 2, 2, words, 1);
        compare_floats(compare, draws, 8, 6, words, 10);
    }
    for (std::size_t time_steps = 1; time_steps <= 9; ++time_steps) {
        for (const float drive : {-2.0f, 0.0f, 0.5f, 4.0f}) {
            for (const Dynamics& dynamics : neurons) {
                compare_fire(compare, draws, 64, time_steps, drive, dynamics);
                compare_fire(compare, draws, 192, time_steps, drive, dynamics);
            }
        }
    }
}

}  // namespace

int main(int argc, char** argv) {
    const Kernels* compared = argc == 2 ? choose_kernels(argv[1]) : nullptr;
    if (compared == nullptr) {
        std::puts("Give the name of an instruction set that this processor can run.");
        return 1;
    }
    Comparison compare(*compared);
    Draws draws;
    compare_all(compare, draws);
    return compare.tell();
}
