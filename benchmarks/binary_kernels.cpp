// What binary inputs allow where a quarter of them fire: ways to multiply spikes with weights, beside the two that run.
// docs/engine-log.md has what won. One core, AVX2.
//
//   g++ -std=c++17 -O3 -march=haswell -Wno-ignored-attributes -I kernels benchmarks/binary_kernels.cpp -o binary_kernels
//
//   events       the engine's: lists of events by their pattern of steps, then one addition for each (lists included)
//   dense        the engine's: spikes as floats, one multiply-add for each (turning them into floats included)
//   tables, 4    sums of 4 inputs' weights for all 16 patterns, made beforehand: one addition for 4 inputs
//   in L1        the same made anew for 8 outputs at a time, from the weights: a table of 128 inputs fits the L1 cache
//   tables, 8    sums of 8 inputs, 256 patterns: one addition for 8 inputs, from 32 times the memory
//   bytes        weights of 24 bits as sums of 4 in four digits of 7 bits: a byte shuffle looks one digit up for 32 rows
//
// 64 tokens of T steps, spikes drawn as bench_kernels.py draws them. Prints microseconds, the best of several turns, and
// the largest difference from sums in double precision over the largest of them.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "isa/avx2/simd.hpp"
#include "isa/dense_linear.hpp"
#include "isa/list_events.hpp"
#include "isa/spike_linear.hpp"

using namespace spikformer::engine;
using namespace spikformer::engine::avx2;

namespace {

constexpr std::size_t tokens = 64;

struct Case {
    std::size_t inputs, outputs, steps;
    std::vector<Word> spikes;         // [tokens][T][words]
    std::vector<float> plain;         // [outputs][inputs]
    std::vector<float> weights;       // [outputs / tile][inputs][tile]
    std::vector<float> currents;      // [tokens * T][outputs], except for the engine's: [outputs / tile][tokens * T][tile]

