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
                     const Array<const float, 1>& bias) {
    require(weights.shape(1) == weights.shape(2) && weights.shape(0) == bias.shape(0),
            std::string(name) + ": weights must be [outputs, k, k, channels] with a bias for each output.");
    return program.convolve(name, input, weights.data(), bias.data(), weights.shape(0), weights.shape(1),
                            weights.shape(3));
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

std::unique_ptr<Engine> make_engine(Program& program, std::size_t num_threads) {
    require(program.is_complete(), "The program is not complete: its last op must be a readout.");
    require(num_threads >= 1 && num_threads <= 1024, "num_threads must be between 1 and 1024.");
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

// `kept` says which channels may fire; `noise` is the probability of a spike that was not there.
void intervene(Engine& engine, const char* name, const Array<const Word, 1>& kept, double noise,
               std::uint64_t seed) {
    const std::vector<Op>& ops = engine.program().ops();
    std::size_t index = 0;
    while (index < ops.size() && (ops[index].name != name || ops[index].kind != OpKind::fire)) {
        ++index;
    }
    require(index < ops.size(), std::string("The program has no neurons called ") + name + ".");
    const std::size_t words = engine.program().forms()[index + 1].words();
    require(kept.shape(0) == words, std::string(name) + ": kept must hold " + std::to_string(words) + " words.");
    require(noise >= 0 && noise <= 1, "noise must be a probability.");
    engine.interventions.push_back({index, {kept.data(), kept.data() + words}, noise, seed});
}

nb::list reports(Engine& engine) {
    const std::lock_guard<std::mutex> lock(engine.running);
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

// name, channels, and the packed spikes [B, positions, T, words] of every op with neurons in the last call.
nb::list recorded(Engine& engine, std::size_t batch_size, std::size_t time_steps) {
    const std::lock_guard<std::mutex> lock(engine.running);
    nb::list rows;
    for (const RecordedSpikes& record : engine.recorded) {
        require(record.spikes.size() == batch_size * record.positions * time_steps * record.words,
                "The last call had another batch size or number of steps.");
        const std::size_t shape[4] = {batch_size, record.positions, time_steps, record.words};
        nb::ndarray<const Word, nb::numpy> view(record.spikes.data(), 4, shape);
        rows.append(nb::make_tuple(record.name, record.channels, nb::cast(view, nb::rv_policy::copy)));
    }
    engine.recorded.clear();
    return rows;
}

void set_mode(Engine& engine, int mode) {
    require(mode >= 0 && mode <= static_cast<int>(Mode::dense), "mode must be 0, 1 or 2.");
    engine.mode = static_cast<Mode>(mode);
}

}  // namespace

void define_engine(nb::module_& module) {
    nb::class_<Program>(module, "Program")
        .def("__init__", [](Program* self, const char* instructions, std::size_t in_channels) {
                new (self) Program(kernels_named(instructions), in_channels);
            }, "instructions"_a, "in_channels"_a)
        .def("convolve", &convolve, "name"_a, "input"_a, "weights"_a, "bias"_a)
        .def("fire", &fire, "name"_a, "input"_a, "neuron"_a)
        .def("pool", [](Program& program, const char* name, std::size_t input) { return program.pool(name, input); },
             "name"_a, "input"_a)
        .def("pool_tokens", [](Program& program, const char* name, std::size_t input, std::size_t kernel) {
                return program.pool_tokens(name, input, kernel);
            }, "name"_a, "input"_a, "kernel"_a)
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
        .def("intervene", &intervene, "name"_a, "kept"_a, "noise"_a, "seed"_a)
        .def("end_intervention", [](Engine& engine) { engine.interventions.pop_back(); })  // the last one
        .def("reports", &reports)
        .def("recorded", &recorded, "batch_size"_a, "time_steps"_a)
        .def_prop_ro("instructions", [](const Engine& engine) { return engine.program().kernels().name; })
        .def_prop_ro("num_threads", &Engine::num_threads)
        .def_prop_ro("buffer_bytes", &Engine::buffer_bytes)
        .def_rw("density_thresholds", &Engine::density_thresholds)
        .def_rw("recording", &Engine::recording)
        .def_prop_rw("mode", [](const Engine& engine) { return static_cast<int>(engine.mode); }, &set_mode);
}
