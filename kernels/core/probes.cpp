// What is done to an op's spikes after it has fired, and what is kept of them.
#include <algorithm>

#include "executor.hpp"

namespace spikformer::engine {
namespace {

// A well-mixed number of a place: noise must not depend on who computes it, or in which order.
std::uint64_t hash(std::uint64_t x) {
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

}  // namespace

void Executor::finish(std::size_t index) {
    for (const Intervention& intervention : engine.interventions) {
        if (intervention.op == index) {
            intervene(intervention);
        }
    }
    for (Tap& tap : engine.taps) {
        if (tap.op == index) {
            const std::size_t size = tap.positions * time_steps * tap.words;
            std::copy_n(spikes(index + 1, 0, count * size), count * size, tap.spikes.data() + first * size);
        }
    }
}

void Executor::intervene(const Intervention& intervention) {
    const std::size_t buffer = intervention.op + 1;
    const Value& value = values[buffer];
    const std::size_t words = value.words(), sample_words = value.positions() * time_steps * words;
    const auto bound = static_cast<std::uint64_t>(intervention.noise * 0x1p53);
    Word* fired = spikes(buffer, 0, count * sample_words);
    if (!intervention.replacement.empty()) {
        std::copy_n(intervention.replacement.data() + first * sample_words, count * sample_words, fired);
    }
    engine.threads_.for_each(count, [&](std::size_t sample, std::size_t) {
        for (std::size_t w = 0; w < sample_words; ++w) {
            Word& word = fired[sample * sample_words + w];
            word &= intervention.kept[w % words];
            const std::size_t channels = std::min(word_bits, value.channels - w % words * word_bits);
            for (std::size_t bit = 0; bound > 0 && bit < channels; ++bit) {
                const std::uint64_t place = ((first + sample) * sample_words + w) * word_bits + bit;
                word |= Word{hash(hash(intervention.seed) ^ place) >> 11 < bound} << bit;
            }
        }
    });
}

OpReport& Executor::report(const std::string& name) {
    if (next_report == engine.reports.size()) {
        engine.reports.emplace_back();
        engine.reports.back().name = name;
    }
    return engine.reports[next_report++];
}

}  // namespace spikformer::engine
