// Looking into an engine from C: its ops, what their neurons do, what they are made to do, and where the time goes.
#include <algorithm>
#include <mutex>

#include "guard.hpp"
#include "handles.hpp"
#include "spikformer_probes.h"

using namespace spikformer::engine;
using spikformer::c::fail;
using spikformer::c::guard;

namespace {

using Lock = std::lock_guard<Mutex>;

// Taps and interventions keep an op by its index.
template <typename Kept>
auto find_op(Kept& kept, std::size_t op) {
    return std::find_if(kept.begin(), kept.end(), [op](const auto& each) { return each.op == op; });
}

// [B][positions][T][words] to bytes, or [B][positions][T][words * 64] to floats, [T][B][positions][channels].
template <typename Element, typename Read>
void copy_tap(const Tap& tap, const Read& read, Element* to) {
    const std::size_t rows = tap.batch_size * tap.positions;
    for (std::size_t t = 0; t < tap.time_steps; ++t) {
        for (std::size_t row = 0; row < rows; ++row) {
            const std::size_t first_word = (row * tap.time_steps + t) * tap.words;
            for (std::size_t channel = 0; channel < tap.channels; ++channel) {
                *to++ = read(first_word, channel);
            }
        }
    }
}

}  // namespace

size_t spikformer_num_ops(const spikformer_engine* engine) { return engine ? engine->engine.program().ops().size() : 0; }

spikformer_status spikformer_get_ops(const spikformer_engine* engine, size_t height, size_t width, spikformer_op* ops) {
    return guard(SPIKFORMER_BAD_ARGUMENT, [&] {
        require(engine && ops, "engine or ops is null.");
        const Program& program = engine->engine.program();
        engine->about.check_sample(program, height, width, 1);
        const std::vector<Value> values = program.values(height, width, true);
        for (std::size_t index = 0; index < program.ops().size(); ++index) {
            const Op& op = program.ops()[index];
            const Value& value = values[index + 1];
            ops[index] = {op.name.c_str(),  word_of(op.kind), op.kind == OpKind::fire, value.channels,
                          value.height, value.width};
        }
        return SPIKFORMER_OK;
    });
}

spikformer_status spikformer_tap(spikformer_engine* engine, const char* name, int membranes) {
    return guard(SPIKFORMER_BAD_ARGUMENT, [&] {
        require(engine && name, "engine or name is null.");
        const Lock lock(engine->engine.running);
        std::vector<Tap>& taps = engine->engine.taps;
        const Tap made(engine->engine.find_neurons(name), membranes != 0);
        if (const auto found = find_op(taps, made.op); found != taps.end()) {
            *found = made;
        } else {
            taps.push_back(made);
        }
        return SPIKFORMER_OK;
    });
}

spikformer_status spikformer_read_tap(spikformer_engine* engine, const char* name, size_t size, uint8_t* spikes,
                                      float* membranes) {
    return guard(SPIKFORMER_BAD_ARGUMENT, [&] {
        require(engine && name, "engine or name is null.");
        const Lock lock(engine->engine.running);
        const auto found = find_op(engine->engine.taps, engine->engine.find_neurons(name));
        require(found != engine->engine.taps.end(), "These neurons are not tapped.");
        const Tap& tap = *found;
        const std::size_t held = tap.time_steps * tap.batch_size * tap.positions * tap.channels;
        require(held > 0, "Nothing has run since these neurons were tapped.");
        require(size == held, "The tap holds " + std::to_string(held) + " values, not " + std::to_string(size) + ".");
        require(!membranes || tap.wants_membranes, "These neurons are tapped without their membranes.");
        if (spikes) {
            copy_tap(tap, [&](std::size_t word, std::size_t channel) {
                return static_cast<uint8_t>(tap.spikes[word + channel / word_bits] >> channel % word_bits & 1);
            }, spikes);
        }
        if (membranes) {
            copy_tap(tap, [&](std::size_t word, std::size_t channel) { return tap.membranes[word * word_bits + channel]; },
                     membranes);
        }
        return SPIKFORMER_OK;
    });
}

spikformer_status spikformer_clear_taps(spikformer_engine* engine) {
    return guard(SPIKFORMER_BAD_ARGUMENT, [&] {
        require(engine, "engine is null.");
        const Lock lock(engine->engine.running);
        engine->engine.taps = {};
        return SPIKFORMER_OK;
    });
}

spikformer_status spikformer_intervene(spikformer_engine* engine, const char* name, const size_t* silenced,
                                       size_t num_silenced, double noise, uint64_t seed) {
    return guard(SPIKFORMER_BAD_ARGUMENT, [&] {
        require(engine && name && (silenced || num_silenced == 0), "engine, name or silenced is null.");
        require(noise >= 0 && noise <= 1, "noise must be a probability.");
        require(num_silenced > 0 || noise > 0, "An intervention needs silenced channels or noise.");
        const Lock lock(engine->engine.running);
        const std::size_t op = engine->engine.find_neurons(name);
        const Value& value = engine->engine.program().forms()[op + 1];
        Intervention intervention{op, {}, std::vector<Word>(value.words(), ~Word{0}), noise, seed};
        for (std::size_t i = 0; i < num_silenced; ++i) {
            const std::size_t channel = silenced[i];
            require(channel < value.channels, "There are channels from 0 to " + std::to_string(value.channels - 1) +
                                                  ", not " + std::to_string(channel) + ".");
            intervention.kept[channel / word_bits] &= ~(Word{1} << channel % word_bits);
        }
        engine->engine.interventions.push_back(std::move(intervention));
        return SPIKFORMER_OK;
    });
}

spikformer_status spikformer_clear_interventions(spikformer_engine* engine) {
    return guard(SPIKFORMER_BAD_ARGUMENT, [&] {
        require(engine, "engine is null.");
        const Lock lock(engine->engine.running);
        engine->engine.interventions.clear();
        return SPIKFORMER_OK;
    });
}

spikformer_status spikformer_get_reports(spikformer_engine* engine, size_t capacity, spikformer_report* reports,
                                         size_t* num_reports) {
    return guard(SPIKFORMER_BAD_ARGUMENT, [&] {
        require(engine && (reports || capacity == 0) && num_reports, "engine, reports or num_reports is null.");
        const Lock lock(engine->engine.running);
        const std::vector<OpReport>& made = engine->engine.reports;
        const std::vector<Op>& ops = engine->engine.program().ops();
        require(made.size() <= capacity, "There are " + std::to_string(made.size()) + " reports.");
        for (std::size_t i = 0; i < made.size(); ++i) {
            const auto op = std::find_if(ops.begin(), ops.end(), [&](const Op& each) { return each.name == made[i].name; });
            reports[i] = {op->name.c_str(),  made[i].list_seconds * 1e3, made[i].product_seconds * 1e3, made[i].additions,
                          made[i].inputs, made[i].dense_samples,      made[i].samples};
        }
        *num_reports = made.size();
        return SPIKFORMER_OK;
    });
}
