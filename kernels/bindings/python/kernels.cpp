// Every kernel of core/kernels.hpp by itself, for tests and microbenchmarks; the engine uses none of it. Products are in
// products.cpp, the lists they read in events.cpp, maps and heads in maps.cpp, residual streams in streams.cpp.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include "checks.hpp"
#include "core/layer.hpp"

using namespace nanobind::literals;
using namespace spikformer::engine;
using namespace spikformer::binding;

void define_events(nb::class_<Kernels>& kernels);                         // events.cpp
void define_maps(nb::class_<Kernels>& kernels);                           // maps.cpp
void define_streams(nb::class_<Kernels>& kernels);                        // streams.cpp
void define_products(nb::module_& module, nb::class_<Kernels>& kernels);  // products.cpp

namespace {

std::tuple<Result<Word>, Result<float>> fire(const Kernels& kernels, const Given<float>& currents,
                                             const Given<float>& bias, const Neuron& neuron,
                                             const std::optional<Given<float>>& initial) {
    check("currents", currents, {"T", "rows", "width"}, true);
    const std::size_t time_steps = currents.shape(0), rows = currents.shape(1), width = currents.shape(2);
    require(width % word_bits == 0, "The width must be a multiple of 64, got " + std::to_string(width) + ".");
    check("bias", bias, {width});
    if (initial) {
        check("initial", *initial, {rows, width});
    }
    const Dynamics dynamics = dynamics_of(neuron);
    Result<Word> spikes = make_result<Word>({time_steps, rows, width / word_bits});
    Result<float> voltage = make_result<float>({rows, width});
    {
        const nb::gil_scoped_release unlocked;
        Firing firing;
        firing.current_row = firing.state_row = width;
        firing.current_step = currents.stride(0) == 0 ? 0 : rows * width;
        firing.spike_row = width / 8;
        firing.spike_step = rows * width / 8;
        for (std::size_t begin = 0; begin < width; begin += kernels.tile) {
            firing.currents = currents.data() + begin;
            firing.spikes = reinterpret_cast<unsigned char*>(spikes.data()) + begin / 8;
            firing.initial = initial ? initial->data() + begin : nullptr;
            firing.voltage = voltage.data() + begin;
            kernels.fire(firing, rows, time_steps, bias.data() + begin, dynamics);
        }
    }
    return {spikes, voltage};
}

Result<float> attend(const Kernels& kernels, const Given<Word>& query, const Given<Word>& key, const Given<Word>& value,
                     std::int64_t features, float scale, const std::string& order) {
    check("query", query, {"tokens", "words"});
    const std::size_t num_tokens = query.shape(0), words = query.shape(1);
    check("key", key, {num_tokens, words});
    check("value", value, {num_tokens, words});
    const std::size_t head_dim = features > 0 ? static_cast<std::size_t>(features) : 0;
    require(head_dim > 0 && divide_up(head_dim, word_bits) == words,
            "head_dim must be above 0 and fill " + std::to_string(words) + " words, got " + std::to_string(features) +
                ".");
    require(num_tokens <= most_product / head_dim,
            "Tokens times head_dim must not exceed 2^24, for exact sums, got " + std::to_string(num_tokens) +
                " times " + std::to_string(head_dim) + ".");
    require(order == "query_key_first" || order == "key_value_first",
            "order must be \"query_key_first\" or \"key_value_first\", got \"" + order + "\".");
    const Word padding = head_dim % word_bits == 0 ? 0 : ~Word{0} << head_dim % word_bits;
    for (const Given<Word>* spikes : {&query, &key, &value}) {
        Word outside = 0;
        for (std::size_t n = 0; n < num_tokens; ++n) {
            outside |= spikes->data()[n * words + words - 1] & padding;
        }
        require(outside == 0, "Bits beyond head_dim must be 0.");
    }
    Result<float> currents = make_result<float>({num_tokens, head_dim});
    const nb::gil_scoped_release unlocked;
    const AttentionHead head{query.data(), key.data(), value.data(), num_tokens, head_dim};
    if (order == "query_key_first") {
        kernels.attend_query_key_first(head, scale, currents.data(), head_dim);
    } else if (num_tokens > 0) {
        Buffer<float> table;
        kernels.attend_key_value_first(head, scale, currents.data(), head_dim, table.reserve(head_dim * word_bits));
    }
    return currents;
}

}  // namespace

void define_kernels(nb::module_& module) {
    nb::class_<Kernels> kernels(module, "Kernels");
    kernels.def("__init__", [](Kernels* self, const std::string& instructions) {
            new (self) Kernels(kernels_named(instructions));
        }, "instructions"_a)
        .def_prop_ro("name", [](const Kernels& self) { return self.name; })
        .def_ro("tile", &Kernels::tile)
        .def_prop_ro("multiplies_integers", [](const Kernels& self) { return self.integers != nullptr; })
        .def("fire", &fire, "currents"_a.noconvert(), "bias"_a.noconvert(), "neuron"_a, "initial"_a.noconvert().none())
        .def("attend", &attend, "query"_a.noconvert(), "key"_a.noconvert(), "value"_a.noconvert(), "head_dim"_a,
             "scale"_a, "order"_a);
    define_events(kernels);
    define_maps(kernels);
    define_streams(kernels);
    define_products(module, kernels);
}
