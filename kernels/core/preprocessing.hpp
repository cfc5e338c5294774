// How decoded pictures become the input of a network: the arithmetic of spikformer/preprocessing.py, to the bit.
#pragma once

#include <vector>

#include "json.hpp"
#include "resample.hpp"

namespace spikformer::engine {

struct Preprocessing {
    // What a card says, checked; std::invalid_argument where it is not as spikformer/preprocessing.py writes it.
    explicit Preprocessing(const Json& described);

    bool events = false;  // frames of recordings, which the host counts itself
    std::size_t height = 0, width = 0, channels = 0;
    double crop_ratio = 1;
    Resampling resampling = Resampling::bicubic;
    std::vector<float> mean, deviation;  // one for each channel, or none at all
    std::size_t time_steps = 0;          // frames of a recording

    // Float input [channels][height][width] of a picture [height][width][channels] of bytes, gray or in colour.
    void prepare(const std::uint8_t* pixels, std::size_t rows, std::size_t columns, std::size_t depth,
                 float* input) const;

private:
    std::uint64_t covered(std::size_t side) const;  // what a side is resized to before the crop
};

}  // namespace spikformer::engine
