// Any bytes as a program and its calls (`make fuzz-engine`): libFuzzer looks for bytes that crash it under sanitizers.
//
// The same program runs on the best floats of this machine and on the scalar set: wrong ops and calls must raise
// std::invalid_argument or std::bad_alloc in both, right ones must give the same bits, in memory that is bounded by
// what was given. Arrays are exactly as large as their shapes say, so that AddressSanitizer sees every step beyond.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "fuzz_program.hpp"

using namespace spikformer::engine;

namespace {

constexpr std::size_t most_rows = 1 << 7;  // pixels of all samples and steps of a call
constexpr int most_ops = 40;               // of them chosen freely
constexpr int most_calls = 4;

class Fuzz : FuzzProgram {
public:
    Fuzz(const std::uint8_t* data, std::size_t size) : FuzzProgram(data, size) {}

    void run() {
        const std::size_t in_channels = length(bytes_.ConsumeIntegralInRange<std::size_t>(1, 4));
        if (!both([&](Side& side) { side.program.emplace(side.kernels, in_channels); })) {
            return;
        }
        if (bytes_.ConsumeIntegralInRange(0, 3) > 0) {  // an architecture, which chance takes long to find
            spikformer();
        }
        for (int ops = bytes_.ConsumeIntegralInRange(0, most_ops); ops > 0 && bytes_.remaining_bytes() > 0; --ops) {
            any_op();
        }
        read_out();
        if (!best_.program->is_complete()) {
            return;
        }
        const std::size_t ops = program().ops().size();
        any_op();
        expect(program().ops().size() == ops);  // a complete program takes no more
        for (Side* side : {&best_, &scalar_}) {
            side->engine.emplace(std::move(*side->program), side->threads);
        }
        for (int calls = 0; calls < most_calls && (calls == 0 || bytes_.remaining_bytes() > 0); ++calls) {
            call();
        }
    }

private:
    // Spikes or currents may be pooled, and the residual stream may be of spikes and counts, or of floats; attention may
    // be masks, and the MLP have a depthwise convolution.
    void spikformer() {
        std::size_t x = 0;
        for (int stages = bytes_.ConsumeIntegralInRange(1, 3); stages > 0; --stages) {
            x = convolve(x, stages == 1 ? dim_ : bytes_.ConsumeIntegralInRange<std::size_t>(1, 70), one_of({3, 3, 7}),
                         one_of({1, 1, 2}));
            const int pooled = bytes_.ConsumeIntegralInRange(0, 2);
            x = pooled == 1 ? fire(pool(x)) : pooled == 2 ? pool(fire(x)) : fire(x);
        }
        const bool floats = bytes_.ConsumeBool();
        x = floats ? convolve(x, dim_, 3) : add(x, layer(x, dim_, 3));
        for (int blocks = bytes_.ConsumeIntegralInRange(0, 2); blocks > 0; --blocks) {
            const std::size_t read = floats ? fire(x) : x;
            const std::size_t query = layer(read, dim_, 1), key = layer(read, dim_, 1), value = layer(read, dim_, 1);
            std::size_t mixed = 0;
            switch (bytes_.ConsumeIntegralInRange(0, 3)) {
                case 0: mixed = fire(attend(query, key, value)); break;
                case 1: mixed = fire(pool_tokens(value)); break;
                case 2: mixed = masked(value); break;
                default: mixed = fire(convolve_depthwise(value)); break;
            }
            const std::size_t projected = convolve(mixed, dim_, 1);
            x = add(x, floats ? projected : fire(projected));
        }
    }

