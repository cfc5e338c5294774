// A program: ops over numbered buffers, as spikformer/engine/program.py describes them. Knows nothing of architectures,
// files or Python.
//
// Buffer 0 is the input, and op i writes buffer i + 1. Weights are packed for one set of kernels as ops are added.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "heads.hpp"
#include "layer.hpp"

namespace spikformer::engine {

inline void require(bool holds, const std::string& message) {
    if (!holds) {
        throw std::invalid_argument(message);
    }
}

void check_dynamics(const Dynamics& dynamics);

constexpr std::size_t max_ops = 4096;   // a file that claims more is malicious

enum class Kind { pixels, spikes, counts, floats };

// What a buffer holds. Height and width are 0 as long as the size of the input is not known.
struct Value {
    Kind kind = Kind::pixels;
    std::size_t channels = 0, height = 0, width = 0;
    bool is_static = false;   // the same at all steps: kept once
    std::size_t largest = 1;  // count that can occur

    std::size_t positions() const { return height * width; }
    std::size_t words() const { return divide_up(channels, word_bits); }
    std::size_t padded() const { return words() * word_bits; }
    bool is_known() const { return height > 0; }  // its size
};

// Maps of one height and width, or of sizes that are not known yet.
inline bool may_be_alike(const Value& a, const Value& b) {
    return !a.is_known() || !b.is_known() || (a.height == b.height && a.width == b.width);
}

enum class OpKind {
    convolve,
    convolve_depthwise,
    fire,
    pool,
    pool_tokens,
    dilate,
    dilate_heads,
    add,
    conjunction,
    sum_tokens,
    sum_heads,
    mean,
    attend,
    read_out
};

// As files call it.
const char* word_of(OpKind kind);

struct Op {
    Op(OpKind kind, std::string name, std::vector<std::size_t> inputs)
        : kind(kind), name(std::move(name)), inputs(std::move(inputs)) {}

    OpKind kind;
    std::string name;
    std::vector<std::size_t> inputs;
    std::size_t kernel = 1;       // convolutions, pool: the side of a window; pool_tokens: its width
    std::size_t stride = 1;       // convolve, pool
    Layer layer;                  // convolutions: packed weights
    Dynamics dynamics{};          // fire
    std::size_t num_heads = 1;    // attend, conjunction, sum_heads, dilate_heads
    bool inverted = false;        // conjunction
    float scale = 1;              // attend
    std::vector<float> weights;   // read_out: [classes][channels]
    std::vector<float> bias;      // read_out
    HeadBounds bounds;            // dilate_heads
};

// What the op makes of its inputs; std::invalid_argument where they do not fit. Sizes are checked where they are known.
Value infer(const Op& op, const std::vector<Value>& values);
void expect(bool holds, const std::string& name, const std::string& problem);

// How a mask fits what it masks: place by place, one position for all, or one channel for each head.
enum class MaskForm { same, positions, heads };
MaskForm mask_form(const Op& op, const Value& x, const Value& mask);

// Ops that run as one: products that share their input, each with the ops after it that take its currents at once;
// or attention and its neurons.
struct FusedOps {
    std::size_t first, last;  // of the program
};

// What is fused after a product or attention, each null if there is none. Currents are pooled or added to a stream, then
// read by neurons. A sum is kept, all else goes through scratch memory.
struct Tail {
    const Op *pool = nullptr, *add = nullptr, *neuron = nullptr;
    std::size_t end = 0;       // the op after it
    std::size_t residual = 0;  // the buffer that currents are added to
};

class Program {
public:
    Program(const Kernels& kernels, std::size_t in_channels);
    Program(Program&&) = default;
    Program(const Program&) = delete;  // its weights are large

    // Each returns the number of the buffer it writes; an op that does not fit throws std::invalid_argument.
    // `weights` is [outputs][kernel][kernel][channels], `bias` [outputs].
    std::size_t convolve(std::string name, std::size_t input, const float* weights, const float* bias,
                         std::size_t outputs, std::size_t kernel, std::size_t channels, std::size_t stride);
    // `weights` is [kernel][kernel][channels], `bias` [channels].
    std::size_t convolve_depthwise(std::string name, std::size_t input, const float* weights, const float* bias,
                                   std::size_t kernel, std::size_t channels);
    std::size_t fire(std::string name, std::size_t input, const Dynamics& dynamics);
    std::size_t pool(std::string name, std::size_t input, std::size_t kernel);
    std::size_t pool_tokens(std::string name, std::size_t input, std::size_t kernel);
    std::size_t dilate(std::string name, std::size_t input);
    std::size_t dilate_heads(std::string name, std::size_t input, std::size_t num_heads);
    std::size_t add(std::string name, std::size_t stream, std::size_t input);
    std::size_t conjunction(std::string name, std::size_t input, std::size_t mask, std::size_t num_heads, bool inverted);
    std::size_t sum_tokens(std::string name, std::size_t input);
    std::size_t sum_heads(std::string name, std::size_t input, std::size_t num_heads);
    std::size_t mean(std::string name, std::size_t input);
    std::size_t attend(std::string name, std::size_t query, std::size_t key, std::size_t value, std::size_t num_heads,
                       float scale);
    std::size_t read_out(std::string name, std::size_t input, const float* weights, const float* bias,
                         std::size_t classes, std::size_t channels);

    const Kernels& kernels() const { return kernels_; }
    const std::vector<Op>& ops() const { return ops_; }
    bool is_complete() const { return !ops_.empty() && ops_.back().kind == OpKind::read_out; }
    const std::vector<Value>& forms() const { return values_; }  // what every buffer holds, without sizes
    std::size_t in_channels() const { return values_[0].channels; }
    std::size_t num_classes() const { return ops_.back().bias.size(); }

    // What every buffer holds for an input of that size; one that does not fit throws std::invalid_argument.
    std::vector<Value> values(std::size_t height, std::size_t width, bool is_static) const;

    // Throws std::bad_alloc for a call whose buffers memory cannot have: sizes after this do not overflow.
    void check_size(std::size_t height, std::size_t width, std::size_t time_steps, std::size_t batch_size) const;

    // Voltages of one sample for these values, and where those of each op begin among them; 0 for ops without neurons.
    static std::size_t state_size(const std::vector<Op>& ops, const std::vector<Value>& values,
                                  std::vector<std::size_t>* offsets = nullptr);

    std::vector<FusedOps> fuse() const;
    Tail tail(const FusedOps& fused, std::size_t product) const;

    // Buffers that lie in memory at the same time have different slots; `none` for those that never do.
    static constexpr std::size_t none = SIZE_MAX;
    struct Slots {
        std::vector<std::size_t> of_buffer;
        std::vector<Kind> kinds;
    };
    Slots assign_slots(const std::vector<FusedOps>& fused) const;

private:
    std::size_t push(Op op);
    const Value& form(const std::string& name, std::size_t buffer) const;

    const Kernels& kernels_;
    std::vector<Op> ops_;
    std::vector<Value> values_;  // without sizes
};

}  // namespace spikformer::engine
