// The ops of an engine file: each is checked as spikformer/engine/ops does, and added to a program.
#pragma once

#include <map>
#include <string>

#include "json.hpp"
#include "program.hpp"
#include "tensor_file.hpp"

namespace spikformer::engine {

constexpr std::uint64_t most_count = 1000000;  // of any number of a program; what is beyond means harm
constexpr double max_constant = 1e6;           // of a neuron's constants and attention's scale
constexpr double max_sum = 1e24;  // of a product, were all its inputs 1: far below float32's largest

// Adds an op as the program's JSON describes it, and takes its arrays out of `tensors`. Throws std::invalid_argument.
void add_described_op(Program& program, const Json& described, std::map<std::string, Tensor>& tensors);

}  // namespace spikformer::engine
