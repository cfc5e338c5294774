// Safetensors in memory: what spikformer/tensorfile.py writes, under the same rules. Nothing of the bytes is trusted:
// sizes are bounded by them before any memory is taken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace spikformer::engine {

// Where a tensor lies, at any alignment.
struct Tensor {
    std::string dtype;
    std::vector<std::size_t> shape;
    const unsigned char* bytes;
    std::size_t size;  // of them

    std::vector<float> floats() const;  // of dtype F32
};

struct TensorFile {
    // Throws std::invalid_argument unless tensors fill the file without gaps. Reads from `bytes` as long as it lives.
    TensorFile(const unsigned char* bytes, std::size_t size);

    std::map<std::string, std::string> metadata;
    std::map<std::string, Tensor> tensors;
};

}  // namespace spikformer::engine
