// Ops as they are added to a program: their constants and weights are checked, and packed for one set of kernels.
#include "program.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace spikformer::engine {
namespace {

void expect_finite(const std::string& name, const float* values, std::size_t size) {
    expect(std::all_of(values, values + size, [](float value) { return std::isfinite(value); }), name,
           "weights and bias must be finite");
}

void expect_window(const std::string& name, std::size_t kernel, std::size_t least) {
    expect(kernel % 2 == 1 && kernel >= least && kernel <= most_kernel, name,
           "the side of its window must be odd and from " + std::to_string(least) + " to " +
               std::to_string(most_kernel) + ", is " + std::to_string(kernel));
}

void expect_channels(const std::string& name, std::size_t channels, const Value& x) {
    expect(channels > 0 && channels == x.channels, name,
           "it expects " + std::to_string(channels) + " channels, gets " + std::to_string(x.channels));
}

void expect_heads(const std::string& name, std::size_t num_heads, const Value& x) {
    expect(num_heads > 0 && x.channels % num_heads == 0, name,
           "its " + std::to_string(num_heads) + " heads do not divide " + std::to_string(x.channels) + " channels");
}

}  // namespace

void check_dynamics(const Dynamics& dynamics) {
    require(std::isfinite(dynamics.gain) && std::isfinite(dynamics.leak) && std::isfinite(dynamics.v_threshold) &&
                std::isfinite(dynamics.v_reset),
            "A neuron's constants must be finite.");
    require(dynamics.v_threshold > dynamics.v_reset,
            "v_threshold must be above v_reset: a neuron at rest would fire for ever.");
}

Program::Program(const Kernels& kernels, std::size_t in_channels) : kernels_(kernels) {
    expect(in_channels > 0, "The program", "it needs at least one input channel");
    Value input;
    input.is_static = true;  // what depends on it alone may be kept once: the pessimistic case for slots
    input.channels = in_channels;
    values_.push_back(input);
}

const Value& Program::form(const std::string& name, std::size_t buffer) const {
    expect(buffer < values_.size(), name, "buffer " + std::to_string(buffer) + " is not written yet");
    expect(!is_complete(), name, "the program is complete");
    return values_[buffer];
}

std::size_t Program::push(Op op) {
    expect(ops_.size() < max_ops, op.name, "a program has at most " + std::to_string(max_ops) + " ops");
    for (const Op& before : ops_) {
        expect(before.name != op.name, op.name, "another op has this name");
    }
    values_.push_back(infer(op, values_));
    try {
        ops_.push_back(std::move(op));
    } catch (...) {
        values_.pop_back();
        throw;
    }
    return ops_.size();
}

std::size_t Program::convolve(std::string name, std::size_t input, const float* weights, const float* bias,
                              std::size_t outputs, std::size_t kernel, std::size_t channels, std::size_t stride) {
    const Value& x = form(name, input);
    expect(outputs > 0, name, "it needs outputs");
    expect_window(name, kernel, 1);
    expect(stride == 1 || stride == 2 || stride == 4, name,
           "its stride must be 1, 2 or 4, is " + std::to_string(stride));
    expect_channels(name, channels, x);
    const std::size_t padded = x.kind == Kind::pixels ? channels : x.padded();
    expect(padded <= most_inputs / (kernel * kernel), name,
           "it has more than " + std::to_string(most_inputs) + " inputs, which it cannot index");
    expect_finite(name, weights, outputs * kernel * kernel * channels);
    expect_finite(name, bias, outputs);
    Op op(OpKind::convolve, std::move(name), {input});
    op.kernel = kernel;
    op.stride = stride;
    op.layer = pack_layer(kernels_, weights, bias, outputs, kernel * kernel, channels, padded);
    return push(std::move(op));
}

std::size_t Program::convolve_depthwise(std::string name, std::size_t input, const float* weights, const float* bias,
                                        std::size_t kernel, std::size_t channels) {
    const Value& x = form(name, input);
    expect_window(name, kernel, 3);
    expect_channels(name, channels, x);
    expect_finite(name, weights, kernel * kernel * channels);
    expect_finite(name, bias, channels);
    Op op(OpKind::convolve_depthwise, std::move(name), {input});
    op.kernel = kernel;
    op.layer = pack_depthwise(kernels_, weights, bias, kernel * kernel, channels);
    return push(std::move(op));
}

