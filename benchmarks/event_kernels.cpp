// Ways to add the weights of events, side by side: what docs/engine-log.md chose between. One core, float32, AVX-512.
//
//   g++ -std=c++17 -O3 -march=native benchmarks/event_kernels.cpp -o /tmp/event_kernels && /tmp/event_kernels
//
// 64 rows of 4 steps; an input is active with twice the density and then fires at half of the steps, as in trained
// networks. Prints G additions/s, the best of several runs in turns, and the dense product's G multiply-accumulates/s.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace {

typedef float Floats __attribute__((vector_size(64), aligned(4), may_alias));
constexpr int lanes = 16, rows = 64, steps = 4;

struct Lists {
    std::vector<std::uint16_t> by_step, by_pattern;        // indices of inputs
    std::vector<int> step_ends{0}, block_ends{0}, pattern_ends;  // [rows * steps], the same cut at blocks, [rows][16]
};

constexpr int block = 128;  // inputs whose weights would stay in the first-level cache

Lists draw(int inputs, double density, std::mt19937& random) {
    std::bernoulli_distribution active(std::min(1.0, 2 * density)), fires(std::max(0.5, density));
    Lists lists;
    for (int row = 0; row < rows; ++row) {
        std::vector<int> pattern(inputs);
        for (int k = 0; k < inputs; ++k) {
            const bool on = active(random);
            for (int t = 0; t < steps; ++t) {
                pattern[k] |= (on && fires(random)) << t;
            }
        }
        for (int t = 0; t < steps; ++t) {
            for (int k = 0; k < inputs; ++k) {
                if (pattern[k] >> t & 1) {
                    lists.by_step.push_back(k);
                }
                if ((k + 1) % block == 0 || k + 1 == inputs) {
                    lists.block_ends.push_back(lists.by_step.size());
                }
            }
            lists.step_ends.push_back(lists.by_step.size());
        }
        lists.pattern_ends.push_back(lists.by_pattern.size());
        for (int p = 1; p < 1 << steps; ++p) {
            for (int k = 0; k < inputs; ++k) {
                if (pattern[k] == p) {
                    lists.by_pattern.push_back(k);
                }
            }
            lists.pattern_ends.push_back(lists.by_pattern.size());
        }
    }
    lists.by_step.resize(lists.by_step.size() + 16);  // prefetching looks ahead
    return lists;
}

// Weights are [outputs / tile][inputs][tile], currents [rows * steps][tile].
template <int vectors, bool prefetch>
void step_by_step(const Lists& lists, int inputs, int outputs, const float* weights, float* currents) {
    constexpr int tile = vectors * lanes;
    for (int o = 0; o < outputs; o += tile, weights += inputs * tile) {
        for (int list = 0; list < rows * steps; ++list) {
            Floats sums[vectors] = {};
            for (int i = lists.step_ends[list]; i < lists.step_ends[list + 1]; ++i) {
                const Floats* row = reinterpret_cast<const Floats*>(weights + lists.by_step[i] * tile);
                for (int v = 0; v < vectors; ++v) {
                    if (prefetch) {
                        __builtin_prefetch(weights + lists.by_step[i + 6] * tile + v * lanes);
                    }
                    sums[v] += row[v];
                }
            }
            std::copy_n(sums, vectors, reinterpret_cast<Floats*>(currents + list * tile));
        }
    }
}

template <int vectors>
void block_by_block(const Lists& lists, int inputs, int outputs, const float* weights, float* currents) {
    constexpr int tile = vectors * lanes;
    const int blocks = (inputs + block - 1) / block;
    for (int o = 0; o < outputs; o += tile, weights += inputs * tile) {
        for (int b = 0; b < blocks; ++b) {
            for (int list = 0; list < rows * steps; ++list) {
                Floats sums[vectors] = {};
                Floats* kept = reinterpret_cast<Floats*>(currents + list * tile);
                if (b > 0) {
                    std::copy_n(kept, vectors, sums);
                }
                for (int i = lists.block_ends[list * blocks + b]; i < lists.block_ends[list * blocks + b + 1]; ++i) {
                    const Floats* row = reinterpret_cast<const Floats*>(weights + lists.by_step[i] * tile);
                    for (int v = 0; v < vectors; ++v) {
                        sums[v] += row[v];
                    }
                }
                std::copy_n(sums, vectors, kept);
            }
        }
    }
}

template <int pattern, int vectors>
void add_pattern(const std::uint16_t* event, const std::uint16_t* end, const float* weights,
                 Floats (&sums)[steps][vectors]) {
    for (; event != end; ++event) {
        const Floats* row = reinterpret_cast<const Floats*>(weights + *event * vectors * lanes);
        for (int v = 0; v < vectors; ++v) {
            const Floats weight = row[v];
            for (int t = 0; t < steps; ++t) {
                if (pattern >> t & 1) {
                    sums[t][v] += weight;
                }
            }
        }
    }
}

