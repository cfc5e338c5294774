// What bytes become when the engine is fuzzed: lengths, arrays, neurons, all mostly sensible.
#pragma once

#include <cmath>
#include <cstdlib>
#include <random>
#include <vector>

#include <fuzzer/FuzzedDataProvider.h>

#include "core/layout.hpp"

namespace spikformer::engine {

constexpr std::size_t most_given = 1 << 15;  // elements of an array

inline void expect(bool holds) {
    if (!holds) {
        std::abort();
    }
}

struct Array {
    std::vector<std::size_t> shape;
    std::vector<float> values;
};

class Bytes {
protected:
    Bytes(const std::uint8_t* data, std::size_t size) : bytes_(data, size) {}

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
            size = 0;
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

    Dynamics dynamics() {
        if (bytes_.ConsumeIntegralInRange(0, 15) > 0) {
            return {0.5f, 1, 1, 0};
        }
        const auto any = [&] {
            return bytes_.PickValueInArray({0.0f, 1.0f, -1.0f, 0.25f, 1e-45f, 3e38f, -3e38f, INFINITY, NAN});
        };
        return {any(), any(), any(), any()};
    }

    std::size_t one_of(std::initializer_list<std::size_t> some) {
        return some.begin()[bytes_.ConsumeIntegralInRange<std::size_t>(0, some.size() - 1)];
    }

    FuzzedDataProvider bytes_;
};

}  // namespace spikformer::engine
