// An engine file in memory, as spikformer/engine/file.py writes it, and under the same rules: a program, and what the
// card says of its inputs and classes.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "preprocessing.hpp"
#include "program.hpp"

namespace spikformer::engine {

// What a file says besides its ops.
struct Description {
    std::size_t time_steps = 0;         // for which a static image is repeated
    std::size_t height = 0, width = 0;  // 0: any multiple of patch_size
    std::size_t patch_size = 1;
    std::optional<double> density_threshold;
    std::vector<std::string> class_names;  // in the order of the outputs; empty if they are not known
    std::optional<Preprocessing> preprocessing;

    // Throws std::invalid_argument for a sample of another size, or one that would take too much.
    void check_sample(const Program& program, std::size_t sample_height, std::size_t sample_width,
                      std::size_t sample_steps) const;
};

struct EngineFile {
    Program program;
    Description description;
};

// Throws std::invalid_argument for anything but a sound file, or std::bad_alloc. Weights are packed for `kernels`;
// `bytes` are not needed afterwards.
EngineFile read_engine_file(const Kernels& kernels, const unsigned char* bytes, std::size_t size);

}  // namespace spikformer::engine
