// Any bytes as a program, on two sets of kernels at once: the best floats of this machine, and the scalar set.
#pragma once

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>

#include "core/engine.hpp"
#include "fuzz_bytes.hpp"

namespace spikformer::engine {

inline const Kernels& best_floats() {
    for (const char* name : {"avx512", "avx2", "neon"}) {
        if (const Kernels* kernels = choose_kernels(name)) {
            return *kernels;
        }
    }
    return *choose_kernels("scalar");
}

// The program on one set of kernels, and the engine that takes it.
struct Side {
    const Kernels& kernels;
    std::size_t threads;
    std::optional<Program> program{};
    std::optional<Engine> engine{};
};

class FuzzProgram : protected Bytes {
protected:
    FuzzProgram(const std::uint8_t* data, std::size_t size)
        : Bytes(data, size), best_{best_floats(), bytes_.ConsumeBool() ? std::size_t{1} : 2},
          scalar_{*choose_kernels("scalar"), 1}, dim_(bytes_.ConsumeIntegralInRange<std::size_t>(1, 70)) {}

    const Program& program() const { return best_.engine ? best_.engine->program() : *best_.program; }
    const Value& form(std::size_t buffer) const { return program().forms()[buffer]; }
    std::size_t last() const { return program().ops().size(); }
    std::size_t channels_of(std::size_t buffer) const { return buffer <= last() ? form(buffer).channels : 1; }

    std::string name() {
        switch (bytes_.ConsumeIntegralInRange(0, 63)) {
            case 1: return bytes_.ConsumeRandomLengthString(8);
            case 2: return "0";  // the first op's
            default: return std::to_string(last());
        }
    }

    // Pixels along a side for each of a buffer's: pools and strides on the way to it; 0 for what has one position.
    std::size_t scale_of(std::size_t buffer) const {
        std::size_t scale = 1;
        for (; buffer > 0; buffer = program().ops()[buffer - 1].inputs[0]) {
            const Op& op = program().ops()[buffer - 1];
            if (op.kind == OpKind::sum_tokens || op.kind == OpKind::mean) {
                return 0;
            }
            scale *= op.stride;
        }
        return scale;
    }

    // Mostly a buffer of one of these kinds, and of the shape of another but for its channels, if they are given.
    std::size_t any_buffer(std::initializer_list<Kind> kinds, std::size_t like = Program::none,
                           std::size_t channels = 0) {
        std::vector<std::size_t> fitting;
        for (std::size_t buffer = 0; buffer <= last(); ++buffer) {
            const bool alike = like > last() || (form(buffer).channels == (channels ? channels : form(like).channels) &&
                                                 scale_of(buffer) == scale_of(like));
            if (alike && std::find(kinds.begin(), kinds.end(), form(buffer).kind) != kinds.end()) {
                fitting.push_back(buffer);
            }
        }
        if (fitting.empty()) {
            return length(last());
        }
        const bool newest = bytes_.ConsumeBool();
        return length(newest ? fitting.back()
                             : fitting[bytes_.ConsumeIntegralInRange<std::size_t>(0, fitting.size() - 1)]);
    }

    std::size_t any_heads(std::size_t channels) {
        const std::size_t wanted = one_of({1, 2, 3, 4, 70});
        return length(channels % wanted == 0 ? wanted : 1);
    }

    // The same on both sides; both must accept it, or neither.
    bool both(const std::function<void(Side&)>& work) {
        const auto accepts = [&](Side& side) {
            try {
                work(side);
                return true;
            } catch (const std::invalid_argument&) {
            } catch (const std::bad_alloc&) {
            }
            return false;
        };
        const bool accepted = accepts(best_);
        expect(accepts(scalar_) == accepted);
        return accepted;
    }

    // An op on both sides; returns the newest buffer.
    std::size_t op(const std::function<std::size_t(Program&)>& add_op) {
        const std::size_t before = last();
        const bool accepted = both([&](Side& side) { expect(add_op(*side.program) == before + 1); });
        for (const Side* side : {&best_, &scalar_}) {  // what is rejected leaves nothing behind
            expect(side->program->ops().size() == before + accepted);
            expect(side->program->forms().size() == before + accepted + 1);
        }
        return last();
    }

