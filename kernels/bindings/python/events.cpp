// The kernels that list events, each on its own.
#include <algorithm>
#include <vector>

#include <nanobind/stl/tuple.h>

#include "checks.hpp"
#include "core/layer.hpp"

using namespace nanobind::literals;
using namespace spikformer::engine;
using namespace spikformer::binding;

namespace {

void check_group(std::size_t time_steps, std::size_t inputs) {
    require(time_steps >= 1 && time_steps <= group_steps,
            "A group has 1 to 4 steps, got " + std::to_string(time_steps) + ".");
    require(inputs <= most_inputs,
            "A row has at most " + std::to_string(most_inputs) + " inputs, got " + std::to_string(inputs) + ".");
}

template <typename Element>
Result<Element> copy_of(const Element* from, std::size_t count) {
    Result<Element> result = make_result<Element>({count});
    std::copy_n(from, count, result.data());
    return result;
}

std::tuple<Result<Index>, Result<std::uint32_t>> list_events(const Kernels& kernels, const Given<Word>& spikes) {
    check("spikes", spikes, {"T", "words"});
    const std::size_t time_steps = spikes.shape(0), words = spikes.shape(1), inputs = words * word_bits;
    check_group(time_steps, inputs);
    std::vector<Index> indices(inputs);
    std::vector<std::uint32_t> scratch(inputs);
    std::uint32_t ends[num_patterns];
    kernels.list_events(spikes.data(), words, time_steps, indices.data(), ends, scratch.data());
    return {copy_of(indices.data(), ends[num_patterns - 1]), copy_of(ends, num_patterns)};
}

std::tuple<Result<Index>, Result<float>, Result<std::uint32_t>> list_counts(const Kernels& kernels,
                                                                            const Given<std::uint8_t>& counts) {
    check("counts", counts, {"T", "inputs"});
    const std::size_t time_steps = counts.shape(0), inputs = counts.shape(1);
    check_group(time_steps, inputs);
    require(inputs % word_bits == 0, "counts must fill whole words of 64, got " + std::to_string(inputs) + ".");
    std::vector<Index> indices(inputs);
    std::vector<float> values(time_steps * inputs + value_margin);
    std::vector<std::uint32_t> scratch(inputs);
    std::uint32_t ends[num_patterns];
    const std::size_t additions =
        kernels.list_counts(counts.data(), inputs, time_steps, indices.data(), values.data(), ends, scratch.data());
    return {copy_of(indices.data(), ends[num_patterns - 1]), copy_of(values.data(), additions),
            copy_of(ends, num_patterns)};
}

// A row that is made of several parts, each a position [T, step_size]: the lists of all of them.
struct Parts {
    std::vector<Index> indices;
    std::vector<float> values;
    std::vector<std::uint32_t> ends;
    std::vector<PartOfRow> all;
};

// list(part, indices, values, ends, scratch) lists one part.
template <typename List>
Parts list_parts(std::size_t num_parts, std::size_t time_steps, std::size_t part_inputs, const List& list) {
    require(num_parts >= 1 && num_parts <= most_parts,
            "A row has 1 to " + std::to_string(most_parts) + " parts, got " + std::to_string(num_parts) + ".");
    require(part_inputs <= most_inputs / num_parts, "A row has at most " + std::to_string(most_inputs) + " inputs.");
    check_group(time_steps, num_parts * part_inputs);
    const std::size_t size = part_inputs + merge_margin, num_values = time_steps * part_inputs + merge_margin;
    Parts parts;
    parts.indices.resize(num_parts * size);
    parts.values.resize(num_parts * num_values);
    parts.ends.resize(num_parts * num_patterns);
    std::vector<std::uint32_t> scratch(part_inputs);
    for (std::size_t p = 0; p < num_parts; ++p) {
        Index* indices = parts.indices.data() + p * size;
        float* values = parts.values.data() + p * num_values;
        std::uint32_t* ends = parts.ends.data() + p * num_patterns;
        list(p, indices, values, ends, scratch.data());
        parts.all.push_back({indices, ends, static_cast<Index>(p * part_inputs), values});
    }
    return parts;
}

// The lists of several parts of a row as the list of the whole.
std::tuple<Result<Index>, Result<std::uint32_t>> merge_events(const Kernels& kernels, const Given<Word>& spikes) {
    check("spikes", spikes, {"parts", "T", "words"});
    const std::size_t num_parts = spikes.shape(0), time_steps = spikes.shape(1), words = spikes.shape(2);
    const std::size_t part_inputs = words < most_inputs ? words * word_bits : most_inputs;
    const auto list = [&](std::size_t p, Index* indices, float*, std::uint32_t* ends, std::uint32_t* scratch) {
        kernels.list_events(spikes.data() + p * time_steps * words, words, time_steps, indices, ends, scratch);
    };
    const Parts parts = list_parts(num_parts, time_steps, part_inputs, list);
    std::vector<Index> merged(num_parts * part_inputs + merge_margin);
    std::uint32_t ends[num_patterns];
    kernels.merge_events(parts.all.data(), num_parts, merged.data(), ends);
    return {copy_of(merged.data(), ends[num_patterns - 1]), copy_of(ends, num_patterns)};
}

std::tuple<Result<Index>, Result<float>, Result<std::uint32_t>> merge_counts(const Kernels& kernels,
                                                                             const Given<std::uint8_t>& counts) {
    check("counts", counts, {"parts", "T", "inputs"});
    const std::size_t num_parts = counts.shape(0), time_steps = counts.shape(1), inputs = counts.shape(2);
    require(inputs % word_bits == 0, "counts must fill whole words of 64, got " + std::to_string(inputs) + ".");
    const auto list = [&](std::size_t p, Index* indices, float* values, std::uint32_t* ends, std::uint32_t* scratch) {
        const std::uint8_t* part = counts.data() + p * time_steps * inputs;
        kernels.list_counts(part, inputs, time_steps, indices, values, ends, scratch);
    };
    const Parts parts = list_parts(num_parts, time_steps, inputs, list);
    std::vector<Index> merged(num_parts * inputs + merge_margin);
    std::vector<float> values(num_parts * time_steps * inputs + merge_margin);
    std::uint32_t ends[num_patterns];
    const std::size_t additions =
        kernels.merge_counts(parts.all.data(), num_parts, merged.data(), values.data(), ends);
    return {copy_of(merged.data(), ends[num_patterns - 1]), copy_of(values.data(), additions),
            copy_of(ends, num_patterns)};
}

}  // namespace

void define_events(nb::class_<Kernels>& kernels) {
    kernels.def("list_events", &list_events, "spikes"_a.noconvert())
        .def("list_counts", &list_counts, "counts"_a.noconvert())
        .def("merge_events", &merge_events, "spikes"_a.noconvert())
        .def("merge_counts", &merge_counts, "counts"_a.noconvert());
}
