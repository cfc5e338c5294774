// The bridge between Python and the core: checks the arrays, releases the interpreter lock, calls lif.hpp. The engine's
// part of it is in the other files of this folder.
#include "core/lif.hpp"

#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#ifdef _OPENMP
#include <omp.h>
#endif

#include "checks.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using Dynamics = spikformer::Dynamics<double>;
using spikformer::Surrogate;
using spikformer::binding::Axis;
using spikformer::binding::check;

// None arrives without data.
template <typename Scalar>
using Array = nb::ndarray<Scalar, nb::device::cpu>;

template <typename Scalar>
void check_if_given(const char* name, const Array<Scalar>& array, std::initializer_list<Axis> axes) {
    if (array.is_valid()) {
        check(name, array, axes);
    }
}

Surrogate parse_surrogate(const std::string& name) {
    if (name == "sigmoid") {
        return Surrogate::sigmoid;
    }
    if (name == "arctan") {
        return Surrogate::arctan;
    }
    throw std::invalid_argument("surrogate must be \"sigmoid\" or \"arctan\", got \"" + name + "\".");
}

template <typename Real>
void lif_forward(const Array<const Real>& current, const Array<const Real>& initial, const Array<Real>& spikes,
                 const Array<Real>& membrane, const Array<Real>& voltage, double gain, double leak,
                 double v_threshold, double v_reset) {
    check("current", current, {"time_steps", "size"}, true);
    const std::size_t time_steps = current.shape(0), size = current.shape(1);
    check_if_given("initial", initial, {size});
    check("spikes", spikes, {time_steps, size});
    check_if_given("membrane", membrane, {time_steps, size});
    check("voltage", voltage, {size});
    const std::ptrdiff_t current_stride = time_steps > 1 ? static_cast<std::ptrdiff_t>(current.stride(0)) : 0;
    const Dynamics dynamics{gain, leak, v_threshold, v_reset};
    const nb::gil_scoped_release unlocked;
    spikformer::lif_forward<Real>(current.data(), current_stride, initial.data(), spikes.data(), membrane.data(),
                                  voltage.data(), time_steps, size, dynamics);
}

template <typename Real>
double lif_backward(const Array<const Real>& grad_spikes, const Array<const Real>& grad_voltage,
                    const Array<const Real>& membrane, const Array<const Real>& initial,
                    const Array<Real>& grad_current, const Array<Real>& grad_initial, double gain, double leak,
                    double v_threshold, double v_reset, const std::string& surrogate, double alpha) {
    check("membrane", membrane, {"time_steps", "size"});
    const std::size_t time_steps = membrane.shape(0), size = membrane.shape(1);
    check("grad_spikes", grad_spikes, {time_steps, size});
    check_if_given("grad_voltage", grad_voltage, {size});
    check_if_given("initial", initial, {size});
    check("grad_current", grad_current, {time_steps, size});
    check_if_given("grad_initial", grad_initial, {size});
    const Dynamics dynamics{gain, leak, v_threshold, v_reset};
    const Surrogate which = parse_surrogate(surrogate);
    const nb::gil_scoped_release unlocked;
    return spikformer::lif_backward<Real>(grad_spikes.data(), grad_voltage.data(), membrane.data(), initial.data(),
                                          grad_current.data(), grad_initial.data(), time_steps, size, dynamics, which,
                                          alpha);
}

// noconvert: a converted output would be a copy that nobody reads.
template <typename Real>
void define_for(nb::module_& module) {
    module.def("lif_forward", &lif_forward<Real>, "current"_a.noconvert(), "initial"_a.noconvert().none(),
               "spikes"_a.noconvert(), "membrane"_a.noconvert().none(), "voltage"_a.noconvert(), "gain"_a, "leak"_a,
               "v_threshold"_a, "v_reset"_a);
    module.def("lif_backward", &lif_backward<Real>, "grad_spikes"_a.noconvert(), "grad_voltage"_a.noconvert().none(),
               "membrane"_a.noconvert(), "initial"_a.noconvert().none(), "grad_current"_a.noconvert(),
               "grad_initial"_a.noconvert().none(), "gain"_a, "leak"_a, "v_threshold"_a, "v_reset"_a, "surrogate"_a,
               "alpha"_a);
}

nb::dict build_info() {
    nb::dict info;
#ifdef _OPENMP
    info["openmp"] = true;
    info["max_threads"] = omp_get_max_threads();
#else
    info["openmp"] = false;
    info["max_threads"] = 1;
#endif
    info["compiler"] = SPIKFORMER_COMPILER;
    return info;
}

}  // namespace

void define_engine(nb::module_& module);   // engine.cpp
void define_kernels(nb::module_& module);  // kernels.cpp

NB_MODULE(_native, module) {
    module.doc() = "Native core of spikformer: neurons over all time steps, and the event-driven engine, on CPU arrays.";
    define_for<float>(module);
    define_for<double>(module);
    module.def("build_info", &build_info);
    define_engine(module);
    define_kernels(module);
}