template <int vectors, int... pattern>
void pattern_by_pattern(std::integer_sequence<int, pattern...>, const Lists& lists, int inputs, int outputs,
                        const float* weights, float* currents) {
    constexpr int tile = vectors * lanes;
    const std::uint16_t* events = lists.by_pattern.data();
    for (int o = 0; o < outputs; o += tile, weights += inputs * tile) {
        for (int row = 0; row < rows; ++row) {
            Floats sums[steps][vectors] = {};
            const int* ends = lists.pattern_ends.data() + row * (1 << steps);
            (add_pattern<pattern + 1>(events + ends[pattern], events + ends[pattern + 1], weights, sums), ...);
            for (int t = 0; t < steps; ++t) {
                std::copy_n(sums[t], vectors, reinterpret_cast<Floats*>(currents + (row * steps + t) * tile));
            }
        }
    }
}

void dense(const std::vector<float>& values, int inputs, int outputs, const float* weights, float* currents) {
    constexpr int vectors = 2, tile = vectors * lanes, together = 8;
    for (int o = 0; o < outputs; o += tile, weights += inputs * tile) {
        for (int first = 0; first < rows * steps; first += together) {
            Floats sums[together][vectors] = {};
            for (int k = 0; k < inputs; ++k) {
                const Floats* row = reinterpret_cast<const Floats*>(weights + k * tile);
                for (int r = 0; r < together; ++r) {
                    for (int v = 0; v < vectors; ++v) {
                        sums[r][v] += values[(first + r) * inputs + k] * row[v];
                    }
                }
            }
            std::copy_n(&sums[0][0], together * vectors, reinterpret_cast<Floats*>(currents + first * tile));
        }
    }
}

}  // namespace

int main() {
    std::mt19937 random(0);
    std::vector<float> currents(rows * steps * 128);
    for (const auto& [inputs, outputs] : {std::pair{384, 384}, {384, 1536}, {1536, 384}}) {
        std::vector<float> room(inputs * outputs + lanes), values(rows * steps * inputs);
        std::generate(room.begin(), room.end(), [&] { return random() / 4e9f - 0.5f; });
        const auto address = reinterpret_cast<std::uintptr_t>(room.data());
        const float* weights = room.data() + (64 - address % 64) % 64 / sizeof(float);  // at a cache line
        std::generate(values.begin(), values.end(), [&] { return random() / 4e9f; });
        for (const double density : {0.05, 0.1, 0.2, 0.3}) {
            const Lists lists = draw(inputs, density, random);
            const int k = inputs, o = outputs;
            const float* w = weights;
            float* c = currents.data();
            const std::vector<std::pair<std::string, std::function<void()>>> ways = {
                {"steps, 32", [&, k, o] { step_by_step<2, false>(lists, k, o, w, c); }},
                {"steps, 64", [&, k, o] { step_by_step<4, false>(lists, k, o, w, c); }},
                {"steps, 128", [&, k, o] { step_by_step<8, false>(lists, k, o, w, c); }},
                {"prefetched, 64", [&, k, o] { step_by_step<4, true>(lists, k, o, w, c); }},
                {"blocks, 64", [&, k, o] { block_by_block<4>(lists, k, o, w, c); }},
                {"patterns, 32",
                 [&, k, o] { pattern_by_pattern<2>(std::make_integer_sequence<int, 15>{}, lists, k, o, w, c); }},
                {"patterns, 64",
                 [&, k, o] { pattern_by_pattern<4>(std::make_integer_sequence<int, 15>{}, lists, k, o, w, c); }},
                {"dense", [&, k, o] { dense(values, k, o, w, c); }},
            };
            std::vector<double> best(ways.size(), 1e9);
            for (int repeat = 0; repeat < 15; ++repeat) {
                for (std::size_t i = 0; i < ways.size(); ++i) {
                    const auto begin = std::chrono::steady_clock::now();
                    ways[i].second();
                    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
                    best[i] = std::min(best[i], taken.count());
                }
            }
            std::printf("%4d x %4d, %2.0f %%:", inputs, outputs, density * 100);
            for (std::size_t i = 0; i < ways.size(); ++i) {
                const double work = ways[i].first == "dense" ? double(rows) * steps * inputs : lists.step_ends.back();
                std::printf("  %s %.1f", ways[i].first.c_str(), work * outputs / best[i] * 1e-9);
            }
            std::printf("\n");
        }
    }
}
