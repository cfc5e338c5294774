// The engine's side of the bridge: checks what Python hands over, releases the interpreter lock, calls kernels/engine.
#include <string>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>

#include "binding_checks.hpp"
#include "engine/build.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace spikformer::engine;
using namespace spikformer::binding;

namespace {

template <typename Scalar, std::size_t dimensions>
using Array = nb::ndarray<Scalar, nb::ndim<dimensions>, nb::c_contig, nb::device::cpu>;

Weights weights_of(const Array<const float, 3>& weights, const Array<const float, 1>& bias) {
    return {weights.data(), weights.shape(0), weights.shape(1), weights.shape(2), bias.data(), bias.shape(0)};
}

// x is [B, C, H, W] with `repeats` steps, or [T, B, C, H, W].
void run(Network& network, const nb::ndarray<const float, nb::c_contig, nb::device::cpu>& x, std::size_t repeats,
         const std::optional<Array<const float, 1>>& state, const std::optional<Array<float, 1>>& next_state,
         const Array<float, 3>& logits) {
    require(x.ndim() == 4 || x.ndim() == 5, "x must be [B, C, H, W] or [T, B, C, H, W].");
    const bool still = x.ndim() == 4;
    const std::size_t axis = still ? 0 : 1;
    const Input input{x.data(), still, x.shape(axis), still ? repeats : x.shape(0), x.shape(axis + 2), x.shape(axis + 3)};
    check_call(network, input, x.shape(axis + 1));
    require(logits.shape(0) == input.time_steps && logits.shape(1) == input.batch_size &&
                logits.shape(2) == network.head.num_classes,
            "logits must be [T, B, K].");
    const std::size_t voltages = input.batch_size * network.state_size(input.height, input.width);
    require((!state || state->shape(0) == voltages) && (!next_state || next_state->shape(0) == voltages),
            "The state must hold " + std::to_string(voltages) + " voltages.");
    const float* before = state ? state->data() : nullptr;
    float* after = next_state ? next_state->data() : nullptr;
    const nb::gil_scoped_release unlocked;
    network.run(input, before, after, logits.data());
}

nb::list reports(Network& network) {
    const std::lock_guard<std::mutex> lock(network.running);
    nb::list rows;
    for (const LayerReport& report : network.reports) {
        nb::dict row;
        row["name"] = report.name;
        row["list_seconds"] = report.list_seconds;
        row["product_seconds"] = report.product_seconds;
        row["additions"] = report.additions;
        row["inputs"] = report.inputs;
        row["dense_samples"] = report.dense_samples;
        row["samples"] = report.samples;
        rows.append(row);
    }
    return rows;
}

// name, channels, and the packed spikes [B, positions, T, words] of every layer in the last call.
nb::list recorded(Network& network, std::size_t batch_size, std::size_t time_steps) {
    const std::lock_guard<std::mutex> lock(network.running);
    nb::list rows;
    for (const RecordedSpikes& record : network.recorded) {
        require(record.spikes.size() == batch_size * record.positions * time_steps * record.words,
                "The last call had another batch size or number of steps.");
        const std::size_t shape[4] = {batch_size, record.positions, time_steps, record.words};
        nb::ndarray<const Word, nb::numpy> view(record.spikes.data(), 4, shape);
        rows.append(nb::make_tuple(record.name, record.channels, nb::cast(view, nb::rv_policy::copy)));
    }
    network.recorded.clear();
    return rows;
}

}  // namespace

// Names arrive as pointers: nanobind's conversion to a std::string ends the process where there is no memory for it.
void define_engine(nb::module_& module) {
    nb::class_<Network>(module, "Network")
        .def("__init__", [](Network* self, const char* instructions, std::size_t num_threads) {
                require(num_threads >= 1 && num_threads <= most_threads,
                        "num_threads must be between 1 and " + std::to_string(most_threads) + ".");
                new (self) Network(kernels_named(instructions), num_threads);
            }, "instructions"_a, "num_threads"_a)
        .def("add_stage", [](Network& network, const char* name, const Array<const float, 3>& weights,
                             const Array<const float, 1>& bias, const Neuron& neuron, bool pooled) {
                add_stage(network, name, weights_of(weights, bias), dynamics_of(neuron), pooled);
            }, "name"_a, "weights"_a, "bias"_a, "neuron"_a, "pooled"_a)
        .def("set_position", [](Network& network, const char* name, const Array<const float, 3>& weights,
                                const Array<const float, 1>& bias, const Neuron& neuron) {
                set_position(network, name, weights_of(weights, bias), dynamics_of(neuron));
            }, "name"_a, "weights"_a, "bias"_a, "neuron"_a)
        .def("begin_block", [](Network& network, const char* name, std::size_t num_heads, float scale,
                               std::size_t query_key_pool, const Neuron& mixed, bool mixes) {
                begin_block(network, name, num_heads, scale, query_key_pool, dynamics_of(mixed), mixes);
            }, "name"_a, "num_heads"_a, "scale"_a, "query_key_pool"_a, "mixed"_a, "mixes"_a)
        .def("set_block_layer", [](Network& network, const char* part, const char* name,
                                   const Array<const float, 3>& weights, const Array<const float, 1>& bias,
                                   const Neuron& neuron) {
                set_block_layer(network, part, name, weights_of(weights, bias), dynamics_of(neuron));
            }, "part"_a, "name"_a, "weights"_a, "bias"_a, "neuron"_a)
        .def("set_head", [](Network& network, const Array<const float, 2>& weights, const Array<const float, 1>& bias) {
                set_head(network, {weights.data(), weights.shape(0), 1, weights.shape(1), bias.data(), bias.shape(0)});
            }, "weights"_a, "bias"_a)
        .def("state_size", &Network::state_size, "height"_a, "width"_a)
        .def("run", &run, "x"_a.noconvert(), "repeats"_a, "state"_a.noconvert().none(), "next_state"_a.noconvert().none(),
             "logits"_a.noconvert())
        .def("reports", &reports)
        .def("recorded", &recorded, "batch_size"_a, "time_steps"_a)
        .def_prop_ro("instructions", [](const Network& network) { return network.kernels.name; })
        .def_prop_ro("num_threads", [](const Network& network) { return network.threads.count(); })
        .def_prop_ro("buffer_bytes", &Network::buffer_bytes)
        .def_rw("crossover", &Network::crossover)
        .def_rw("recording", &Network::recording)
        .def_prop_rw("way", [](const Network& network) { return static_cast<int>(network.way); },
                     [](Network& network, int way) {
                         require(way >= 0 && way <= static_cast<int>(Way::dense), "way must be 0, 1 or 2.");
                         network.way = static_cast<Way>(way);
                     });
}
