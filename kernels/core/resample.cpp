#include "resample.hpp"

#include <algorithm>
#include <cmath>

namespace spikformer::engine {
namespace {

constexpr int precision_bits = 22;  // of a coefficient: eight of a pixel and two of overshoot are left of 32

double bilinear(double x) {
    x = std::fabs(x);
    return x < 1 ? 1 - x : 0;
}

double bicubic(double x) {
    constexpr double a = -0.5;
    x = std::fabs(x);
    if (x < 1) {
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    }
    return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

// What one output pixel reads along an axis, and how much each counts.
struct Taps {
    std::size_t first;
    std::vector<std::int32_t> weights;
};

std::vector<Taps> taps_of(std::size_t length, const Crop& crop, Resampling resampling) {
    const auto filter = resampling == Resampling::bicubic ? bicubic : bilinear;
    const double scale = static_cast<double>(length) / static_cast<double>(crop.whole);
    const double filter_scale = std::max(scale, 1.0), inverse = 1 / filter_scale;
    const double support = (resampling == Resampling::bicubic ? 2.0 : 1.0) * filter_scale;
    std::vector<Taps> all(crop.size);
    for (std::size_t i = 0; i < crop.size; ++i) {
        const double centre = (static_cast<double>(crop.first + i) + 0.5) * scale;
        const double begin = centre - support + 0.5, end = centre + support + 0.5;
        const std::size_t first = begin > 0 ? static_cast<std::size_t>(begin) : 0;
        const std::size_t last = std::min(static_cast<std::size_t>(end), length);
        std::vector<double> weights;
        double sum = 0;
        for (std::size_t x = first; x < last; ++x) {
            weights.push_back(filter((static_cast<double>(x) - centre + 0.5) * inverse));
            sum += weights.back();
        }
        all[i].first = first;
        for (double weight : weights) {
            weight = (sum != 0 ? weight / sum : weight) * (1 << precision_bits);
            all[i].weights.push_back(static_cast<std::int32_t>(weight + (weight < 0 ? -0.5 : 0.5)));
        }
    }
    return all;
}

template <typename PixelAt>
std::uint8_t weighted(const Taps& taps, const PixelAt& pixel_at) {
    std::int32_t sum = 1 << (precision_bits - 1);
    for (std::size_t i = 0; i < taps.weights.size(); ++i) {
        sum += pixel_at(taps.first + i) * taps.weights[i];
    }
    return static_cast<std::uint8_t>(std::clamp(sum >> precision_bits, 0, 255));
}

// Pillow adds up the pixel's place from column to column, and so rounds.
std::vector<std::size_t> nearest_places(std::size_t length, const Crop& crop) {
    const double scale = static_cast<double>(length) / static_cast<double>(crop.whole);
    std::vector<std::size_t> places;
    double place = scale * 0.5;
    for (std::uint64_t i = 0; i < crop.first + crop.size; ++i, place += scale) {
        if (i >= crop.first) {
            places.push_back(std::min(static_cast<std::size_t>(place), length - 1));
        }
    }
    return places;
}

// Along rows, then along columns. An axis that keeps its length has one tap of weight 1 for each pixel: the same bytes as
// without a pass.
std::vector<std::uint8_t> filter_rows_first(const Plane& plane, const Crop& rows, const Crop& columns,
                                            Resampling resampling) {
    const std::vector<Taps> across = taps_of(plane.width, columns, resampling);
    const std::vector<Taps> down = taps_of(plane.height, rows, resampling);
    std::size_t top = plane.height, bottom = 0;
    for (const Taps& taps : down) {
        top = std::min(top, taps.first);
        bottom = std::max(bottom, taps.first + taps.weights.size());
    }
    std::vector<std::uint8_t> narrowed;  // [top ... bottom][columns.size]
    narrowed.reserve((std::max(top, bottom) - top) * columns.size);
    for (std::size_t y = top; y < bottom; ++y) {
        for (const Taps& taps : across) {
            narrowed.push_back(weighted(taps, [&](std::size_t x) { return plane.at(y, x); }));
        }
    }
    std::vector<std::uint8_t> resized;
    resized.reserve(rows.size * columns.size);
    for (const Taps& taps : down) {
        for (std::size_t x = 0; x < columns.size; ++x) {
            resized.push_back(
                weighted(taps, [&](std::size_t y) { return narrowed[(y - top) * columns.size + x]; }));
        }
    }
    return resized;
}

// Pillow's choice since version 13; between the passes bytes are rounded and clipped, so the order matters.
bool shrinks_columns_first(const Plane& plane, const Crop& rows, const Crop& columns) {
    const auto lost = [](std::size_t length, const Crop& crop) {
        return static_cast<std::int64_t>(length) - static_cast<std::int64_t>(crop.whole);
    };
    const std::int64_t lost_rows = lost(plane.height, rows);
    return lost_rows > 0 && lost_rows > 2 * lost(plane.width, columns);
}

}  // namespace

std::vector<std::uint8_t> resample(const Plane& plane, const Crop& rows, const Crop& columns, Resampling resampling) {
    std::vector<std::uint8_t> resized;
    resized.reserve(rows.size * columns.size);
    if (resampling == Resampling::nearest) {
        const std::vector<std::size_t> xs = nearest_places(plane.width, columns);
        for (const std::size_t y : nearest_places(plane.height, rows)) {
            for (const std::size_t x : xs) {
                resized.push_back(plane.at(y, x));
            }
        }
        return resized;
    }
    if (!shrinks_columns_first(plane, rows, columns)) {
        return filter_rows_first(plane, rows, columns, resampling);
    }
    const Plane turned{plane.pixels, plane.width, plane.height, plane.row_step, plane.step};
    const std::vector<std::uint8_t> filtered = filter_rows_first(turned, columns, rows, resampling);
    for (std::size_t y = 0; y < rows.size; ++y) {
        for (std::size_t x = 0; x < columns.size; ++x) {
            resized.push_back(filtered[x * rows.size + y]);
        }
    }
    return resized;
}

}  // namespace spikformer::engine
