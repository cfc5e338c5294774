// What every buffer holds: kinds, channels and, once the size of the input is known, sizes.
#include <algorithm>
#include <cstdint>
#include <new>
#include <string>

#include "program.hpp"

namespace spikformer::engine {
namespace {

// Of all samples, in one buffer: with what is added to each, bytes are still counted in a size_t.
constexpr double most_elements = SIZE_MAX > UINT32_MAX ? 1125899906842624.0 : 268435456.0;  // 2^50, 2^28
constexpr std::size_t least_positions = 32;  // events are listed in blocks of so many rows

const char* name_of(Kind kind) {
    switch (kind) {
        case Kind::pixels: return "pixels";
        case Kind::spikes: return "spikes";
        case Kind::counts: return "counts";
        case Kind::floats: return "floats";
    }
    return "";
}

void expect_spikes(const Op& op, const Value& x) {
    expect(x.kind == Kind::spikes, op.name, std::string("it reads spikes, not ") + name_of(x.kind));
}

void expect_tokens(const Op& op, const Value& x) {
    expect(x.positions() <= most_tokens, op.name,
           "it adds up at most " + std::to_string(most_tokens) + " positions exactly, got " +
               std::to_string(x.positions()) + "; use smaller images");
}

Value infer_sum(const Op& op, Value x, const Value& y) {
    expect(x.channels == y.channels && may_be_alike(x, y), op.name, "it adds maps of one shape");
    if (x.kind == Kind::floats && y.kind == Kind::floats) {
        x.is_static = x.is_static && y.is_static;
        return x;
    }
    expect((x.kind == Kind::spikes || x.kind == Kind::counts) && y.kind == Kind::spikes, op.name,
           std::string("it adds floats, or spikes onto spikes or counts, not ") + name_of(y.kind) + " onto " +
               name_of(x.kind));
    x.kind = Kind::counts;
    x.largest += 1;
    expect(x.largest <= max_count, op.name,
           "residual sums are counted in bytes, this one may exceed " + std::to_string(max_count));
    return x;
}

Value infer_attention(const Op& op, const std::vector<Value>& values) {
    Value x = values[op.inputs[0]];
    for (const std::size_t input : op.inputs) {
        const Value& y = values[input];
        expect_spikes(op, y);
        expect(y.channels == x.channels && may_be_alike(x, y), op.name, "Q, K and V must have one shape");
    }
    const std::size_t most = most_product / (x.channels / op.num_heads);
    expect(x.positions() <= most, op.name,
           "attention is exact for at most " + std::to_string(most) + " tokens, got " + std::to_string(x.positions()) +
               "; use smaller images");
    x.kind = Kind::floats;
    return x;
}

}  // namespace

const char* word_of(OpKind kind) {
    switch (kind) {
        case OpKind::convolve: return "convolve";
        case OpKind::convolve_depthwise: return "convolve_depthwise";
        case OpKind::fire: return "fire";
        case OpKind::pool: return "pool";
        case OpKind::pool_tokens: return "pool_tokens";
        case OpKind::dilate: return "dilate";
        case OpKind::dilate_heads: return "dilate_heads";
        case OpKind::add: return "add";
        case OpKind::conjunction: return "and";
        case OpKind::sum_tokens: return "sum_tokens";
        case OpKind::sum_heads: return "sum_heads";
        case OpKind::mean: return "mean";
        case OpKind::attend: return "attend";
        case OpKind::read_out: return "read_out";
    }
    return "";
}

void expect(bool holds, const std::string& name, const std::string& problem) {
    require(holds, name + ": " + problem + ".");
}

MaskForm mask_form(const Op& op, const Value& x, const Value& mask) {
    if (op.num_heads == 1 && mask.channels == x.channels && may_be_alike(x, mask)) {
        return MaskForm::same;
    }
    if (op.num_heads == 1 && mask.channels == x.channels && mask.positions() == 1) {
        return MaskForm::positions;
    }
    expect(op.num_heads > 0 && x.channels % op.num_heads == 0 && mask.channels == op.num_heads && may_be_alike(x, mask),
           op.name,
           "a mask has the shape of what it masks, one position, or one channel for each of " +
               std::to_string(op.num_heads) + " heads");
    return MaskForm::heads;
}

Value infer(const Op& op, const std::vector<Value>& values) {
    Value x = values[op.inputs[0]];
    const std::string kind = name_of(x.kind);
    switch (op.kind) {
        case OpKind::convolve:
            expect(x.kind != Kind::floats, op.name, "a product cannot read floats");
            x.kind = Kind::floats;
            x.channels = op.layer.num_outputs;
            x.height = divide_up(x.height, op.stride);
            x.width = divide_up(x.width, op.stride);
            x.largest = 1;
            return x;
        case OpKind::convolve_depthwise:
            expect_spikes(op, x);
            x.kind = Kind::floats;
            return x;
        case OpKind::fire:
            expect(x.kind != Kind::pixels, op.name, "a neuron cannot read " + kind);
            x.kind = Kind::spikes;
            x.largest = 1;
            x.is_static = false;
            return x;
        case OpKind::pool:
            expect(x.kind != Kind::pixels, op.name, "a pool cannot read " + kind);
            expect(x.height % 2 == 0 && x.width % 2 == 0, op.name,
                   "a pool halves even sizes, not " + std::to_string(x.height) + "x" + std::to_string(x.width));
            x.height /= 2;
            x.width /= 2;
            return x;
        case OpKind::pool_tokens:
        case OpKind::dilate:
        case OpKind::dilate_heads:
            expect_spikes(op, x);
            return x;
        case OpKind::add: return infer_sum(op, x, values[op.inputs[1]]);
        case OpKind::conjunction:
            expect_spikes(op, x);
            expect_spikes(op, values[op.inputs[1]]);
            mask_form(op, x, values[op.inputs[1]]);
            return x;
        case OpKind::sum_heads:
            expect_spikes(op, x);
            x.kind = Kind::floats;
            x.channels = op.num_heads;
            return x;
        case OpKind::sum_tokens:
        case OpKind::mean:
            expect(x.kind == Kind::spikes || (op.kind == OpKind::mean && x.kind != Kind::pixels), op.name,
                   "it cannot read " + kind);
            expect_tokens(op, x);
            x.kind = Kind::floats;
            x.largest = x.height = x.width = 1;
            return x;
        case OpKind::attend: return infer_attention(op, values);
        case OpKind::read_out:
            expect(x.kind != Kind::pixels, op.name, "a readout cannot read " + kind);
            expect_tokens(op, x);
            x.kind = Kind::floats;
            x.channels = op.bias.size();
            x.largest = x.height = x.width = 1;
            return x;
    }
    return x;
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
    elements *= std::max(static_cast<double>(height) * static_cast<double>(width), static_cast<double>(least_positions));
    for (const std::size_t length : {time_steps, batch_size}) {
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

}  // namespace spikformer::engine