    std::size_t words() const { return inputs / word_bits; }
    std::size_t rows() const { return tokens * steps; }
    const Word* row(std::size_t r) const { return spikes.data() + r * words(); }
    bool fires(std::size_t r, std::size_t k) const { return row(r)[k / word_bits] >> k % word_bits & 1; }
};

Case draw(std::size_t inputs, std::size_t outputs, std::size_t steps, double density, std::mt19937& random) {
    Case given{inputs, outputs, steps, {}, {}, {}, {}};
    std::bernoulli_distribution active(std::min(1.0, 3 * density)), fires(std::max(1 / 3.0, density)), plain(density);
    given.spikes.resize(given.rows() * given.words());
    for (std::size_t token = 0; token < tokens; ++token) {
        for (std::size_t k = 0; k < inputs; ++k) {
            const bool on = active(random);
            for (std::size_t t = 0; t < steps; ++t) {
                const bool fired = steps == 1 ? plain(random) : on && fires(random);
                given.spikes[(token * steps + t) * given.words() + k / word_bits] |= Word{fired} << k % word_bits;
            }
        }
    }
    std::normal_distribution<float> normal;
    given.plain.resize(outputs * inputs);
    for (float& weight : given.plain) {
        weight = normal(random);
    }
    given.weights.resize(outputs * inputs);
    for (std::size_t o = 0; o < outputs; ++o) {
        for (std::size_t k = 0; k < inputs; ++k) {
            given.weights[(o / tile * inputs + k) * tile + o % tile] = given.plain[o * inputs + k];
        }
    }
    given.currents.resize(given.rows() * outputs);
    return given;
}

void by_events(Case& x) {
    static std::vector<Index> indices;
    static std::vector<std::uint32_t> ends, scratch;
    indices.resize(tokens * x.inputs);
    ends.resize(tokens * num_patterns);
    scratch.resize(x.inputs);
    for (std::size_t token = 0; token < tokens; ++token) {
        list_events(x.row(token * x.steps), x.words(), x.steps, &indices[token * x.inputs], &ends[token * num_patterns],
                    scratch.data());
    }
    for (std::size_t o = 0; o < x.outputs; o += tile) {
        for (std::size_t token = 0; token < tokens; ++token) {
            spike_linear(&indices[token * x.inputs], &ends[token * num_patterns], x.steps, &x.weights[o * x.inputs],
                         &x.currents[o * x.rows() + token * x.steps * tile]);
        }
    }
}

void densely(Case& x) {
    static std::vector<float> floats;
    floats.resize(x.rows() * x.inputs);
    for (std::size_t word = 0; word < x.spikes.size(); ++word) {
        for (std::size_t first = 0; first < word_bits; first += lanes) {
            store(&floats[word * word_bits + first],
                  choose(static_cast<std::uint32_t>(x.spikes[word] >> first & 0xff), broadcast(1), Floats{}));
        }
    }
    for (std::size_t o = 0; o < x.outputs; o += tile) {
        dense_linear(floats.data(), x.rows(), x.inputs, &x.weights[o * x.inputs], &x.currents[o * x.rows()]);
    }
}

// Sums of `group` inputs for every pattern: float[outputs / width][inputs / group][2^group][width].
template <std::size_t group, std::size_t width>
void make_tables(const Case& x, std::size_t first_output, std::size_t end_output, float* tables) {
    for (std::size_t o = first_output; o < end_output; o += width) {
        const float* weights = &x.weights[o / tile * tile * x.inputs + o % tile];
        for (std::size_t k = 0; k < x.inputs; k += group, tables += width << group) {
            for (std::size_t v = 0; v < width; v += lanes) {
                store(tables + v, Floats{});
                for (std::size_t bit = 0; bit < group; ++bit) {
                    const Floats weight = load(weights + (k + bit) * tile + v);
                    for (std::size_t pattern = 0; pattern < std::size_t{1} << bit; ++pattern) {
                        const std::size_t with = pattern | std::size_t{1} << bit;
                        store(tables + with * width + v, load(tables + pattern * width + v) + weight);
                    }
                }
            }
        }
    }
}

// Rows r to r + 3, so that additions need not wait for each other.
template <std::size_t group, std::size_t width>
void look_up(const Case& x, const float* tables, std::size_t r, float* currents, std::size_t stride) {
    constexpr std::size_t together = 4, vectors = width / lanes, mask = (std::size_t{1} << group) - 1;
    Floats sums[together][vectors] = {};
    for (std::size_t w = 0; w < x.words(); ++w) {
        Word bits[together];
        for (std::size_t i = 0; i < together; ++i) {
            bits[i] = x.row(r + i)[w];
        }
        for (std::size_t k = 0; k < word_bits; k += group, tables += width << group) {
            for (std::size_t i = 0; i < together; ++i) {
                const float* found = tables + (bits[i] >> k & mask) * width;
                for (std::size_t v = 0; v < vectors; ++v) {
                    sums[i][v] += load(found + v * lanes);
                }
            }
        }
    }
    for (std::size_t i = 0; i < together; ++i) {
        for (std::size_t v = 0; v < vectors; ++v) {
            store(currents + i * stride + v * lanes, sums[i][v]);
        }
    }
}

template <std::size_t group>
void by_tables(Case& x, const std::vector<float>& tables) {
    for (std::size_t o = 0; o < x.outputs; o += tile) {
        const float* own = tables.data() + (o * x.inputs / group << group);
        for (std::size_t r = 0; r < x.rows(); r += 4) {
            look_up<group, tile>(x, own, r, &x.currents[r * x.outputs + o], x.outputs);
        }
    }
}

void by_small_tables(Case& x) {
    static std::vector<float> tables;
    tables.resize(x.inputs / 4 * 16 * lanes);
    for (std::size_t o = 0; o < x.outputs; o += lanes) {
        make_tables<4, lanes>(x, o, o + lanes, tables.data());
        for (std::size_t r = 0; r < x.rows(); r += 4) {
            look_up<4, lanes>(x, tables.data(), r, &x.currents[r * x.outputs + o], x.outputs);
        }
    }
}

// Fixed point: sum = scale * (Σ digits << 7 d) + offset, exact but for the rounding of weights to 24 bits.
struct ByteTables {
    std::vector<std::uint8_t> digits;  // [outputs][inputs / 4][4][16]
    std::vector<float> scales, offsets;
};

ByteTables make_byte_tables(const Case& x) {
    ByteTables made;
    made.digits.resize(x.outputs * x.inputs / 4 * 64);
    for (std::size_t o = 0; o < x.outputs; ++o) {
        const float* weights = &x.plain[o * x.inputs];
        float largest = 0;
        for (std::size_t k = 0; k < x.inputs; ++k) {
            largest = std::max(largest, std::abs(weights[k]));
        }
        const double scale = largest / ((1 << 23) - 1);
        std::int64_t offset = 0;
        for (std::size_t k = 0; k < x.inputs; k += 4) {
            std::array<std::int32_t, 16> sums{};
            for (std::size_t pattern = 0; pattern < 16; ++pattern) {
                for (std::size_t bit = 0; bit < 4; ++bit) {
                    sums[pattern] += pattern >> bit & 1 ? static_cast<std::int32_t>(std::lrint(weights[k + bit] / scale)) : 0;
                }
            }
            const std::int32_t least = *std::min_element(sums.begin(), sums.end());
            offset += least;
            for (std::size_t digit = 0; digit < 4; ++digit) {
                for (std::size_t pattern = 0; pattern < 16; ++pattern) {
                    made.digits[((o * x.inputs + k) / 4 * 4 + digit) * 16 + pattern] =
                        static_cast<std::uint8_t>((sums[pattern] - least) >> 7 * digit & 127);
                }
            }
        }
        made.scales.push_back(static_cast<float>(scale));
        made.offsets.push_back(static_cast<float>(scale * static_cast<double>(offset)));
    }
    return made;
}

// Groups of four inputs of 32 rows: [rows / 32][inputs / 4][32], a byte each.
void turn(const Case& x, std::uint8_t* nibbles) {
    for (std::size_t r = 0; r < x.rows(); ++r) {
        for (std::size_t g = 0; g < x.inputs / 4; ++g) {
            nibbles[(r / 32 * x.inputs / 4 + g) * 32 + r % 32] = static_cast<std::uint8_t>(x.row(r)[g / 16] >> g % 16 * 4 & 15);
        }
    }
}

void by_bytes(Case& x, const ByteTables& tables) {
    static std::vector<std::uint8_t> nibbles;
    nibbles.resize(x.rows() * x.inputs / 4);
    turn(x, nibbles.data());
    const std::size_t groups = x.inputs / 4;
    const __m256i low_bytes = _mm256_set1_epi16(0xff);
    for (std::size_t block = 0; block < x.rows() / 32; ++block) {
        const std::uint8_t* given = &nibbles[block * groups * 32];
        for (std::size_t o = 0; o < x.outputs; ++o) {
            const std::uint8_t* table = &tables.digits[o * groups * 64];
            __m256i even[4] = {}, odd[4] = {};  // sums of bytes of even and of odd rows, in 16 bits
            for (std::size_t g = 0; g < groups; g += 2) {
                const __m256i first = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(given + g * 32));
                const __m256i second = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(given + g * 32 + 32));
                for (std::size_t digit = 0; digit < 4; ++digit) {
                    const __m128i* own = reinterpret_cast<const __m128i*>(table + (g * 4 + digit) * 16);
                    const __m256i sum = _mm256_add_epi8(
                        _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128(own)), first),
                        _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128(own + 4)), second));
                    even[digit] = _mm256_add_epi16(even[digit], _mm256_and_si256(sum, low_bytes));
                    odd[digit] = _mm256_add_epi16(odd[digit], _mm256_srli_epi16(sum, 8));
                }
            }
            alignas(32) std::uint16_t sums[2][4][16];
            for (std::size_t digit = 0; digit < 4; ++digit) {
                _mm256_store_si256(reinterpret_cast<__m256i*>(sums[0][digit]), even[digit]);
                _mm256_store_si256(reinterpret_cast<__m256i*>(sums[1][digit]), odd[digit]);
            }
            for (std::size_t i = 0; i < 32; ++i) {
                const auto& own = sums[i % 2];
                const float low = static_cast<float>(own[0][i / 2] + (own[1][i / 2] << 7));
                const float high = static_cast<float>(own[2][i / 2] + (own[3][i / 2] << 7));
                x.currents[(block * 32 + i) * x.outputs + o] = tables.scales[o] * (low + 16384 * high) + tables.offsets[o];
            }
        }
    }
}

