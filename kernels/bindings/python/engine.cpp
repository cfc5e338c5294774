// The engine's side of the bridge: checks what Python hands over, releases the interpreter lock, calls the core.
#include <string>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>

#include "checks.hpp"
#include "core/engine.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace spikformer::engine;
using namespace spikformer::binding;

namespace {

template <typename Scalar, std::size_t dimensions>
using Array = nb::ndarray<Scalar, nb::ndim<dimensions>, nb::c_contig, nb::device::cpu>;

// Names come as C strings: nanobind converts to std::string where an allocation that fails ends the process.
std::size_t convolve(Program& program, const char* name, std::size_t input, const Array<const float, 4>& weights,
                     const Array<const float, 1>& bias, std::size_t stride) {
    require(weights.shape(1) == weights.shape(2) && weights.shape(0) == bias.shape(0),
            std::string(name) + ": weights must be [outputs, k, k, channels] with a bias for each output.");
    return program.convolve(name, input, weights.data(), bias.data(), weights.shape(0), weights.shape(1),
                            weights.shape(3), stride);
}

std::size_t convolve_depthwise(Program& program, const char* name, std::size_t input,
                               const Array<const float, 3>& weights, const Array<const float, 1>& bias) {
    require(weights.shape(0) == weights.shape(1) && weights.shape(2) == bias.shape(0),
            std::string(name) + ": weights must be [k, k, channels] with a bias for each channel.");
    return program.convolve_depthwise(name, input, weights.data(), bias.data(), weights.shape(0), weights.shape(2));
}

std::size_t fire(Program& program, const char* name, std::size_t input, const Neuron& neuron) {
    return program.fire(name, input, dynamics_of(neuron));
}

std::size_t read_out(Program& program, const char* name, std::size_t input, const Array<const float, 2>& weights,
                     const Array<const float, 1>& bias) {
    require(weights.shape(0) == bias.shape(0),
            std::string(name) + ": weights must be [classes, channels] with a bias for each class.");
    return program.read_out(name, input, weights.data(), bias.data(), weights.shape(0), weights.shape(1));
}

// Ops of one input, with nothing else or with one number: a kernel, or heads.
template <std::size_t (Program::*add)(std::string, std::size_t)>
std::size_t without(Program& program, const char* name, std::size_t input) {
    return (program.*add)(name, input);
}

template <std::size_t (Program::*add)(std::string, std::size_t, std::size_t)>
std::size_t with_number(Program& program, const char* name, std::size_t input, std::size_t number) {
    return (program.*add)(name, input, number);
}

std::unique_ptr<Engine> make_engine(Program& program, std::size_t num_threads) {
    require(program.is_complete(), "The program is not complete: its last op must be a readout.");
    require(num_threads >= 1 && num_threads <= most_threads,
            "num_threads must be between 1 and " + std::to_string(most_threads) + ".");
    return std::make_unique<Engine>(std::move(program), num_threads);
}

// x is [B, C, H, W] with `repeats` steps, or [T, B, C, H, W].
void run(Engine& engine, const nb::ndarray<const float, nb::c_contig, nb::device::cpu>& x, std::size_t repeats,
         const std::optional<Array<const float, 1>>& state, const std::optional<Array<float, 1>>& next_state,
         const Array<float, 3>& logits) {
    require(x.ndim() == 4 || x.ndim() == 5, "x must be [B, C, H, W] or [T, B, C, H, W].");
    const bool is_static = x.ndim() == 4;
    const std::size_t axis = is_static ? 0 : 1;
    const Input input{x.data(), is_static, x.shape(axis), is_static ? repeats : x.shape(0), x.shape(axis + 2),
                      x.shape(axis + 3)};
    const std::size_t channels = engine.program().in_channels();
    require(x.shape(axis + 1) == channels, "x must have " + std::to_string(channels) + " channels.");
    require(input.time_steps > 0, "There must be at least one time step.");
    require(logits.shape(0) == input.time_steps && logits.shape(1) == input.batch_size &&
                logits.shape(2) == engine.program().num_classes(),
            "logits must be [T, B, K].");
    engine.program().check_size(input.height, input.width, input.time_steps, input.batch_size);
    const std::size_t voltages = input.batch_size * engine.state_size(input.height, input.width);
    require((!state || state->shape(0) == voltages) && (!next_state || next_state->shape(0) == voltages),
            "The state must hold " + std::to_string(voltages) + " voltages.");
    const float* before = state ? state->data() : nullptr;
    float* after = next_state ? next_state->data() : nullptr;
    const nb::gil_scoped_release unlocked;
    engine.run(input, before, after, logits.data());
}

// `replacement` is [B, positions, T, words] of every call until it ends; `kept` says which channels may fire; `noise` is
// the probability of a spike that was not there.
void intervene(Engine& engine, const char* name, const std::optional<Array<const Word, 4>>& replacement,
               const Array<const Word, 1>& kept, double noise, std::uint64_t seed) {
    const std::size_t op = engine.find_neurons(name);
    const Value& value = engine.program().forms()[op + 1];
    require(kept.shape(0) == value.words(),
            std::string(name) + ": kept must hold " + std::to_string(value.words()) + " words.");
    require(noise >= 0 && noise <= 1, "noise must be a probability.");
    Intervention intervention{op, {}, {kept.data(), kept.data() + kept.size()}, noise, seed};
    if (replacement) {
        const Word padding = value.channels % word_bits == 0 ? 0 : ~Word{0} << value.channels % word_bits;
        require(replacement->shape(3) == value.words() && replacement->size() > 0,
                std::string(name) + ": spikes must be [B, positions, T, " + std::to_string(value.words()) + "].");
        intervention.replacement.assign(replacement->data(), replacement->data() + replacement->size());
        for (std::size_t last = value.words() - 1; last < replacement->size(); last += value.words()) {
            require((intervention.replacement[last] & padding) == 0, "Bits beyond the channels must be 0.");
        }
    }
    engine.interventions.push_back(std::move(intervention));
}

void end_intervention(Engine& engine) {
    require(!engine.interventions.empty(), "There is no intervention to end.");
    engine.interventions.pop_back();
}

nb::list reports(Engine& engine) {
    const std::lock_guard<Mutex> lock(engine.running);
    nb::list rows;
    for (const OpReport& report : engine.reports) {
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

// From the next call on, what the neurons of that name do is kept.
void tap(Engine& engine, const char* name, bool membranes) {
    engine.taps.push_back(Tap(engine.find_neurons(name), membranes));
}

// name, channels, spikes [B, positions, T, words] and, where wanted, membranes [B, positions, T, words * 64] of every tap
// in the last call.
nb::list take_taps(Engine& engine, std::size_t batch_size, std::size_t time_steps) {
    const std::lock_guard<Mutex> lock(engine.running);
    nb::list rows;
    for (const Tap& tap : engine.taps) {
        require(tap.spikes.size() == batch_size * tap.positions * time_steps * tap.words,
                "The last call had another batch size or number of steps.");
        const std::size_t words[4] = {batch_size, tap.positions, time_steps, tap.words};
        const std::size_t values[4] = {batch_size, tap.positions, time_steps, tap.words * word_bits};
        nb::object membranes = nb::none();
        if (tap.wants_membranes) {
            membranes = nb::cast(nb::ndarray<const float, nb::numpy>(tap.membranes.data(), 4, values),
                                 nb::rv_policy::copy);
        }
        const nb::ndarray<const Word, nb::numpy> spikes(tap.spikes.data(), 4, words);
        rows.append(nb::make_tuple(engine.program().ops()[tap.op].name, tap.channels,
                                   nb::cast(spikes, nb::rv_policy::copy), membranes));
    }
    return rows;
}

void set_mode(Engine& engine, int mode) {
    require(mode >= 0 && mode <= static_cast<int>(Mode::dense), "mode must be 0, 1 or 2.");
    engine.mode = static_cast<Mode>(mode);
}

}  // namespace

void define_engine(nb::module_& module) {
    nb::dict limits;  // that spikformer/engine states, too
    limits["max_count"] = max_count;
    limits["max_inputs"] = most_inputs;
    limits["max_attention"] = most_product;
    limits["max_tokens"] = most_tokens;
    limits["max_threads"] = most_threads;
    module.attr("limits") = limits;
    nb::class_<Program>(module, "Program")
        .def("__init__", [](Program* self, const char* instructions, std::size_t in_channels) {
                new (self) Program(kernels_named(instructions), in_channels);
            }, "instructions"_a, "in_channels"_a)
        .def("convolve", &convolve, "name"_a, "input"_a, "weights"_a, "bias"_a, "stride"_a = 1)
        .def("convolve_depthwise", &convolve_depthwise, "name"_a, "input"_a, "weights"_a, "bias"_a)
        .def("fire", &fire, "name"_a, "input"_a, "neuron"_a)
        .def("pool", &with_number<&Program::pool>, "name"_a, "input"_a, "kernel"_a = 3)
        .def("pool_tokens", &with_number<&Program::pool_tokens>, "name"_a, "input"_a, "kernel"_a)
        .def("dilate", &without<&Program::dilate>, "name"_a, "input"_a)
        .def("dilate_heads", &with_number<&Program::dilate_heads>, "name"_a, "input"_a, "num_heads"_a)
        .def("sum_tokens", &without<&Program::sum_tokens>, "name"_a, "input"_a)
        .def("sum_heads", &with_number<&Program::sum_heads>, "name"_a, "input"_a, "num_heads"_a)
        .def("mean", &without<&Program::mean>, "name"_a, "input"_a)
        .def("and_", [](Program& program, const char* name, std::size_t input, std::size_t mask, std::size_t num_heads,
                        bool inverted) { return program.conjunction(name, input, mask, num_heads, inverted); },
             "name"_a, "input"_a, "mask"_a, "num_heads"_a, "inverted"_a)
        .def("add", [](Program& program, const char* name, std::size_t stream, std::size_t input) {
                return program.add(name, stream, input);
            }, "name"_a, "stream"_a, "input"_a)
        .def("attend", [](Program& program, const char* name, std::size_t query, std::size_t key, std::size_t value,
                          std::size_t num_heads, float scale) {
                return program.attend(name, query, key, value, num_heads, scale);
            }, "name"_a, "query"_a, "key"_a, "value"_a, "num_heads"_a, "scale"_a)
        .def("read_out", &read_out, "name"_a, "input"_a, "weights"_a, "bias"_a)
        .def("engine", &make_engine, "num_threads"_a);  // takes the program: it is empty afterwards
    nb::class_<Engine>(module, "Engine")
        .def("state_size", &Engine::state_size, "height"_a, "width"_a)
        .def("run", &run, "x"_a.noconvert(), "repeats"_a, "state"_a.noconvert().none(), "next_state"_a.noconvert().none(),
             "logits"_a.noconvert())
        .def("intervene", &intervene, "name"_a, "replacement"_a.noconvert().none(), "kept"_a.noconvert(), "noise"_a,
             "seed"_a)
        .def("end_intervention", &end_intervention)  // the last one
        .def("tap", &tap, "name"_a, "membranes"_a)
        .def("take_taps", &take_taps, "batch_size"_a, "time_steps"_a)
        .def("clear_taps", [](Engine& engine) { engine.taps.clear(); })
        .def("reports", &reports)
        .def_prop_ro("instructions", [](const Engine& engine) { return engine.program().kernels().name; })
        .def_prop_ro("num_threads", &Engine::num_threads)
        .def_prop_ro("buffer_bytes", &Engine::buffer_bytes)
        .def_rw("density_thresholds", &Engine::density_thresholds)
        .def_prop_rw("mode", [](const Engine& engine) { return static_cast<int>(engine.mode); }, &set_mode);
}
