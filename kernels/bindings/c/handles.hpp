// What the handles of the C interface hold.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "core/engine.hpp"
#include "core/engine_file.hpp"
#include "spikformer.h"

struct spikformer_engine {
    spikformer_engine(spikformer::engine::EngineFile file, std::size_t num_threads)
        : engine(std::move(file.program), num_threads), about(std::move(file.description)) {}

    spikformer::engine::Engine engine;
    const spikformer::engine::Description about;
};

struct spikformer_state {
    const spikformer_engine* owner;
    std::size_t batch_size, height, width;
    bool is_at_rest;
    std::vector<float> voltages, next;
};
