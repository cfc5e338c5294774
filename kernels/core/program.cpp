#include "program.hpp"

#include <algorithm>
#include <cmath>
#include <new>
#include <utility>

namespace spikformer::engine {
namespace {

constexpr double most_elements = 1125899906842624;  // 2^50: of all samples, in one buffer

void expect(bool holds, const std::string& name, const std::string& problem) {
    require(holds, name + ": " + problem + ".");
}

void expect_finite(const std::string& name, const float* values, std::size_t size) {
    expect(std::all_of(values, values + size, [](float value) { return std::isfinite(value); }), name,
           "weights and bias must be finite");
}

const char* name_of(Kind kind) {
    switch (kind) {
        case Kind::pixels: return "pixels";
        case Kind::spikes: return "spikes";
        case Kind::counts: return "counts";
        case Kind::floats: return "floats";
    }
    return "";
}

// What an op makes of its inputs. Sizes are checked where they are known.
Value infer(const Op& op, const std::vector<Value>& values) {
    const auto input = [&](std::size_t index) -> const Value& { return values[op.inputs[index]]; };
    const std::string kind = name_of(input(0).kind);
    Value x = input(0);
    switch (op.kind) {
        case OpKind::convolve:
            expect(x.kind != Kind::floats, op.name, "a product cannot read floats");
            expect(x.kind != Kind::counts || op.kernel == 1, op.name, "a 3x3 window cannot read counts");
            x.kind = Kind::floats;
            x.channels = op.layer.num_outputs;
            x.largest = 1;
            return x;
        case OpKind::fire:
            expect(x.kind != Kind::pixels, op.name, "a neuron cannot read " + kind);
            x.kind = Kind::spikes;
            x.largest = 1;
            x.is_static = false;
            return x;
        case OpKind::pool:
            expect(x.kind == Kind::floats || x.kind == Kind::spikes, op.name, "a pool cannot read " + kind);
            expect(x.height % 2 == 0 && x.width % 2 == 0, op.name,
                   "a pool halves even sizes, not " + std::to_string(x.height) + "x" + std::to_string(x.width));
            x.height /= 2;
            x.width /= 2;
            return x;
        case OpKind::pool_tokens:
            expect(x.kind == Kind::spikes, op.name, "a pool along tokens cannot read " + kind);
            return x;
        case OpKind::add: {
            const Value& y = input(1);
            expect(x.channels == y.channels && x.height == y.height && x.width == y.width, op.name,
                   "it adds maps of one shape");
            if (x.kind == Kind::floats && y.kind == Kind::floats) {
                x.is_static = x.is_static && y.is_static;
                return x;
            }
            expect((x.kind == Kind::spikes || x.kind == Kind::counts) && y.kind == Kind::spikes, op.name,
                   std::string("it adds floats, or spikes onto spikes or counts, not ") + name_of(y.kind) + " onto " +
                       kind);
            x.kind = Kind::counts;
            x.largest += 1;
            expect(x.largest <= max_count, op.name,
                   "residual sums are counted in bytes, this one may exceed " + std::to_string(max_count));
            return x;
        }
        case OpKind::attend: {
            for (std::size_t index = 0; index < 3; ++index) {
                const Value& y = input(index);
                expect(y.kind == Kind::spikes, op.name, "attention multiplies spikes");
                expect(y.channels == x.channels && y.height == x.height && y.width == x.width, op.name,
                       "Q, K and V must have one shape");
            }
            expect(op.num_heads > 0 && x.channels % op.num_heads == 0, op.name, "heads must divide the channels");
            const std::size_t most = most_product / (x.channels / op.num_heads);
            expect(x.positions() <= most, op.name,
                   "attention is exact for at most " + std::to_string(most) + " tokens, got " +
                       std::to_string(x.positions()) + "; use smaller images");
            x.kind = Kind::floats;
            return x;
        }
        case OpKind::read_out:
            expect(x.kind == Kind::counts || x.kind == Kind::floats, op.name, "a readout cannot read " + kind);
            expect(x.positions() <= most_tokens, op.name,
                   "a readout is exact for at most " + std::to_string(most_tokens) + " tokens, got " +
                       std::to_string(x.positions()) + "; use smaller images");
            x.kind = Kind::floats;
            x.channels = op.bias.size();
            x.largest = x.height = x.width = 1;
            return x;
    }
    return x;
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
                              std::size_t outputs, std::size_t kernel, std::size_t channels) {
    const Value& x = form(name, input);
    expect(outputs > 0 && channels > 0, name, "it needs outputs and channels");
    expect(kernel == 1 || kernel == 3, name, "its window must be 1x1 or 3x3, is " + std::to_string(kernel));
    expect(channels == x.channels, name,
           "it expects " + std::to_string(channels) + " channels, gets " + std::to_string(x.channels));
    const std::size_t padded = x.kind == Kind::pixels ? channels : x.padded();
    expect(padded <= most_inputs / (kernel * kernel), name,
           "it has more than " + std::to_string(most_inputs) + " inputs, which it cannot index");
    expect_finite(name, weights, outputs * kernel * kernel * channels);
    expect_finite(name, bias, outputs);
    Op op(OpKind::convolve, std::move(name), {input});
    op.kernel = kernel;
    op.layer = pack_layer(kernels_, weights, bias, outputs, kernel * kernel, channels, padded);
    return push(std::move(op));
}

std::size_t Program::fire(std::string name, std::size_t input, const Dynamics& dynamics) {
    form(name, input);
    check_dynamics(dynamics);
    Op op(OpKind::fire, std::move(name), {input});
    op.dynamics = dynamics;
    return push(std::move(op));
}

std::size_t Program::pool(std::string name, std::size_t input) {
    form(name, input);
    return push(Op(OpKind::pool, std::move(name), {input}));
}

std::size_t Program::pool_tokens(std::string name, std::size_t input, std::size_t kernel) {
    form(name, input);
    expect(kernel % 2 == 1, name, "its kernel must be odd");
    Op op(OpKind::pool_tokens, std::move(name), {input});
    op.kernel = kernel;
    return push(std::move(op));
}

std::size_t Program::add(std::string name, std::size_t stream, std::size_t input) {
    form(name, stream);
    form(name, input);
    return push(Op(OpKind::add, std::move(name), {stream, input}));
}

std::size_t Program::attend(std::string name, std::size_t query, std::size_t key, std::size_t value,
                            std::size_t num_heads, float scale) {
    for (const std::size_t input : {query, key, value}) {
        form(name, input);
    }
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

std::vector<Value> Program::values(std::size_t height, std::size_t width, bool is_static) const {
    expect(height > 0 && width > 0, "The input", "height and width must be at least 1");
    std::vector<Value> values{values_[0]};
    values.reserve(ops_.size() + 1);
    values[0].height = height;
    values[0].width = width;
    values[0].is_static = is_static;
    for (const Op& op : ops_) {
        values.push_back(infer(op, values));
    }
    return values;
}

void Program::check_size(std::size_t height, std::size_t width, std::size_t time_steps,
                         std::size_t batch_size) const {
    std::size_t widest = 1;
    for (std::size_t index = 0; index < ops_.size(); ++index) {
        widest = std::max({widest, values_[index + 1].padded(), ops_[index].layer.num_inputs});
    }
    double elements = static_cast<double>(widest);
    for (const std::size_t length : {height, width, time_steps, batch_size}) {
        elements *= static_cast<double>(std::max<std::size_t>(length, 1));
    }
    if (elements > most_elements) {
        throw std::bad_alloc();
    }
}

std::size_t Program::state_size(const std::vector<Op>& ops, const std::vector<Value>& values,
                                std::vector<std::size_t>* offsets) {
    std::size_t size = 0;
    if (offsets) {
        offsets->assign(ops.size(), 0);
    }
    for (std::size_t index = 0; index < ops.size(); ++index) {
        if (ops[index].kind == OpKind::fire) {
            if (offsets) {
                (*offsets)[index] = size;
            }
            size += values[index + 1].positions() * values[index + 1].padded();
        }
    }
    return size;
}

// A neuron joins the product or attention right before it if nobody else reads those currents. Then products that read
// the same buffer, one after another and each with its neuron, join each other.
std::vector<Step> Program::steps() const {
    std::vector<std::size_t> readers(ops_.size() + 1);
    for (const Op& op : ops_) {
        for (const std::size_t input : op.inputs) {
            ++readers[input];
        }
    }
    const auto fuses = [&](std::size_t index) {
        return index + 1 < ops_.size() && readers[index + 1] == 1 && ops_[index + 1].kind == OpKind::fire &&
               ops_[index + 1].inputs[0] == index + 1;
    };
    std::vector<Step> steps;
    for (std::size_t index = 0; index < ops_.size();) {
        const Op& op = ops_[index];
        const bool product = op.kind == OpKind::convolve;
        std::size_t last = index + ((product || op.kind == OpKind::attend) && fuses(index) ? 2 : 1);
        const bool shares = product && last == index + 2 && values_[op.inputs[0]].kind != Kind::pixels;
        while (shares && last < ops_.size() && ops_[last].kind == OpKind::convolve && fuses(last) &&
               ops_[last].inputs == op.inputs && ops_[last].layer.num_inputs == op.layer.num_inputs) {
            last += 2;
        }
        steps.push_back({index, last});
        index = last;
    }
    return steps;
}

Program::Slots Program::assign_slots(const std::vector<Step>& steps) const {
    std::vector<std::size_t> last_read(ops_.size() + 1, 0);  // the step
    for (std::size_t step = 0; step < steps.size(); ++step) {
        for (std::size_t index = steps[step].first; index < steps[step].last; ++index) {
            for (const std::size_t input : ops_[index].inputs) {
                last_read[input] = step;
            }
        }
    }
    Slots slots;
    slots.of_buffer.assign(ops_.size() + 1, none);
    std::vector<std::size_t> owners;  // the buffer that lies in each slot; `none`: it is free
    for (std::size_t step = 0; step < steps.size(); ++step) {
        for (std::size_t index = steps[step].first; index < steps[step].last; ++index) {
            const Op& op = ops_[index];
            const std::size_t buffer = index + 1, stream = op.inputs[0];
            const bool fused = op.kind != OpKind::fire && index + 1 < steps[step].last;
            if (fused || op.kind == OpKind::read_out) {
                continue;  // currents go straight to their neurons, and logits to the caller
            }
            const Kind kind = values_[buffer].kind;
            std::size_t slot = none;
            // A residual sum is added in place if nobody reads the stream afterwards.
            if (op.kind == OpKind::add && last_read[stream] == step && values_[stream].kind == kind &&
                values_[stream].is_static == values_[buffer].is_static && op.inputs[1] != stream) {
                slot = slots.of_buffer[stream];
            }
            for (std::size_t candidate = 0; slot == none && candidate < owners.size(); ++candidate) {
                slot = owners[candidate] == none && slots.kinds[candidate] == kind ? candidate : none;
            }
            if (slot == none) {
                slot = owners.size();
                owners.push_back(none);
                slots.kinds.push_back(kind);
            }
            owners[slot] = buffer;
            slots.of_buffer[buffer] = slot;
        }
        for (std::size_t& owner : owners) {
            owner = owner != none && last_read[owner] <= step ? none : owner;
        }
    }
    return slots;
}

}  // namespace spikformer::engine
