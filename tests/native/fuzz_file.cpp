// Any bytes as an engine file through the C interface (`make fuzz-engine`): codes, and whatever loads runs.
//
// Bytes are a file as it is; or, if they begin with `{`, its parts with 0xFF between them, which is no UTF-8: program,
// card, density threshold, the header's tensors, and their data. Put together they have a header that is sound, so that
// changes reach what reads the parts. Files that load run on the best kernels and on the scalar ones with the same bits,
// with taps and interventions.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "bindings/c/spikformer_probes.h"

namespace {

constexpr std::size_t most_pixels = 256, most_steps = 8, most_values = 1 << 16;  // of a call: larger ones take long

void expect(bool holds) {
    if (!holds) {
        std::fprintf(stderr, "%s\n", spikformer_last_error());
        std::abort();
    }
}

std::string quoted(const std::string& text) {
    std::string quoted = "\"";
    for (const char c : text) {
        if (static_cast<unsigned char>(c) < 0x20) {
            char code[7];
            std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(c));
            quoted += code;
        } else {
            quoted += c == '"' || c == '\\' ? std::string{'\\', c} : std::string{c};
        }
    }
    return quoted + '"';
}

std::string file_of(std::string bytes) {
    if (bytes.empty() || bytes[0] != '{') {
        return bytes;
    }
    std::string parts[4];
    for (std::string& part : parts) {
        const std::size_t end = std::min(bytes.find('\xFF'), bytes.size());
        part = bytes.substr(0, end);
        bytes.erase(0, std::min(end + 1, bytes.size()));
    }
    std::string header = "{\"__metadata__\":{\"format\":\"spikformer-engine\",\"format_version\":\"3\",\"program\":" +
                         quoted(parts[0]) + ",\"card\":" + quoted(parts[1]) + ",\"density_threshold\":" +
                         quoted(parts[2]) + "}" + (parts[3].empty() ? "" : ",") + parts[3] + "}";
    std::string length(8, '\0');
    for (std::size_t i = 0; i < 8; ++i) {
        length[i] = static_cast<char>(header.size() >> 8 * i & 0xFF);
    }
    return length + header + bytes;
}

// A loaded file, and what it answers.
struct Loaded {
    spikformer_engine* engine = nullptr;
    spikformer_shape shape{};
    std::size_t height = 0, width = 0;
    std::vector<spikformer_op> ops;

    Loaded(const std::string& file, const char* instructions) {
        const std::vector<char> exact(file.begin(), file.end());  // so that a step beyond is seen
        const spikformer_options options{instructions, 1, SPIKFORMER_EVENTS};
        const spikformer_status status = spikformer_load_memory(exact.data(), exact.size(), &options, &engine);
        expect(status == SPIKFORMER_OK || status == SPIKFORMER_BAD_FILE || status == SPIKFORMER_NO_MEMORY);
        expect((status == SPIKFORMER_OK) == (engine != nullptr));
        if (engine) {
            expect(spikformer_get_shape(engine, &shape) == SPIKFORMER_OK);
            height = shape.height ? shape.height : shape.patch_size;
            width = shape.width ? shape.width : shape.patch_size;
            ops.resize(spikformer_num_ops(engine));
            expect(spikformer_get_ops(engine, height, width, ops.data()) == SPIKFORMER_OK);
        }
    }
    ~Loaded() { spikformer_free(engine); }
    Loaded(const Loaded&) = delete;

    bool is_small() const {
        std::size_t values = 0;
        for (const spikformer_op& op : ops) {
            values = std::max(values, op.channels * op.height * op.width);
        }
        return height * width <= most_pixels && shape.channels * height * width <= most_values && values <= most_values;
    }

    // Logits of the first step, spikes and membranes of all neurons, in bytes; nothing if they are infinite.
    std::vector<unsigned char> run() {
        const std::size_t steps = std::min(shape.time_steps, most_steps), size = shape.channels * height * width;
        std::vector<float> x(steps * size), logits(shape.num_classes), each(steps * shape.num_classes);
        for (std::size_t i = 0; i < x.size(); ++i) {
            x[i] = static_cast<float>(i % 7) - 2.5f;
        }
        for (const spikformer_op& op : ops) {
            expect_known(spikformer_tap(engine, op.name, 1));
        }
        const spikformer_status status =
            spikformer_run(engine, x.data(), 1, steps, height, width, logits.data(), each.data());
        expect(status == SPIKFORMER_OK || status == SPIKFORMER_NOT_FINITE || status == SPIKFORMER_NO_MEMORY);
        std::vector<unsigned char> bytes;
        if (status == SPIKFORMER_OK) {
            append(bytes, logits.data(), logits.size());
            append(bytes, each.data(), each.size());
            read_taps(bytes, steps);
        }
        expect(spikformer_clear_taps(engine) == SPIKFORMER_OK);
        return bytes;
    }

    void change() {
        for (const spikformer_op& op : ops) {
            const std::size_t channel = op.channels / 2;
            expect_known(spikformer_intervene(engine, op.name, &channel, 1, 0.25, 7));
        }
    }

    void prepare() const {
        spikformer_preprocessing seen;
        expect(spikformer_get_preprocessing(engine, &seen) == SPIKFORMER_OK);
        if (seen.input != SPIKFORMER_PICTURES || seen.height * seen.width > most_pixels ||
            seen.channels * seen.height * seen.width > most_values) {
            return;
        }
        std::vector<std::uint8_t> pixels(5 * 9 * seen.channels, 100);
        std::vector<float> x(seen.channels * seen.height * seen.width);
        expect(spikformer_prepare(engine, pixels.data(), 5, 9, seen.channels, x.data()) == SPIKFORMER_OK);
    }

private:
    // Ops without neurons are errors; and a name with a zero in it, which is no C string, may be another op's.
    static void expect_known(spikformer_status status) {
        expect(status == SPIKFORMER_OK || status == SPIKFORMER_BAD_ARGUMENT);
    }

    void read_taps(std::vector<unsigned char>& bytes, std::size_t steps) {
        for (const spikformer_op& op : ops) {
            const std::size_t size = steps * op.channels * op.height * op.width;
            std::vector<std::uint8_t> spikes(size);
            std::vector<float> membranes(size);
            if (spikformer_read_tap(engine, op.name, size, spikes.data(), membranes.data()) == SPIKFORMER_OK) {
                expect(std::all_of(spikes.begin(), spikes.end(), [](std::uint8_t spike) { return spike <= 1; }));
                append(bytes, spikes.data(), size);
                append(bytes, membranes.data(), size);
            }
        }
    }

    static void append(std::vector<unsigned char>& bytes, const std::uint8_t* values, std::size_t count) {
        bytes.insert(bytes.end(), values, values + count);
    }

    static void append(std::vector<unsigned char>& bytes, const float* values, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) {  // one NaN for all: sets differ in their bits
            const float value = std::isnan(values[i]) ? NAN : values[i];
            const auto* from = reinterpret_cast<const unsigned char*>(&value);
            bytes.insert(bytes.end(), from, from + sizeof value);
        }
    }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string file = file_of(std::string(reinterpret_cast<const char*>(data), size));
    Loaded best(file, nullptr), scalar(file, "scalar");
    expect((best.engine == nullptr) == (scalar.engine == nullptr));
    if (best.engine && best.is_small()) {
        best.prepare();
        expect(best.run() == scalar.run());
        best.change();
        scalar.change();
        expect(best.run() == scalar.run());
    }
    return 0;
}
