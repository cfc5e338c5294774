// Any bytes as a program and its calls (`make fuzz-engine`): libFuzzer looks for bytes that crash it under sanitizers.
//
// The same program runs on the best floats of this machine and on the scalar set: wrong ops and calls must raise
// std::invalid_argument or std::bad_alloc in both, right ones must give the same bits, in memory that is bounded by
// what was given. Arrays are exactly as large as their shapes say, so that AddressSanitizer sees every step beyond.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fuzzer/FuzzedDataProvider.h>

#include "core/engine.hpp"

using namespace spikformer::engine;

namespace {

constexpr std::size_t most_given = 1 << 15;  // elements of an array
constexpr std::size_t most_rows = 1 << 7;    // pixels of all samples and steps of a call
constexpr int most_ops = 40;                 // of them chosen freely
constexpr int most_calls = 4;

const Kernels& best_floats() {
    for (const char* name : {"avx512", "avx2", "neon"}) {
        if (const Kernels* kernels = choose_kernels(name)) {
            return *kernels;
        }
    }
    return *choose_kernels("scalar");
}

struct Array {
    std::vector<std::size_t> shape;
    std::vector<float> values;
};

// The program on one set of kernels, and the engine that takes it.
struct Side {
    const Kernels& kernels;
    std::size_t threads;
    std::optional<Program> program{};
    std::optional<Engine> engine{};
};

class Fuzz {
public:
    Fuzz(const std::uint8_t* data, std::size_t size)
        : bytes_(data, size), best_{best_floats(), bytes_.ConsumeBool() ? std::size_t{1} : 2},
          scalar_{*choose_kernels("scalar"), 1}, dim_(bytes_.ConsumeIntegralInRange<std::size_t>(1, 70)) {}

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
    const Program& program() const { return best_.engine ? best_.engine->program() : *best_.program; }
    const Value& form(std::size_t buffer) const { return program().forms()[buffer]; }
    std::size_t last() const { return program().ops().size(); }

    // Mostly what is wanted; else anything small, or absurd.
    std::size_t length(std::size_t wanted) {
        switch (bytes_.ConsumeIntegralInRange(0, 63)) {
            case 1: return bytes_.ConsumeIntegralInRange<std::size_t>(0, 140);
            case 2: return bytes_.ConsumeIntegral<std::size_t>();
            default: return wanted;
        }
    }

    // What would be too large to exist has no elements: as in NumPy, a length of 0 allows any others.
    Array array(std::vector<std::size_t> shape) {
        double size = 1;
        for (const std::size_t each : shape) {
            size *= static_cast<double>(each);
        }
        if (size > most_given) {
            shape[bytes_.ConsumeIntegralInRange<std::size_t>(0, shape.size() - 1)] = 0;
            size = 0;
        }
        Array array{shape, std::vector<float>(static_cast<std::size_t>(size))};
        std::minstd_rand random(bytes_.ConsumeIntegral<std::uint8_t>());
        const float scale = bytes_.PickValueInArray({0.0f, 0.3f, 1.0f, 30.0f, 1e-39f, 1e30f, 3e38f});
        for (float& value : array.values) {
            value = scale * (static_cast<float>(random() % 2001) / 1000 - 1);
        }
        if (!array.values.empty() && bytes_.ConsumeIntegralInRange(0, 63) == 1) {
            array.values[random() % array.values.size()] =
                bytes_.PickValueInArray({NAN, INFINITY, -INFINITY, 3.4e38f, -0.0f});
        }
        return array;
    }

    Dynamics dynamics() {
        if (bytes_.ConsumeIntegralInRange(0, 15) > 0) {
            return {0.5f, 1, 1, 0};
        }
        const auto any = [&] {
            return bytes_.PickValueInArray({0.0f, 1.0f, -1.0f, 0.25f, 1e-45f, 3e38f, -3e38f, INFINITY, NAN});
        };
        return {any(), any(), any(), any()};
    }

    std::string name() {
        switch (bytes_.ConsumeIntegralInRange(0, 63)) {
            case 1: return bytes_.ConsumeRandomLengthString(8);
            case 2: return "0";  // the first op's
            default: return std::to_string(last());
        }
    }

