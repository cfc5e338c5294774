// Ways to add the weights of events, side by side: what docs/engine-log.md chose between. One core, float32, AVX-512.
//
//   g++ -std=c++17 -O3 -march=native -Wno-ignored-attributes benchmarks/event_kernels.cpp -o event_kernels
//
// 64 rows of 4 steps; an input is active with three times the density and then fires at a third of the steps, much as
// in trained networks. Prints G additions/s, the best of several runs in turns, and the dense product's G
// multiply-accumulates/s. Weights and sums are float32, but for "16 bits": those weights, and sums of 32.
#include <immintrin.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <type_traits>
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
    std::bernoulli_distribution active(std::min(1.0, 3 * density)), fires(std::max(1 / 3.0, density));
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

// A loop unrolled at compile time, so that what its body indexes stays in registers.
template <int... index, typename Body>
[[gnu::always_inline]] inline void each(std::integer_sequence<int, index...>, const Body& body) {
    (body(std::integral_constant<int, index>{}), ...);
}

template <int count, typename Body>
[[gnu::always_inline]] inline void each(const Body& body) {
    each(std::make_integer_sequence<int, count>{}, body);
}

[[gnu::always_inline]] inline Floats load(const float* from) { return *reinterpret_cast<const Floats*>(from); }
[[gnu::always_inline]] inline __m512i load(const std::int16_t* from) {
    return _mm512_cvtepi16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}
[[gnu::always_inline]] inline Floats plus(Floats a, Floats b) { return a + b; }
[[gnu::always_inline]] inline __m512i plus(__m512i a, __m512i b) { return _mm512_add_epi32(a, b); }

template <typename Sum, int vectors>
struct Sums {
    Sum of[steps][vectors];
};

template <int pattern, typename Weight, typename Sum, int vectors>
[[gnu::always_inline]] inline void add_event(const Weight* row, Sums<Sum, vectors>& sums) {
    each<vectors>([&](auto v) {
        const Sum weight = load(row + v * lanes);
        each<steps>([&](auto t) {
            if constexpr (pattern >> decltype(t)::value & 1) {
                sums.of[t][v] = plus(sums.of[t][v], weight);
            }
        });
    });
}

// `turns` sums for each current take the events of a pattern in turns: an addition need not wait for the one before.
template <int pattern, int turns, typename Weight, typename Sum, int vectors>
[[gnu::always_inline]] inline void add_pattern(const std::uint16_t* event, const std::uint16_t* end,
                                               const Weight* weights, Sums<Sum, vectors> (&sums)[turns]) {
    constexpr std::size_t tile = vectors * lanes;
    for (; end - event >= turns; event += turns) {
        each<turns>([&](auto turn) { add_event<pattern>(weights + event[turn] * tile, sums[turn]); });
    }
    for (; event != end; ++event) {
        add_event<pattern>(weights + *event * tile, sums[0]);
    }
}

template <int vectors, int turns, typename Weight, int... pattern>
void add_row(std::integer_sequence<int, pattern...>, const std::uint16_t* events, const int* ends,
             const Weight* weights, float* currents) {
    using Sum = decltype(load(weights));
    Sums<Sum, vectors> sums[turns];
    each<turns>([&](auto turn) {
        each<steps>([&](auto t) { each<vectors>([&](auto v) { sums[turn].of[t][v] = Sum{}; }); });
    });
    (add_pattern<pattern + 1>(events + ends[pattern], events + ends[pattern + 1], weights, sums), ...);
    each<steps>([&](auto t) {
        each<vectors>([&](auto v) {
            each<turns - 1>([&](auto turn) { sums[0].of[t][v] = plus(sums[0].of[t][v], sums[turn + 1].of[t][v]); });
            std::memcpy(currents + (t * vectors + v) * lanes, &sums[0].of[t][v], sizeof(Sum));
        });
    });
}

