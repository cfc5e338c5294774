#include "preprocessing.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>
#include <utility>

#include "program.hpp"

namespace spikformer::engine {
namespace {

constexpr std::uint64_t largest_sample = 1u << 28;  // numbers
constexpr double largest_cover = 1 << 24;  // pixels that a picture is resized to before its crop
constexpr std::uint64_t longest = 32;      // times the crop's own shape; no photograph is that long
constexpr std::size_t longest_side = 1u << 24;  // of a picture: exact in Pillow's floats
constexpr char preprocessing[] = "The card's preprocessing";

std::pair<std::size_t, std::size_t> size_of(const Json& size, std::uint64_t most) {
    const std::vector<Json> sides = size.items(preprocessing);
    expect(sides.size() == 2, preprocessing, "a size is height and width");
    return {static_cast<std::size_t>(sides[0].integer(preprocessing, 1, most)),
            static_cast<std::size_t>(sides[1].integer(preprocessing, 1, most))};
}

double number_of(const Json& value, double least, double most) {
    const double number = value.number(preprocessing);
    expect(number >= least && number <= most, preprocessing, "it holds a number that is out of range");
    return number;
}

template <std::size_t count>
std::size_t choice_of(const Json& value, const char* const (&words)[count]) {
    const std::string word = value.text(preprocessing);
    const auto found = std::find(words, words + count, word);
    expect(found != words + count, preprocessing, "it holds an unknown word");
    return static_cast<std::size_t>(found - words);
}

std::vector<float> by_channel(const Json& values, std::size_t channels, double least) {
    const std::vector<Json> items = values.items(preprocessing);
    expect(items.size() == 1 || items.size() == channels, preprocessing, "it needs a number for each channel");
    std::vector<float> numbers;
    for (std::size_t c = 0; c < channels; ++c) {
        numbers.push_back(static_cast<float>(number_of(items[items.size() == 1 ? 0 : c], least, 1e6)));
    }
    return numbers;
}

// Half of it, as Python's round does: of two integers at the same distance the even one.
std::uint64_t round_half(std::uint64_t number) { return number / 2 + (number % 4 == 3); }

// The middle of a ribbon, whose ends would be cut away again: how much goes on either side.
std::size_t cut_off(std::size_t length, std::uint64_t other, std::uint64_t cover, std::uint64_t other_cover) {
    const std::uint64_t most = longest * (other * cover / other_cover + 1);
    return length > most ? (length - static_cast<std::size_t>(most)) / 2 : 0;
}

}  // namespace

Preprocessing::Preprocessing(const Json& described) {
    std::map<std::string, Json> fields = described.members(preprocessing);
    const auto take = [&](const char* name) -> std::optional<Json> {  // none if it is not there, or null
        const auto field = fields.find(name);
        if (field == fields.end()) {
            return std::nullopt;
        }
        const Json value = field->second;
        fields.erase(field);
        return value.is_null() ? std::nullopt : std::make_optional(value);
    };
    const auto need = [&](const char* name) {
        const std::optional<Json> value = take(name);
        expect(value.has_value(), preprocessing, std::string("it lacks ") + name);
        return *value;
    };
    events = choice_of(need("kind"), {"image", "events"}) == 1;
    std::tie(height, width) = size_of(need("size"), largest_sample);
    channels = static_cast<std::size_t>(need("channels").integer(preprocessing, 1, 1024));
    if (events) {
        time_steps = static_cast<std::size_t>(need("time_steps").integer(preprocessing, 1, 1000000));
        expect(channels == 2, preprocessing, "events have 2 channels");
        for (const char* name : {"sensor", "slicing", "fit", "swap_axes"}) {  // for the host, which counts events
            take(name);
        }
    } else {
        if (const auto ratio = take("crop_ratio")) {
            crop_ratio = number_of(*ratio, 1.0 / 16, 1);
        }
        if (const auto method = take("resampling")) {
            resampling = static_cast<Resampling>(choice_of(*method, {"nearest", "bilinear", "bicubic"}));
        }
        expect(static_cast<double>(covered(height)) * static_cast<double>(covered(width)) <= largest_cover,
               preprocessing, "its size is too large");
        const auto means = take("mean"), deviations = take("std");
        expect(means.has_value() == deviations.has_value(), preprocessing, "mean and std belong together");
        if (means) {
            mean = by_channel(*means, channels, -1e6);
            deviation = by_channel(*deviations, channels, 1e-6);
        }
    }
    expect(fields.empty(), preprocessing, "it has a field that its kind does not know");
    double numbers = static_cast<double>(channels);
    for (const std::size_t length : {std::max<std::size_t>(time_steps, 1), height, width}) {
        numbers *= static_cast<double>(length);
    }
    expect(numbers <= static_cast<double>(largest_sample), preprocessing, "its samples are too large");
}

std::uint64_t Preprocessing::covered(std::size_t side) const {
    return static_cast<std::uint64_t>(std::floor(static_cast<double>(side) / crop_ratio));
}

void Preprocessing::prepare(const std::uint8_t* pixels, std::size_t rows, std::size_t columns, std::size_t depth,
                            float* input) const {
    require(!events, "The network reads recordings of events, not pictures.");
    require(rows > 0 && columns > 0 && rows <= longest_side && columns <= longest_side,
            "A picture has from 1 to " + std::to_string(longest_side) + " rows and columns.");
    require(depth == channels || (depth == 3 && channels == 1) || (depth == 1 && channels == 3),
            "Expected a picture of " + std::to_string(channels) + " channels, got " + std::to_string(depth) + ".");
    const std::uint64_t cover_rows = covered(height), cover_columns = covered(width);
    const bool as_it_is = crop_ratio == 1 && rows == height && columns == width;
    const std::size_t above = as_it_is ? 0 : cut_off(rows, columns, cover_rows, cover_columns);
    const std::size_t beside = as_it_is ? 0 : cut_off(columns, rows, cover_columns, cover_rows);
    const std::size_t seen_rows = rows - 2 * above, seen_columns = columns - 2 * beside;
    // The side that needs the larger factor is met exactly, the other one overhangs.
    Crop down{cover_rows, 0, height}, across{cover_columns, 0, width};
    if (cover_rows * seen_columns >= cover_columns * seen_rows) {
        across.whole = cover_rows * seen_columns / seen_rows;
    } else {
        down.whole = cover_columns * seen_rows / seen_columns;
    }
    down.first = round_half(down.whole - height);
    across.first = round_half(across.whole - width);
    const std::uint8_t* middle = pixels + (above * columns + beside) * depth;
    const std::size_t positions = height * width;
    std::vector<std::vector<std::uint8_t>> planes;
    for (std::size_t c = 0; c < depth; ++c) {
        const Plane plane{middle + c, seen_rows, seen_columns, depth, columns * depth};
        planes.push_back(resample(plane, down, across, as_it_is ? Resampling::nearest : resampling));
    }
    for (std::size_t c = 0; c < channels; ++c) {
        for (std::size_t i = 0; i < positions; ++i) {
            unsigned value = planes[depth == channels ? c : 0][i];
            if (depth == 3 && channels == 1) {
                value = (299u * planes[0][i] + 587u * planes[1][i] + 114u * planes[2][i] + 500u) / 1000u;
            }
            const float brightness = static_cast<float>(value) / 255.0f;
            input[c * positions + i] = mean.empty() ? brightness : (brightness - mean[c]) / deviation[c];
        }
    }
}

}  // namespace spikformer::engine
