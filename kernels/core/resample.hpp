// A picture in another size, to the bit as Pillow 13 resizes a plane of bytes: the same filters, widened where a picture
// shrinks, in the same fixed-point arithmetic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace spikformer::engine {

enum class Resampling { nearest = 0, bilinear = 1, bicubic = 2 };

// One channel of a picture: pixels lie `step` bytes apart, rows `row_step`.
struct Plane {
    const std::uint8_t* pixels;
    std::size_t height, width;
    std::size_t step, row_step;

    std::uint8_t at(std::size_t y, std::size_t x) const { return pixels[y * row_step + x * step]; }
};

// Of a plane that is resized to `whole`, `size` pixels from `first` on, along one axis.
struct Crop {
    std::uint64_t whole, first;
    std::size_t size;
};

// [rows.size][columns.size]. Pixels outside the crop are not computed.
std::vector<std::uint8_t> resample(const Plane& plane, const Crop& rows, const Crop& columns, Resampling resampling);

}  // namespace spikformer::engine
