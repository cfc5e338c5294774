// The kernels that pool, filter and mask maps and heads, each on its own.
#include "checks.hpp"
#include "core/window.hpp"

using namespace nanobind::literals;
using namespace spikformer::engine;
using namespace spikformer::binding;

namespace {

// One row of a map after another through a pool's kernel.
template <typename Element, typename PoolRow>
Result<Element> pool_rows(const Given<Element>& map, std::size_t kernel, std::size_t stride, const PoolRow& pool_row) {
    check("map", map, {"height", "width", "depth"});
    const std::size_t height = map.shape(0), width = map.shape(1), depth = map.shape(2);
    require(kernel == 3 || (kernel == 2 && stride == 2), "A window is 3x3, or 2x2 with stride 2.");
    require(stride == 1 || stride == 2, "stride must be 1 or 2, got " + std::to_string(stride) + ".");
    require(height % stride == 0 && width % stride == 0,
            "Height and width must be even, got " + std::to_string(height) + " and " + std::to_string(width) + ".");
    Result<Element> pooled = make_result<Element>({height / stride, width / stride, depth});
    if (map.size() > 0) {
        const nb::gil_scoped_release unlocked;
        const Window window{height, width, kernel, stride};
        for (std::size_t row = 0; row < height / stride; ++row) {
            pool_row(pooled_rows<Element>(window, row, depth,
                                          [&](std::size_t y) { return map.data() + y * width * depth; }),
                     pooled.data() + row * (width / stride) * depth);
        }
    }
    return pooled;
}

Result<Word> pool_map(const Kernels& kernels, const Given<Word>& map, std::size_t kernel, std::size_t stride) {
    return pool_rows(map, kernel, stride, kernels.pool_map_row);
}

Result<std::uint8_t> pool_counts(const Kernels& kernels, const Given<std::uint8_t>& map, std::size_t kernel) {
    return pool_rows(map, kernel, 2, kernels.pool_counts_row);
}

Result<float> pool_floats(const Kernels& kernels, const Given<float>& map, std::size_t kernel) {
    require(map.ndim() != 3 || map.shape(2) % word_bits == 0, "The depth must be a multiple of 64.");
    return pool_rows(map, kernel, 2, kernels.pool_floats_row);
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

// Heads of `channels` in whole words; how many channels each has.
std::size_t check_heads(std::size_t channels, std::size_t words, std::int64_t num_heads) {
    require(num_heads >= 1 && channels >= 1 && channels % static_cast<std::size_t>(num_heads) == 0 &&
                divide_up(channels, word_bits) == words,
            "num_heads must divide the channels, and those fill " + std::to_string(words) + " words, got " +
                std::to_string(num_heads) + " and " + std::to_string(channels) + ".");
    return channels / static_cast<std::size_t>(num_heads);
}

// tokens [N, T, words] of `channels`.
Result<Word> dilate_heads(const Kernels& kernels, const Given<Word>& tokens, std::size_t channels,
                          std::int64_t num_heads) {
    check("tokens", tokens, {"tokens", "T", "words"});
    const std::size_t words = tokens.shape(2);
    check_heads(channels, words, num_heads);
    const HeadBounds bounds = head_bounds(channels, static_cast<std::size_t>(num_heads));
    Result<Word> dilated = make_result<Word>({tokens.shape(0), tokens.shape(1), words});
    if (tokens.size() > 0) {
        const nb::gil_scoped_release unlocked;
        kernels.dilate_heads(tokens.data(), tokens.shape(0), tokens.shape(1), words, bounds.firsts.data(),
                             bounds.lasts.data(), dilated.data());
    }
    return dilated;
}

Result<Word> and_spikes(const Kernels& kernels, const Given<Word>& spikes, const Given<Word>& mask, bool inverted) {
    check("spikes", spikes, {"words"});
    check("mask", mask, {spikes.size()});
    Result<Word> masked = make_result<Word>({spikes.size()});
    const nb::gil_scoped_release unlocked;
    kernels.and_spikes(spikes.data(), mask.data(), spikes.size(), inverted ? ~Word{0} : Word{0}, masked.data());
    return masked;
}

// heads [words] to spikes of num_heads * head_dim channels.
Result<Word> spread_heads(const Kernels& kernels, const Given<Word>& heads, std::size_t num_heads,
                          std::size_t head_dim) {
    require(num_heads >= 1 && head_dim >= 1 && num_heads <= most_inputs && head_dim <= most_inputs,
            "num_heads and head_dim must be from 1 to " + std::to_string(most_inputs) + ".");
    check("heads", heads, {divide_up(num_heads, word_bits)});
    Result<Word> spread = make_result<Word>({divide_up(num_heads * head_dim, word_bits)});
    const nb::gil_scoped_release unlocked;
    kernels.spread_heads(heads.data(), num_heads, head_dim, spread.data());
    return spread;
}

// spikes [rows, words] of `channels` to [rows, num_heads].
Result<float> sum_heads(const Kernels& kernels, const Given<Word>& spikes, std::size_t channels,
                        std::int64_t num_heads) {
    check("spikes", spikes, {"rows", "words"});
    const std::size_t rows = spikes.shape(0), words = spikes.shape(1);
    const std::size_t head_dim = check_heads(channels, words, num_heads), heads = channels / head_dim;
    Result<float> sums = make_result<float>({rows, heads});
    const nb::gil_scoped_release unlocked;
    for (std::size_t row = 0; row < rows; ++row) {
        kernels.sum_heads(spikes.data() + row * words, heads, head_dim, sums.data() + row * heads);
    }
    return sums;
}

// tokens [N, words] to [words * 64].
Result<std::int32_t> sum_spikes(const Kernels& kernels, const Given<Word>& tokens) {
    check("tokens", tokens, {"tokens", "words"});
    require(tokens.shape(0) <= most_tokens, "There must be at most " + std::to_string(most_tokens) + " tokens.");
    Result<std::int32_t> totals = make_result<std::int32_t>({tokens.shape(1) * word_bits});
    if (tokens.shape(1) > 0) {
        const nb::gil_scoped_release unlocked;
        kernels.sum_spikes(tokens.data(), tokens.shape(0), tokens.shape(1), tokens.shape(1), totals.data());
    }
    return totals;
}

}  // namespace

void define_maps(nb::class_<Kernels>& kernels) {
    kernels.def("pool_map", &pool_map, "map"_a.noconvert(), "kernel"_a = 3, "stride"_a = 2)
        .def("pool_counts", &pool_counts, "map"_a.noconvert(), "kernel"_a = 3)
        .def("pool_floats", &pool_floats, "map"_a.noconvert(), "kernel"_a = 3)
        .def("pool_tokens", &pool_tokens, "tokens"_a.noconvert(), "kernel"_a)
        .def("dilate_heads", &dilate_heads, "tokens"_a.noconvert(), "channels"_a, "num_heads"_a)
        .def("and_spikes", &and_spikes, "spikes"_a.noconvert(), "mask"_a.noconvert(), "inverted"_a)
        .def("spread_heads", &spread_heads, "heads"_a.noconvert(), "num_heads"_a, "head_dim"_a)
        .def("sum_heads", &sum_heads, "spikes"_a.noconvert(), "channels"_a, "num_heads"_a)
        .def("sum_spikes", &sum_spikes, "tokens"_a.noconvert());
}
