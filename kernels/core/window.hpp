// Windows over a map: which positions each output of a convolution sees, and which rows each row of a pool. Padding is
// half a window; outside is silence.
#pragma once

#include <algorithm>

#include "layout.hpp"

namespace spikformer::engine {

struct Window {
    std::size_t height = 1, width = 1;  // of the map; tokens are a map of one row
    std::size_t kernel = 1, stride = 1;

    std::size_t places() const { return kernel * kernel; }
    std::size_t rows() const { return divide_up(height, stride); }  // of outputs
    std::size_t columns() const { return divide_up(width, stride); }
    std::size_t outputs() const { return rows() * columns(); }
    std::size_t positions() const { return height * width; }
    bool is_plain() const { return kernel == 1 && stride == 1; }

    // The position that an output is centred in.
    std::size_t centre(std::size_t output) const {
        return output / columns() * stride * width + output % columns() * stride;
    }

    // see(place, position) for each place of an output's window that lies inside the map, row by row.
    template <typename See>
    void for_each_seen(std::size_t output, const See& see) const {
        const std::size_t reach = kernel / 2, y = output / columns() * stride, x = output % columns() * stride;
        const std::size_t top = y < reach ? reach - y : 0, bottom = std::min(kernel, height + reach - y);
        const std::size_t left = x < reach ? reach - x : 0, right = std::min(kernel, width + reach - x);
        for (std::size_t row = top; row < bottom; ++row) {
            const std::size_t begin = (y + row - reach) * width + x - reach;  // as if it began there, inside or not
            for (std::size_t column = left; column < right; ++column) {
                see(row * kernel + column, begin + column);
            }
        }
    }

    // How many outputs along one side of a map see a place of it.
    std::size_t seen_by(std::size_t place, std::size_t length) const {
        const std::size_t reach = kernel / 2;
        const std::size_t first = place < reach ? 0 : divide_up(place - reach, stride);
        const std::size_t last = std::min((place + reach) / stride + 1, divide_up(length, stride));
        return last > first ? last - first : 0;
    }
};

// The rows that a row of a pool's outputs sees; row_of(y) is where row y of the map begins.
template <typename Element, typename RowOf>
PooledRows<Element> pooled_rows(const Window& window, std::size_t row, std::size_t depth, const RowOf& row_of) {
    const std::size_t reach = (window.kernel - 1) / 2, centre = row * window.stride;
    const std::size_t begin = centre < reach ? 0 : centre - reach;
    const std::size_t end = std::min(centre + window.kernel - reach, window.height);
    PooledRows<Element> seen{{}, end - begin, centre - begin, window.width, depth, window.kernel, window.stride};
    for (std::size_t y = begin; y < end; ++y) {
        seen.rows[y - begin] = row_of(y);
    }
    return seen;
}

}  // namespace spikformer::engine