std::size_t Program::fire(std::string name, std::size_t input, const Dynamics& dynamics) {
    form(name, input);
    check_dynamics(dynamics);
    Op op(OpKind::fire, std::move(name), {input});
    op.dynamics = dynamics;
    return push(std::move(op));
}

std::size_t Program::pool(std::string name, std::size_t input, std::size_t kernel) {
    form(name, input);
    static_assert(most_pooled == 3);
    expect(kernel == 2 || kernel == 3, name, "a pool is 2x2 or 3x3, not " + std::to_string(kernel));
    Op op(OpKind::pool, std::move(name), {input});
    op.kernel = kernel;
    op.stride = 2;
    return push(std::move(op));
}

std::size_t Program::pool_tokens(std::string name, std::size_t input, std::size_t kernel) {
    form(name, input);
    expect(kernel % 2 == 1, name, "its kernel must be odd");
    Op op(OpKind::pool_tokens, std::move(name), {input});
    op.kernel = kernel;
    return push(std::move(op));
}

std::size_t Program::dilate(std::string name, std::size_t input) {
    form(name, input);
    Op op(OpKind::dilate, std::move(name), {input});
    op.kernel = 3;
    return push(std::move(op));
}

std::size_t Program::dilate_heads(std::string name, std::size_t input, std::size_t num_heads) {
    const Value& x = form(name, input);
    expect_heads(name, num_heads, x);
    Op op(OpKind::dilate_heads, std::move(name), {input});
    op.num_heads = num_heads;
    op.bounds = head_bounds(x.channels, num_heads);
    return push(std::move(op));
}

std::size_t Program::add(std::string name, std::size_t stream, std::size_t input) {
    form(name, stream);
    form(name, input);
    return push(Op(OpKind::add, std::move(name), {stream, input}));
}

std::size_t Program::conjunction(std::string name, std::size_t input, std::size_t mask, std::size_t num_heads,
                                 bool inverted) {
    form(name, input);
    form(name, mask);
    Op op(OpKind::conjunction, std::move(name), {input, mask});
    op.num_heads = num_heads;
    op.inverted = inverted;
    return push(std::move(op));
}

std::size_t Program::sum_tokens(std::string name, std::size_t input) {
    form(name, input);
    return push(Op(OpKind::sum_tokens, std::move(name), {input}));
}

std::size_t Program::sum_heads(std::string name, std::size_t input, std::size_t num_heads) {
    expect_heads(name, num_heads, form(name, input));
    Op op(OpKind::sum_heads, std::move(name), {input});
    op.num_heads = num_heads;
    return push(std::move(op));
}

std::size_t Program::mean(std::string name, std::size_t input) {
    form(name, input);
    return push(Op(OpKind::mean, std::move(name), {input}));
}

std::size_t Program::attend(std::string name, std::size_t query, std::size_t key, std::size_t value,
                            std::size_t num_heads, float scale) {
    for (const std::size_t input : {query, key, value}) {
        form(name, input);
    }
    expect_heads(name, num_heads, values_[query]);
    expect(std::isfinite(scale), name, "its scale must be finite");
    Op op(OpKind::attend, std::move(name), {query, key, value});
    op.num_heads = num_heads;
    op.scale = scale;
    return push(std::move(op));
}

std::size_t Program::read_out(std::string name, std::size_t input, const float* weights, const float* bias,
                              std::size_t classes, std::size_t channels) {
    const Value& x = form(name, input);
    expect(classes > 0 && channels == x.channels, name,
           "it must be [classes, " + std::to_string(x.channels) + "] with a bias for each class");
    expect_finite(name, weights, classes * channels);
    expect_finite(name, bias, classes);
    Op op(OpKind::read_out, std::move(name), {input});
    op.weights.assign(weights, weights + classes * channels);
    op.bias.assign(bias, bias + classes);
    return push(std::move(op));
}

}  // namespace spikformer::engine
