// Every kernel of core/kernels.hpp by itself, for tests and microbenchmarks; the engine uses none of it.
// Products are in products.cpp.
#include <algorithm>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include "checks.hpp"
#include "core/layer.hpp"

using namespace nanobind::literals;
using namespace spikformer::engine;
using namespace spikformer::binding;

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

Result<Word> pool_map(const Kernels& kernels, const Given<Word>& map) {
    check("map", map, {"height", "width", "depth"});
    const std::size_t height = map.shape(0), width = map.shape(1), depth = map.shape(2);
    require(height % 2 == 0 && width % 2 == 0,
            "Height and width must be even, got " + std::to_string(height) + " and " + std::to_string(width) + ".");
    Result<Word> pooled = make_result<Word>({height / 2, width / 2, depth});
    if (map.size() > 0) {
        const nb::gil_scoped_release unlocked;
        for (std::size_t row = 0; row < height / 2; ++row) {
            kernels.pool_map_row(map.data(), height, width, depth, row, pooled.data() + row * (width / 2) * depth);
        }
    }
    return pooled;
}

Result<Word> pool_tokens(const Kernels& kernels, const Given<Word>& tokens, std::int64_t kernel) {
    check("tokens", tokens, {"tokens", "depth"});
    require(kernel > 0 && kernel % 2 == 1, "kernel must be odd and above 0, got " + std::to_string(kernel) + ".");
    Result<Word> pooled = make_result<Word>({tokens.shape(0), tokens.shape(1)});
    if (tokens.size() > 0) {
        const nb::gil_scoped_release unlocked;
        kernels.pool_tokens(tokens.data(), tokens.shape(0), tokens.shape(1), static_cast<std::size_t>(kernel),
                            pooled.data());
    }
    return pooled;
}

Result<std::uint8_t> add_spikes(const Kernels& kernels, const Given<Word>& spikes, const Given<std::uint8_t>& counts) {
    check("spikes", spikes, {"words"});
    check("counts", counts, {spikes.size() * word_bits});
    Result<std::uint8_t> sums = make_result<std::uint8_t>({counts.size()});
    const nb::gil_scoped_release unlocked;
    std::copy_n(counts.data(), counts.size(), sums.data());
    kernels.add_spikes(spikes.data(), spikes.size(), sums.data());
    return sums;
}

Result<float> expand_spikes(const Kernels& kernels, const Given<Word>& spikes) {
    check("spikes", spikes, {"words"});
    Result<float> values = make_result<float>({spikes.size() * word_bits});
    const nb::gil_scoped_release unlocked;
    kernels.expand_spikes(spikes.data(), spikes.size(), values.data());
    return values;
}

Result<float> expand_counts(const Kernels& kernels, const Given<std::uint8_t>& counts) {
    check("counts", counts, {"size"});
    Result<float> values = make_result<float>({counts.size()});
    const nb::gil_scoped_release unlocked;
    kernels.expand_counts(counts.data(), counts.size(), values.data());
    return values;
}

Result<std::uint8_t> expand_bytes(const Kernels& kernels, const Given<Word>& spikes) {
    check_integers(kernels);
    check("spikes", spikes, {"words"});
    Result<std::uint8_t> values = make_result<std::uint8_t>({spikes.size() * word_bits});
    const nb::gil_scoped_release unlocked;
    kernels.integers->expand_bytes(spikes.data(), spikes.size(), values.data());
    return values;
}

std::size_t count_spikes(const Kernels& kernels, const Given<Word>& spikes) {
    check("spikes", spikes, {"words"});
    const nb::gil_scoped_release unlocked;
    return kernels.count_spikes(spikes.data(), spikes.size());
}

std::size_t count_active(const Kernels& kernels, const Given<std::uint8_t>& counts) {
    check("counts", counts, {"size"});
    const nb::gil_scoped_release unlocked;
    return kernels.count_active(counts.data(), counts.size());
}

