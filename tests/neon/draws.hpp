// Random inputs, the same on every machine: no distribution of the standard library, which may draw others elsewhere.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "core/layout.hpp"

namespace spikformer::engine {

class Draws {
public:
    // Density is the share that is not 0.
    std::vector<float> floats(std::size_t size, double density = 1) {
        std::vector<float> values(size);
        std::generate(values.begin(), values.end(), [&] { return happens(density) ? number() : 0.0f; });
        return values;
    }

    std::vector<std::uint8_t> counts(std::size_t size, double density, std::uint32_t most = 255) {
        std::vector<std::uint8_t> values(size);
        std::generate(values.begin(), values.end(),
                      [&] { return static_cast<std::uint8_t>(happens(density) ? 1 + generator_() % most : 0); });
        return values;
    }

    // For sums that are hard to round: few bits, no zeros, thirds; exponents from `lowest`, of 0 for numbers too small to
    // be normal, up to `highest`.
    std::vector<float> hard_floats(std::size_t size, std::uint32_t lowest, std::uint32_t highest) {
        std::vector<float> values(size);
        std::generate(values.begin(), values.end(), [&] {
            const std::uint32_t one = std::uint32_t{1} << generator_() % 23, other = std::uint32_t{1} << generator_() % 23;
            const std::uint32_t kinds[] = {0, one, one | other, 0x7FFFFF, 0x7FFFFF ^ one, 0x2AAAAA, 0x2AAAAB, 0x555555};
            const std::uint32_t exponent = lowest + static_cast<std::uint32_t>(generator_()) % (highest - lowest + 1);
            const std::uint32_t sign = static_cast<std::uint32_t>(generator_()) & 0x80000000;
            const std::uint32_t bits = sign | exponent << 23 | kinds[generator_() % 8];
            float value;
            std::memcpy(&value, &bits, sizeof value);
            return value;
        });
        return values;
    }

    // [rows][words of `channels` bits]; the bits that fill up the last word are 0.
    std::vector<Word> spikes(std::size_t rows, std::size_t channels, double density) {
        const std::size_t words = divide_up(channels, word_bits);
        std::vector<Word> values(rows * words);
        for (std::size_t row = 0; row < rows; ++row) {
            for (std::size_t c = 0; c < channels; ++c) {
                values[row * words + c / word_bits] |= Word{happens(density)} << c % word_bits;
            }
        }
        return values;
    }

private:
    bool happens(double share) { return generator_() < share * 4294967296.0; }

    // Mostly of many bits; some coarse, so that neurons meet their threshold exactly; some too small to be normal.
    float number() {
        const float fine = (static_cast<float>(generator_()) - 2147483648.0f) / 2147483648.0f;
        switch (generator_() % 8) {
            case 0: return std::rint(fine * 4) / 4;
            case 1: return fine * 1e-39f;
            default: return fine;
        }
    }

    std::mt19937 generator_{2026};
};

}  // namespace spikformer::engine