    // Pools on the way to a buffer: its sides are halved as often.
    std::size_t num_pools(std::size_t buffer) const {
        std::size_t pools = 0;
        for (; buffer > 0; buffer = program().ops()[buffer - 1].inputs[0]) {
            pools += program().ops()[buffer - 1].kind == OpKind::pool;
        }
        return pools;
    }

    // Mostly a buffer of one of these kinds, and of the shape of another.
    std::size_t any_buffer(std::initializer_list<Kind> kinds, std::size_t like = Program::none) {
        std::vector<std::size_t> fitting;
        for (std::size_t buffer = 0; buffer <= last(); ++buffer) {
            const bool alike = like > last() || (form(buffer).channels == form(like).channels &&
                                                 num_pools(buffer) == num_pools(like));
            if (alike && std::find(kinds.begin(), kinds.end(), form(buffer).kind) != kinds.end()) {
                fitting.push_back(buffer);
            }
        }
        if (fitting.empty()) {
            return length(last());
        }
        const bool newest = bytes_.ConsumeBool();
        return length(newest ? fitting.back()
                             : fitting[bytes_.ConsumeIntegralInRange<std::size_t>(0, fitting.size() - 1)]);
    }

    // The same on both sides; both must accept it, or neither.
    bool both(const std::function<void(Side&)>& work) {
        const auto accepts = [&](Side& side) {
            try {
                work(side);
                return true;
            } catch (const std::invalid_argument&) {
            } catch (const std::bad_alloc&) {
            }
            return false;
        };
        const bool accepted = accepts(best_);
        expect(accepts(scalar_) == accepted);
        return accepted;
    }

    // An op on both sides; returns the newest buffer.
    std::size_t op(const std::function<std::size_t(Program&)>& add_op) {
        const std::size_t before = last();
        const bool accepted = both([&](Side& side) { expect(add_op(*side.program) == before + 1); });
        for (const Side* side : {&best_, &scalar_}) {  // what is rejected leaves nothing behind
            expect(side->program->ops().size() == before + accepted);
            expect(side->program->forms().size() == before + accepted + 1);
        }
        return last();
    }

    std::size_t convolve(std::size_t input, std::size_t outputs, std::size_t side) {
        const std::size_t channels = input <= last() ? form(input).channels : 1;
        const std::size_t kernel = length(side);
        const Array weights = array({length(outputs), kernel, length(kernel), length(channels)});
        const Array bias = array({length(weights.shape[0])});
        const std::string name = this->name();
        return op([&](Program& program) {
            require(weights.shape[1] == weights.shape[2] && weights.shape[0] == bias.shape[0], "as the binding");
            return program.convolve(name, input, weights.values.data(), bias.values.data(), weights.shape[0],
                                    weights.shape[1], weights.shape[3]);
        });
    }

    std::size_t fire(std::size_t input) {
        const Dynamics neuron = dynamics();
        const std::string name = this->name();
        return op([&](Program& program) { return program.fire(name, input, neuron); });
    }

    std::size_t layer(std::size_t input, std::size_t outputs, std::size_t side) {
        return fire(convolve(input, outputs, side));
    }

    std::size_t pool(std::size_t input) {
        const std::string name = this->name();
        return op([&](Program& program) { return program.pool(name, input); });
    }

    std::size_t pool_tokens(std::size_t input) {
        const std::size_t kernel = length(bytes_.PickValueInArray<std::size_t>({1, 3, 7}));
        const std::string name = this->name();
        return op([&](Program& program) { return program.pool_tokens(name, input, kernel); });
    }

    std::size_t add(std::size_t stream, std::size_t input) {
        const std::string name = this->name();
        return op([&](Program& program) { return program.add(name, stream, input); });
    }

    std::size_t attend(std::size_t query, std::size_t key, std::size_t value) {
        const std::size_t channels = query <= last() ? form(query).channels : 1;
        const std::size_t wanted = bytes_.PickValueInArray<std::size_t>({1, 2, 3, 4, 70});
        const std::size_t num_heads = length(channels % wanted == 0 ? wanted : 1);
        const float scale = bytes_.PickValueInArray({0.125f, 1.0f, 0.0f, -1.0f, 3e38f, NAN});
        const std::string name = this->name();
        return op([&](Program& program) { return program.attend(name, query, key, value, num_heads, scale); });
    }