    void any_op() {
        switch (bytes_.ConsumeIntegralInRange(0, 15)) {
            case 0: pool(any_buffer({Kind::spikes, Kind::counts, Kind::floats})); break;
            case 1: pool_tokens(any_buffer({Kind::spikes})); break;
            case 2:
            case 3: {
                const std::size_t stream = any_buffer({Kind::spikes, Kind::counts, Kind::floats});
                const bool floats = stream <= last() && form(stream).kind == Kind::floats;
                add(stream, any_buffer({floats ? Kind::floats : Kind::spikes}, stream));
                break;
            }
            case 4: {
                const std::size_t query = any_buffer({Kind::spikes});
                attend(query, any_buffer({Kind::spikes}, query), any_buffer({Kind::spikes}, query));
                break;
            }
            case 5:
            case 6: fire(any_buffer({Kind::floats, Kind::spikes, Kind::counts})); break;
            case 7: convolve_depthwise(any_buffer({Kind::spikes})); break;
            case 8: simple(&Program::dilate, any_buffer({Kind::spikes})); break;
            case 9: {
                const std::size_t input = any_buffer({Kind::spikes});
                simple(&Program::dilate_heads, input, any_heads(channels_of(input)));
                break;
            }
            case 10: masked(any_buffer({Kind::spikes})); break;
            case 11: simple(&Program::mean, any_buffer({Kind::spikes, Kind::counts, Kind::floats})); break;
            case 12: sum_heads(any_buffer({Kind::spikes})); break;
            default: {
                const std::size_t input = any_buffer({Kind::pixels, Kind::spikes, Kind::counts});
                const bool usual = bytes_.ConsumeBool();
                const std::size_t outputs = usual ? dim_ : bytes_.ConsumeIntegralInRange<std::size_t>(1, 70);
                convolve(input, outputs, one_of({1, 1, 3, 3, 5, 7}), one_of({1, 1, 2, 4}));
                break;
            }
        }
    }

    // Changes that the binding would let through.
    std::vector<Intervention> interventions(const Input& input) {
        const std::vector<Value> values = program().values(input.height, input.width, input.is_static);
        std::vector<Intervention> drawn;
        for (std::size_t index = 0; index < program().ops().size() && drawn.size() < 3; ++index) {
            if (program().ops()[index].kind == OpKind::fire && bytes_.ConsumeIntegralInRange(0, 15) == 1) {
                std::vector<Word> kept(form(index + 1).words());
                std::generate(kept.begin(), kept.end(), [&] { return bytes_.ConsumeIntegral<Word>(); });
                const double noise = bytes_.PickValueInArray({0.0, 1e-3, 0.5, 1.0});
                std::vector<Word> other;
                if (bytes_.ConsumeBool()) {
                    const Value& value = values[index + 1];
                    other.resize(input.batch_size * value.positions() * input.time_steps * value.words());
                    const Word some = bytes_.ConsumeIntegral<Word>();
                    const std::size_t left = value.channels % word_bits;
                    for (std::size_t w = 0; w < other.size(); ++w) {
                        const bool last = (w + 1) % value.words() == 0;
                        other[w] = some & (last && left ? (Word{1} << left) - 1 : ~Word{0});
                    }
                }
                drawn.push_back({index, other, kept, noise, bytes_.ConsumeIntegral<std::uint64_t>()});
            }
        }
        return drawn;
    }

    std::vector<Tap> taps() {
        std::vector<Tap> drawn;
        for (std::size_t index = 0; index < program().ops().size(); ++index) {
            if (program().ops()[index].kind == OpKind::fire && bytes_.ConsumeBool()) {
                drawn.push_back(Tap(index, bytes_.ConsumeBool()));
            }
        }
        return drawn;
    }

    void set_options(const Input& input) {
        const Mode mode = bytes_.PickValueInArray({Mode::automatic, Mode::events, Mode::dense});
        std::array<double, 3> thresholds;
        for (double& threshold : thresholds) {
            threshold = bytes_.PickValueInArray({0.0, 0.1, 0.5, 1.0, -1.0, static_cast<double>(NAN)});
        }
        const std::vector<Tap> tapped = bytes_.ConsumeBool() ? taps() : std::vector<Tap>();
        const std::vector<Intervention> changes = interventions(input);
        for (Side* side : {&best_, &scalar_}) {
            side->engine->mode = mode;
            side->engine->density_thresholds = thresholds;
            side->engine->taps = tapped;
            side->engine->interventions = changes;
        }
    }