    std::size_t convolve(std::size_t input, std::size_t outputs, std::size_t side, std::size_t step = 1) {
        const std::size_t kernel = length(side), stride = length(step);
        const Array weights = array({length(outputs), kernel, length(kernel), length(channels_of(input))});
        const Array bias = array({length(weights.shape[0])});
        const std::string name = this->name();
        return op([&](Program& program) {
            require(weights.shape[1] == weights.shape[2] && weights.shape[0] == bias.shape[0], "as the binding");
            return program.convolve(name, input, weights.values.data(), bias.values.data(), weights.shape[0],
                                    weights.shape[1], weights.shape[3], stride);
        });
    }

    std::size_t convolve_depthwise(std::size_t input) {
        const std::size_t kernel = length(one_of({3, 5, 7}));
        const Array weights = array({kernel, length(kernel), length(channels_of(input))});
        const Array bias = array({length(weights.shape[2])});
        const std::string name = this->name();
        return op([&](Program& program) {
            require(weights.shape[0] == weights.shape[1] && weights.shape[2] == bias.shape[0], "as the binding");
            return program.convolve_depthwise(name, input, weights.values.data(), bias.values.data(), weights.shape[0],
                                              weights.shape[2]);
        });
    }

    std::size_t fire(std::size_t input) {
        const Dynamics neuron = dynamics();
        const std::string name = this->name();
        return op([&](Program& program) { return program.fire(name, input, neuron); });
    }

    std::size_t layer(std::size_t input, std::size_t outputs, std::size_t side) {
        return fire(convolve(input, outputs, side));
    }

    // Ops of one input, with nothing else or with one number.
    std::size_t simple(std::size_t (Program::*add_op)(std::string, std::size_t), std::size_t input) {
        const std::string name = this->name();
        return op([&](Program& program) { return (program.*add_op)(name, input); });
    }

    std::size_t simple(std::size_t (Program::*add_op)(std::string, std::size_t, std::size_t), std::size_t input,
                       std::size_t number) {
        const std::string name = this->name();
        return op([&](Program& program) { return (program.*add_op)(name, input, number); });
    }

    std::size_t pool(std::size_t input) { return simple(&Program::pool, input, length(one_of({2, 3}))); }
    std::size_t pool_tokens(std::size_t input) { return simple(&Program::pool_tokens, input, length(one_of({1, 3, 7}))); }
    std::size_t sum_heads(std::size_t input) {
        return simple(&Program::sum_heads, input, any_heads(channels_of(input)));
    }

    std::size_t add(std::size_t stream, std::size_t input) {
        const std::string name = this->name();
        return op([&](Program& program) { return program.add(name, stream, input); });
    }

    std::size_t attend(std::size_t query, std::size_t key, std::size_t value) {
        const std::size_t num_heads = any_heads(channels_of(query));
        const float scale = bytes_.PickValueInArray({0.125f, 1.0f, 0.0f, -1.0f, 3e38f, NAN});
        const std::string name = this->name();
        return op([&](Program& program) { return program.attend(name, query, key, value, num_heads, scale); });
    }

    std::size_t conjunction(std::size_t input, std::size_t mask, std::size_t num_heads) {
        const bool inverted = bytes_.ConsumeBool();
        const std::string name = this->name();
        return op([&](Program& program) { return program.conjunction(name, input, mask, num_heads, inverted); });
    }

    // A mask of any form; one that sums lead to is made if there is none.
    std::size_t masked(std::size_t input) {
        switch (bytes_.ConsumeIntegralInRange(0, 2)) {
            case 0: return conjunction(input, any_buffer({Kind::spikes}, input), length(1));
            case 1: return conjunction(input, fire(simple(&Program::sum_tokens, input)), length(1));
            default: {
                const std::size_t gate = fire(sum_heads(input));
                return conjunction(input, gate, length(channels_of(gate)));
            }
        }
    }

    void read_out() {
        const std::size_t input = any_buffer({Kind::spikes, Kind::counts, Kind::floats});
        const Array weights = array({length(bytes_.ConsumeIntegralInRange<std::size_t>(1, 12)),
                                     length(channels_of(input))});
        const Array bias = array({length(weights.shape[0])});
        const std::string name = this->name();
        op([&](Program& program) {
            require(weights.shape[0] == bias.shape[0], "as the binding");
            return program.read_out(name, input, weights.values.data(), bias.values.data(), weights.shape[0],
                                    weights.shape[1]);
        });
    }

    Side best_, scalar_;
    std::size_t dim_;  // channels of most buffers, so that they can be added
};

}  // namespace spikformer::engine