    void read_out() {
        const std::size_t input = any_buffer({Kind::counts, Kind::floats});
        const std::size_t channels = input <= last() ? form(input).channels : 1;
        const Array weights = array({length(bytes_.ConsumeIntegralInRange<std::size_t>(1, 12)), length(channels)});
        const Array bias = array({length(weights.shape[0])});
        const std::string name = this->name();
        op([&](Program& program) {
            require(weights.shape[0] == bias.shape[0], "as the binding");
            return program.read_out(name, input, weights.values.data(), bias.values.data(), weights.shape[0],
                                    weights.shape[1]);
        });
    }

    // Spikes or currents may be pooled, and the residual stream may be of spikes and counts, or of floats.
    void spikformer() {
        std::size_t x = 0;
        for (int stages = bytes_.ConsumeIntegralInRange(1, 3); stages > 0; --stages) {
            x = convolve(x, stages == 1 ? dim_ : bytes_.ConsumeIntegralInRange<std::size_t>(1, 70), 3);
            const int pooled = bytes_.ConsumeIntegralInRange(0, 2);
            x = pooled == 1 ? fire(pool(x)) : pooled == 2 ? pool(fire(x)) : fire(x);
        }
        const bool floats = bytes_.ConsumeBool();
        x = floats ? convolve(x, dim_, 3) : add(x, layer(x, dim_, 3));
        for (int blocks = bytes_.ConsumeIntegralInRange(0, 2); blocks > 0; --blocks) {
            const std::size_t read = floats ? fire(x) : x;
            const std::size_t query = layer(read, dim_, 1), key = layer(read, dim_, 1), value = layer(read, dim_, 1);
            const std::size_t mixed = bytes_.ConsumeBool() ? attend(query, key, value) : pool_tokens(value);
            const std::size_t projected = convolve(fire(mixed), dim_, 1);
            x = add(x, floats ? projected : fire(projected));
        }
    }

    void any_op() {
        switch (bytes_.ConsumeIntegralInRange(0, 9)) {
            case 0: pool(any_buffer({Kind::spikes, Kind::floats})); break;
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
            case 6: fire(any_buffer({Kind::floats, Kind::spikes})); break;
            default: {
                const std::size_t input = any_buffer({Kind::pixels, Kind::spikes, Kind::counts});
                const bool counts = input <= last() && form(input).kind == Kind::counts;
                const std::size_t side = !counts && bytes_.ConsumeBool() ? 3 : 1;
                convolve(input, bytes_.ConsumeBool() ? dim_ : bytes_.ConsumeIntegralInRange<std::size_t>(1, 70), side);
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
        std::size_t pools = 0;
        for (std::size_t buffer = 0; buffer <= last(); ++buffer) {
            pools = std::max(pools, num_pools(buffer));
        }
        const std::size_t patch = std::size_t{1} << std::min<std::size_t>(pools, 4);
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
        const std::size_t slots = program().assign_slots(program().steps()).kinds.size();
        const std::size_t row_bytes = 4 * (slots + 2) * widest, positions = input.height * input.width;
        largest_ = std::max(largest_, (16 + best_.threads) * (positions + 32) * (input.time_steps + 16) * row_bytes);
        expect(best_.engine->buffer_bytes() <= largest_);
    }

    static bool same(const std::vector<float>& a, const std::vector<float>& b) {
        return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float x, float y) {
            return std::memcmp(&x, &y, sizeof x) == 0 || (std::isnan(x) && std::isnan(y));
        });
    }

    static void expect(bool holds) {
        if (!holds) {
            std::abort();
        }
    }

    FuzzedDataProvider bytes_;
    Side best_, scalar_;
    std::size_t dim_;                  // channels of most buffers, so that they can be added
    mutable std::size_t largest_ = 0;  // bound over all calls: buffers only grow
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Fuzz(data, size).run();
    return 0;
}