template <int vectors, int turns, typename Weight>
void patterns(const Lists& lists, int inputs, int outputs, const Weight* weights, float* currents) {
    constexpr int tile = vectors * lanes;
    constexpr std::make_integer_sequence<int, (1 << steps) - 1> all;
    for (int o = 0; o < outputs; o += tile, weights += inputs * tile) {
        for (int row = 0; row < rows; ++row) {
            const int* ends = lists.pattern_ends.data() + row * (1 << steps);
            add_row<vectors, turns>(all, lists.by_pattern.data(), ends, weights, currents + row * steps * tile);
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

// Room for numbers that start at a cache line, as the engine's do.
template <typename Number>
Number* at_cache_line(std::vector<Number>& room, std::size_t size) {
    room.resize(size + 64 / sizeof(Number));
    const auto address = reinterpret_cast<std::uintptr_t>(room.data());
    return room.data() + (64 - address % 64) % 64 / sizeof(Number);
}

}  // namespace

int main() {
    std::mt19937 random(0);
    const auto draw_number = [&] { return random() / 4294967296.0f; };
    std::vector<float> currents(rows * steps * 64);
    bool titled = false;
    for (const auto& [inputs, outputs] : {std::pair{384, 384}, {384, 1536}, {1536, 384}}) {
        const int size = inputs * outputs;
        std::vector<float> room, values(rows * steps * inputs);
        std::vector<std::int16_t> small_room;
        float* weights = at_cache_line(room, size);
        std::int16_t* rounded = at_cache_line(small_room, size);
        std::generate_n(weights, size, [&] { return draw_number() - 0.5f; });
        std::transform(weights, weights + size, rounded, [](float w) { return static_cast<std::int16_t>(65534 * w); });
        std::generate(values.begin(), values.end(), draw_number);
        for (const double density : {0.05, 0.1, 0.2, 0.3}) {
            const Lists lists = draw(inputs, density, random);
            const int k = inputs, o = outputs;
            float* c = currents.data();
            const std::vector<std::pair<std::string, std::function<void()>>> ways = {
                {"steps, 64", [&, k, o] { step_by_step<4, false>(lists, k, o, weights, c); }},
                {"prefetched", [&, k, o] { step_by_step<4, true>(lists, k, o, weights, c); }},
                {"blocks", [&, k, o] { block_by_block<4>(lists, k, o, weights, c); }},
                {"patterns, 64", [&, k, o] { patterns<4, 1>(lists, k, o, weights, c); }},
                {"32", [&, k, o] { patterns<2, 1>(lists, k, o, weights, c); }},
                {"two sums, 32", [&, k, o] { patterns<2, 2>(lists, k, o, weights, c); }},
                {"four sums, 16", [&, k, o] { patterns<1, 4>(lists, k, o, weights, c); }},
                {"16 bits, 32", [&, k, o] { patterns<2, 2>(lists, k, o, rounded, c); }},
                {"dense", [&, k, o] { dense(values, k, o, weights, c); }},
            };
            std::vector<double> best(ways.size(), 1e9);
            for (int repeat = 0; repeat < 25; ++repeat) {
                for (std::size_t i = 0; i < ways.size(); ++i) {
                    const auto begin = std::chrono::steady_clock::now();
                    ways[i].second();
                    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
                    best[i] = std::min(best[i], taken.count());
                }
            }
            if (!titled) {
                std::string dashes = "---|";
                std::printf("| K x O, density |");
                for (const auto& way : ways) {
                    dashes += "---|";
                    std::printf(" %s |", way.first.c_str());
                }
                std::printf("\n|%s\n", dashes.c_str());
                titled = true;
            }
            std::printf("| %d x %d, %.0f %% |", inputs, outputs, density * 100);
            for (std::size_t i = 0; i < ways.size(); ++i) {
                const double work = ways[i].first == "dense" ? double(rows) * steps * inputs : lists.step_ends.back();
                std::printf(" %.0f |", work * outputs / best[i] * 1e-9);
            }
            std::printf("\n");
        }
    }
}
