#include "engine_file.hpp"

#include <algorithm>

#include "op_reader.hpp"
#include "tensor_file.hpp"

namespace spikformer::engine {
namespace {

constexpr double most_numbers = 1 << 28;  // in one buffer, of one sample at all its steps
constexpr std::size_t longest_name = 1000;  // characters
constexpr char file[] = "The file", program_json[] = "The program", card_json[] = "The card";

std::string text_of(const TensorFile& tensors, const std::string& key) {
    const auto found = tensors.metadata.find(key);
    return found == tensors.metadata.end() ? "" : found->second;
}

// Its format, and a version that has programs: 2 or 3.
void check_kind(const TensorFile& tensors) {
    expect(text_of(tensors, "format") == "spikformer-engine", file, "it holds no engine");
    const std::string version = text_of(tensors, "format_version");
    expect(version == "2" || version == "3", file, "its format version is not 2 or 3");
}

Json field(const std::map<std::string, Json>& fields, const char* name) {
    const auto found = fields.find(name);
    expect(found != fields.end(), program_json, std::string("it lacks ") + name);
    return found->second;
}

std::size_t count(const std::map<std::string, Json>& fields, const char* name) {
    return static_cast<std::size_t>(field(fields, name).integer(name, 1, most_count));
}

// UTF-8 characters.
std::size_t length_of(const std::string& text) {
    return static_cast<std::size_t>(
        std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

EngineFile read_program(const Kernels& kernels, TensorFile& tensors) {
    const std::map<std::string, Json> fields =
        Json::parse(text_of(tensors, "program"), program_json).members(program_json);
    EngineFile read{Program(kernels, count(fields, "in_channels")), {}};
    Description& about = read.description;
    about.time_steps = count(fields, "time_steps");
    about.patch_size = count(fields, "patch_size");
    const Json size = field(fields, "image_size");
    if (!size.is_null()) {
        const std::vector<Json> sides = size.items("image_size");
        expect(sides.size() == 2, "image_size", "it is height and width");
        about.height = static_cast<std::size_t>(sides[0].integer("image_size", 1, most_count));
        about.width = static_cast<std::size_t>(sides[1].integer("image_size", 1, most_count));
    }
    for (const Json& op : field(fields, "ops").items("ops")) {
        add_described_op(read.program, op, tensors.tensors);
    }
    expect(tensors.tensors.empty(), file, "it holds tensors that no op reads");
    expect(read.program.is_complete(), program_json, "it does not end in a readout");
    return read;
}

// Of the card, what a network without Python needs. Files of version 2 may have none.
void read_card(const std::string& text, const Program& program, Description& about) {
    if (text.empty()) {
        return;
    }
    const std::map<std::string, Json> fields = Json::parse(text, card_json).members(card_json);
    if (const auto names = fields.find("class_names"); names != fields.end()) {
        for (const Json& name : names->second.items(card_json)) {
            about.class_names.push_back(name.text(card_json));
            const std::size_t length = length_of(about.class_names.back());
            expect(length >= 1 && length <= longest_name, card_json, "the name of a class is empty or too long");
        }
        expect(about.class_names.empty() || about.class_names.size() == program.num_classes(), card_json,
               "it names another number of classes than the network has");
    }
    const auto found = fields.find("preprocessing");
    if (found == fields.end() || found->second.is_null()) {
        return;
    }
    const Preprocessing& seen = about.preprocessing.emplace(found->second);
    expect(seen.channels == program.in_channels(), card_json, "its inputs have another number of channels");
    about.check_sample(program, seen.height, seen.width, seen.events ? seen.time_steps : about.time_steps);
}

}  // namespace

void Description::check_sample(const Program& program, std::size_t sample_height, std::size_t sample_width,
                               std::size_t sample_steps) const {
    const std::string given = std::to_string(sample_height) + "x" + std::to_string(sample_width);
    if (height > 0) {
        require(sample_height == height && sample_width == width,
                "Expected images of " + std::to_string(height) + "x" + std::to_string(width) + ", got " + given + ".");
    } else {
        require(sample_height > 0 && sample_width > 0 && sample_height % patch_size == 0 &&
                    sample_width % patch_size == 0,
                "Height and width must be multiples of " + std::to_string(patch_size) + ", got " + given + ".");
    }
    require(sample_steps > 0, "There must be at least one time step.");
    const auto fits = [&](double positions, std::size_t channels) {
        require(positions * static_cast<double>(channels) * static_cast<double>(sample_steps) <= most_numbers,
                "An op has too many numbers for images of " + given + " and " + std::to_string(sample_steps) +
                    " steps.");
    };
    fits(static_cast<double>(sample_height) * static_cast<double>(sample_width), program.in_channels());
    for (const Value& value : program.values(sample_height, sample_width, true)) {
        fits(static_cast<double>(value.positions()), value.channels);
    }
}

EngineFile read_engine_file(const Kernels& kernels, const unsigned char* bytes, std::size_t size) {
    TensorFile tensors(bytes, size);
    check_kind(tensors);
    EngineFile read = read_program(kernels, tensors);
    Description& about = read.description;
    const bool is_open = about.height == 0;
    about.check_sample(read.program, is_open ? about.patch_size : about.height,
                       is_open ? about.patch_size : about.width, about.time_steps);
    const Json threshold = Json::parse(text_of(tensors, "density_threshold"), "density_threshold");
    if (!threshold.is_null()) {
        about.density_threshold = threshold.number("density_threshold");
        expect(*about.density_threshold >= 0 && *about.density_threshold <= 1, "density_threshold",
               "it is not from 0 to 1");
    }
    read_card(text_of(tensors, "card"), read.program, about);
    return read;
}

}  // namespace spikformer::engine