    void call() {
        std::size_t patch = 1;
        for (std::size_t buffer = 0; buffer <= last(); ++buffer) {
            patch = std::max(patch, std::min<std::size_t>(scale_of(buffer), 16));
        }
        const bool is_static = bytes_.ConsumeBool();
        const std::size_t steps = length(bytes_.ConsumeIntegralInRange<std::size_t>(1, 9));
        const std::size_t batch = length(bytes_.ConsumeIntegralInRange<std::size_t>(1, 3));
        const std::size_t height = length(patch * bytes_.ConsumeIntegralInRange<std::size_t>(1, 3));
        const std::size_t width = length(patch * bytes_.ConsumeIntegralInRange<std::size_t>(1, 3));
        const std::size_t channels = length(program().in_channels());
        const Array x = array(is_static ? std::vector<std::size_t>{batch, channels, height, width}
                                        : std::vector<std::size_t>{steps, batch, channels, height, width});
        const std::size_t* shape = x.shape.data() + (is_static ? 0 : 1);
        const Input input{x.values.data(), is_static, shape[0], is_static ? steps : x.shape[0], shape[2], shape[3]};
        std::size_t voltages = 0;
        if (!both([&](Side& side) {  // as the binding does
                require(shape[1] == side.engine->program().in_channels() && input.time_steps > 0, "as the binding");
                side.engine->program().check_size(input.height, input.width, input.time_steps, input.batch_size);
                voltages = input.batch_size * side.engine->state_size(input.height, input.width);
            })) {
            return;
        }
        const std::size_t rows = input.batch_size * input.height * input.width;
        if (rows > 0 && input.time_steps > most_rows / rows) {
            return;  // the same again, many times
        }
        set_options(input);
        const std::size_t num_logits =
            input.batch_size == 0 ? 0 : input.time_steps * input.batch_size * program().num_classes();
        const bool starts = bytes_.ConsumeBool(), continues = bytes_.ConsumeBool();
        const std::vector<float> before(starts ? voltages : 0,
                                        bytes_.PickValueInArray({0.0f, 0.5f, -3e38f, 3e38f, NAN}));
        std::vector<float> logits[2], after[2];
        std::size_t index = 0;
        const bool ran = both([&](Side& side) {
            logits[index].assign(num_logits, 0.0f);
            after[index].assign(continues ? voltages : 0, 0.0f);
            side.engine->run(input, starts ? before.data() : nullptr, continues ? after[index].data() : nullptr,
                             logits[index].data());
            ++index;
        });
        expect(ran);  // what was checked does run
        expect(same(logits[0], logits[1]));
        expect(same(after[0], after[1]));
        const std::vector<Tap>&best = best_.engine->taps, &scalar = scalar_.engine->taps;
        expect(std::equal(best.begin(), best.end(), scalar.begin(), scalar.end(), [](const Tap& a, const Tap& b) {
            return a.op == b.op && a.spikes == b.spikes && same(a.membranes, b.membranes);
        }));
        check_memory(input);
    }

    // With P pixels, T steps and W values in the widest row: each of the 16 samples of a chunk has at most 4 (P + 32) T
    // W bytes in every slot and 8 (P + 32) (T + 16) W in its lists of events; so has the scratch of each thread.
    void check_memory(const Input& input) const {
        std::size_t widest = 0;
        for (std::size_t index = 0; index < program().ops().size(); ++index) {
            widest = std::max({widest, form(index + 1).padded(), program().ops()[index].layer.num_inputs});
        }
        const std::size_t slots = program().assign_slots(program().fuse()).kinds.size();
        const std::size_t row_bytes = 4 * (slots + 2) * widest, positions = input.height * input.width;
        largest_ = std::max(largest_, (16 + best_.threads) * (positions + 32) * (input.time_steps + 16) * row_bytes);
        expect(best_.engine->buffer_bytes() <= largest_);
    }

    static bool same(const std::vector<float>& a, const std::vector<float>& b) {
        return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float x, float y) {
            return std::memcmp(&x, &y, sizeof x) == 0 || (std::isnan(x) && std::isnan(y));
        });
    }

    mutable std::size_t largest_ = 0;  // bound over all calls: buffers only grow
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Fuzz(data, size).run();
    return 0;
}