double error_of(const Case& x, bool tiled) {
    double largest = 0, difference = 0;
    for (std::size_t r = 0; r < x.rows(); r += 7) {
        for (std::size_t o = 0; o < x.outputs; ++o) {
            double sum = 0;
            for (std::size_t k = 0; k < x.inputs; ++k) {
                sum += x.fires(r, k) ? x.plain[o * x.inputs + k] : 0.0f;
            }
            const std::size_t place = tiled ? (o / tile * x.rows() + r) * tile + o % tile : r * x.outputs + o;
            largest = std::max(largest, std::abs(sum));
            difference = std::max(difference, std::abs(x.currents[place] - sum));
        }
    }
    return difference / largest;
}

void compare(std::size_t inputs, std::size_t outputs, std::size_t steps, double density, std::mt19937& random) {
    Case x = draw(inputs, outputs, steps, density, random);
    std::vector<float> fours(inputs / 4 * 16 * outputs), eights(inputs / 8 * 256 * outputs);
    make_tables<4, tile>(x, 0, outputs, fours.data());
    make_tables<8, tile>(x, 0, outputs, eights.data());
    const ByteTables bytes = make_byte_tables(x);
    const std::pair<const char*, std::function<void()>> ways[] = {
        {"events", [&] { by_events(x); }},          {"dense", [&] { densely(x); }},
        {"tables, 4", [&] { by_tables<4>(x, fours); }}, {"in L1", [&] { by_small_tables(x); }},
        {"tables, 8", [&] { by_tables<8>(x, eights); }}, {"bytes", [&] { by_bytes(x, bytes); }},
    };
    double best[6], errors[6];
    std::fill_n(best, 6, 1e30);
    for (int turn = 0; turn < 40; ++turn) {
        for (int way = 0; way < 6; ++way) {
            const auto begin = std::chrono::steady_clock::now();
            ways[way].second();
            const std::chrono::duration<double, std::micro> taken = std::chrono::steady_clock::now() - begin;
            best[way] = std::min(best[way], taken.count());
            errors[way] = turn == 0 ? error_of(x, way < 2) : errors[way];
        }
    }
    std::printf("| %zu × %zu, T = %zu, %.0f %% |", inputs, outputs, steps, 100 * density);
    for (int way = 0; way < 6; ++way) {
        std::printf(" %.0f |", best[way]);
    }
    std::printf(" %.1e and %.1e |\n", *std::max_element(errors, errors + 5), errors[5]);
    std::fflush(stdout);
}

}  // namespace

int main() {
    std::mt19937 random(0);
    std::printf("| inputs × outputs | events | dense | tables, 4 | in L1 | tables, 8 | bytes | error of floats and bytes |\n");
    std::printf("|---|---|---|---|---|---|---|---|\n");
    for (const auto& [inputs, outputs] : {std::pair<std::size_t, std::size_t>{128, 128}, {128, 512}, {384, 384}, {384, 1536}}) {
        for (const std::size_t steps : {1, 4}) {
            for (const double density : {0.1, 0.25, 0.33}) {
                compare(inputs, outputs, steps, density, random);
            }
        }
    }
}