Result<float> read_out(const Kernels& kernels, const Given<std::uint8_t>& counts, const Given<float>& weights,
                       const Given<float>& bias) {
    check("counts", counts, {"tokens", "width"});
    check("weights", weights, {"classes", "features"});
    check("bias", bias, {weights.shape(0)});
    const std::size_t num_tokens = counts.shape(0), width = counts.shape(1), features = weights.shape(1);
    require(num_tokens >= 1 && num_tokens <= most_tokens,
            "There must be between 1 and " + std::to_string(most_tokens) + " tokens, got " + std::to_string(num_tokens) + ".");
    require(features <= width, "The head reads " + std::to_string(features) + " features, but counts have only " +
                                   std::to_string(width) + ".");
    Result<float> logits = make_result<float>({bias.size()});
    const nb::gil_scoped_release unlocked;
    Buffer<std::int32_t> totals;
    totals.reserve(features + 1);  // one more: no pointer is null where there are no features
    kernels.sum_tokens(counts.data(), num_tokens, width, features, totals.data());
    kernels.read_out(totals.data(), num_tokens, features, weights.data(), bias.data(), bias.size(), logits.data());
    return logits;
}

Result<float> add_floats(const Kernels& kernels, const Given<float>& a, const Given<float>& b) {
    check("a", a, {"size"});
    check("b", b, {a.size()});
    require(a.size() % word_bits == 0, "The size must be a multiple of 64, got " + std::to_string(a.size()) + ".");
    Result<float> sum = make_result<float>({a.size()});
    const nb::gil_scoped_release unlocked;
    kernels.add_floats(a.data(), b.data(), a.size(), sum.data());
    return sum;
}

Result<float> pool_floats(const Kernels& kernels, const Given<float>& map) {
    check("map", map, {"height", "width", "depth"});
    const std::size_t height = map.shape(0), width = map.shape(1), depth = map.shape(2);
    require(height % 2 == 0 && width % 2 == 0,
            "Height and width must be even, got " + std::to_string(height) + " and " + std::to_string(width) + ".");
    require(depth % word_bits == 0, "The depth must be a multiple of 64, got " + std::to_string(depth) + ".");
    Result<float> pooled = make_result<float>({height / 2, width / 2, depth});
    if (map.size() > 0) {
        const nb::gil_scoped_release unlocked;
        for (std::size_t row = 0; row < height / 2; ++row) {
            kernels.pool_floats_row(map.data(), height, width, depth, row, pooled.data() + row * (width / 2) * depth);
        }
    }
    return pooled;
}

Result<float> read_out_floats(const Kernels& kernels, const Given<float>& values, const Given<float>& weights,
                              const Given<float>& bias) {
    check("values", values, {"tokens", "width"});
    check("weights", weights, {"classes", "features"});
    check("bias", bias, {weights.shape(0)});
    const std::size_t num_tokens = values.shape(0), width = values.shape(1), features = weights.shape(1);
    require(num_tokens >= 1, "There must be at least one token.");
    require(features <= width, "The head reads " + std::to_string(features) + " features, but values have only " +
                                   std::to_string(width) + ".");
    Result<float> logits = make_result<float>({bias.size()});
    const nb::gil_scoped_release unlocked;
    Buffer<double> totals;
    totals.reserve(features + 1);  // one more: no pointer is null where there are no features
    kernels.sum_floats(values.data(), num_tokens, width, features, totals.data());
    kernels.read_out_floats(totals.data(), num_tokens, features, weights.data(), bias.data(), bias.size(),
                            logits.data());
    return logits;
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
             "scale"_a, "order"_a)
        .def("pool_map", &pool_map, "map"_a.noconvert())
        .def("pool_tokens", &pool_tokens, "tokens"_a.noconvert(), "kernel"_a)
        .def("add_spikes", &add_spikes, "spikes"_a.noconvert(), "counts"_a.noconvert())
        .def("expand_spikes", &expand_spikes, "spikes"_a.noconvert())
        .def("expand_counts", &expand_counts, "counts"_a.noconvert())
        .def("expand_bytes", &expand_bytes, "spikes"_a.noconvert())
        .def("count_spikes", &count_spikes, "spikes"_a.noconvert())
        .def("count_active", &count_active, "counts"_a.noconvert())
        .def("read_out", &read_out, "counts"_a.noconvert(), "weights"_a.noconvert(), "bias"_a.noconvert())
        .def("add_floats", &add_floats, "a"_a.noconvert(), "b"_a.noconvert())
        .def("pool_floats", &pool_floats, "map"_a.noconvert())
        .def("read_out_floats", &read_out_floats, "values"_a.noconvert(), "weights"_a.noconvert(),
             "bias"_a.noconvert());
    define_products(module, kernels);
}
