// The kernels of residual streams and the readout, each on its own.
#include <algorithm>

#include "checks.hpp"
#include "core/layer.hpp"

using namespace nanobind::literals;
using namespace spikformer::engine;
using namespace spikformer::binding;

namespace {

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

void define_streams(nb::class_<Kernels>& kernels) {
    kernels.def("add_spikes", &add_spikes, "spikes"_a.noconvert(), "counts"_a.noconvert())
        .def("expand_spikes", &expand_spikes, "spikes"_a.noconvert())
        .def("expand_counts", &expand_counts, "counts"_a.noconvert())
        .def("expand_bytes", &expand_bytes, "spikes"_a.noconvert())
        .def("count_spikes", &count_spikes, "spikes"_a.noconvert())
        .def("count_active", &count_active, "counts"_a.noconvert())
        .def("read_out", &read_out, "counts"_a.noconvert(), "weights"_a.noconvert(), "bias"_a.noconvert())
        .def("add_floats", &add_floats, "a"_a.noconvert(), "b"_a.noconvert())
        .def("read_out_floats", &read_out_floats, "values"_a.noconvert(), "weights"_a.noconvert(),
             "bias"_a.noconvert());
}
