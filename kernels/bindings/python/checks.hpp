// What the files of the bridge share: checks of arrays and their shapes, and results that own their memory.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "core/program.hpp"

namespace spikformer::binding {

namespace nb = nanobind;

using Neuron = std::tuple<float, float, float, float>;  // gain, leak, v_threshold, v_reset

using engine::require;

inline engine::Dynamics dynamics_of(const Neuron& neuron) {
    const auto [gain, leak, v_threshold, v_reset] = neuron;
    const engine::Dynamics dynamics{gain, leak, v_threshold, v_reset};
    engine::check_dynamics(dynamics);
    return dynamics;
}

inline const engine::Kernels& kernels_named(const std::string& name) {
    const engine::Kernels* kernels = engine::choose_kernels(name == "best" ? nullptr : name.c_str());
    require(kernels != nullptr, "This machine cannot run the instruction set \"" + name +
                                    "\"; scalar runs everywhere, avx2, avx512, amx and neon where the processor has "
                                    "them.");
    return *kernels;
}

inline void check_integers(const engine::Kernels& kernels) {
    require(kernels.integers != nullptr,
            std::string("The instruction set ") + kernels.name +
                " does not multiply integers; amx does, where the processor has it.");
}

// An array to read. Its shape is checked below and not by nanobind, for a message that says what was expected.
template <typename Scalar>
using Given = nb::ndarray<const Scalar, nb::device::cpu>;

// What an axis must be: of one length, or of any, which a name stands for in the message.
struct Axis {
    Axis(const char* name) : text(name) {}
    Axis(std::size_t length) : text(std::to_string(length)), length(length) {}

    std::string text;
    std::optional<std::size_t> length;
};

// Accepts C order only, except that with `may_repeat` the rows may all be the same one (stride 0, a broadcast array).
template <typename Array>
void check(const char* name, const Array& array, std::initializer_list<Axis> axes, bool may_repeat = false) {
    constexpr std::size_t alignment = alignof(typename Array::Scalar);
    bool fits = array.ndim() == axes.size() && reinterpret_cast<std::uintptr_t>(array.data()) % alignment == 0;
    std::int64_t stride = 1;
    for (std::size_t i = axes.size(); fits && i-- > 0;) {
        const std::size_t length = array.shape(i);
        const bool repeats = may_repeat && i == 0 && array.stride(i) == 0;
        const bool unused = length <= 1 || array.size() == 0;  // producers fill in what they like for such a stride
        fits = axes.begin()[i].length.value_or(length) == length && (unused || repeats || array.stride(i) == stride);
        stride *= static_cast<std::int64_t>(length);
    }
    if (!fits) {
        std::string expected, shape, strides;
        for (const Axis& axis : axes) {
            expected += (expected.empty() ? "" : ", ") + axis.text;
        }
        for (std::size_t i = 0; i < array.ndim(); ++i) {
            shape += (i > 0 ? ", " : "") + std::to_string(array.shape(i));
            strides += (i > 0 ? ", " : "") + std::to_string(array.stride(i));
        }
        throw std::invalid_argument(std::string(name) + " must be aligned and contiguous with shape [" + expected +
                                    "], got shape [" + shape + "] with strides [" + strides + "].");
    }
}

template <typename Scalar>
using Result = nb::ndarray<nb::numpy, Scalar>;

// An array for Python, not initialised.
template <typename Scalar>
Result<Scalar> make_result(std::initializer_list<std::size_t> shape) {
    std::size_t size = 1;
    for (const std::size_t length : shape) {
        if (length > 0 && size > std::numeric_limits<std::size_t>::max() / 2 / sizeof(Scalar) / length) {
            throw std::bad_alloc();
        }
        size *= length;
    }
    std::unique_ptr<Scalar[]> memory(new Scalar[size]);
    nb::capsule owner(memory.get(), [](void* data) noexcept { delete[] static_cast<Scalar*>(data); });
    return Result<Scalar>(memory.release(), shape.size(), shape.begin(), owner);
}

}  // namespace spikformer::binding
