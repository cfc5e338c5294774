// The C interface: checks what the caller hands over, then calls the core.
#include "spikformer.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "guard.hpp"
#include "handles.hpp"

using namespace spikformer::engine;
using spikformer::c::fail;
using spikformer::c::guard;

namespace {

thread_local char last_error[1024] = "";

const Kernels& kernels_of(const spikformer_options& options) {
    const Kernels* kernels = choose_kernels(options.instructions);
    require(kernels != nullptr, "This machine cannot run these instructions; NULL takes the best that it can.");
    return *kernels;
}

bool are_finite(const float* values, std::size_t size) {
    return std::all_of(values, values + size, [](float value) { return std::isfinite(value); });
}

// Checks an input, and runs it; logits [T][B][K].
spikformer_status run_steps(spikformer_engine& engine, const Input& input, const float* state, float* next_state,
                            float* logits) {
    const Program& program = engine.engine.program();
    require(input.batch_size > 0, "There must be at least one sample.");
    engine.about.check_sample(program, input.height, input.width, input.time_steps);
    program.check_size(input.height, input.width, input.time_steps, input.batch_size);
    const std::size_t frames = input.batch_size * (input.is_static ? 1 : input.time_steps);
    require(are_finite(input.values, frames * program.in_channels() * input.height * input.width),
            "The input is NaN or infinite.");
    engine.engine.run(input, state, next_state, logits);
    if (!are_finite(logits, input.time_steps * input.batch_size * program.num_classes())) {
        return fail(SPIKFORMER_NOT_FINITE, "The logits are NaN or infinite: the weights are too large for floats.");
    }
    return SPIKFORMER_OK;
}

// The mean over steps, in the order of NumPy's.
void average(const float* steps, std::size_t time_steps, std::size_t size, float* mean) {
    std::copy_n(steps, size, mean);
    for (std::size_t t = 1; t < time_steps; ++t) {
        for (std::size_t i = 0; i < size; ++i) {
            mean[i] += steps[t * size + i];
        }
    }
    for (std::size_t i = 0; i < size; ++i) {
        mean[i] /= static_cast<float>(time_steps);
    }
}

}  // namespace

spikformer_status spikformer::c::fail(spikformer_status status, const char* message) noexcept {
    std::snprintf(last_error, sizeof last_error, "%s", message);
    return status;
}

const char* spikformer_last_error(void) { return last_error; }

spikformer_status spikformer_load_memory(const void* bytes, size_t size, const spikformer_options* options,
                                         spikformer_engine** engine) {
    return guard(SPIKFORMER_BAD_FILE, [&] {
        const spikformer_options given = options ? *options : spikformer_options{};
        const spikformer_status status = guard(SPIKFORMER_BAD_ARGUMENT, [&] {
            require((bytes || size == 0) && engine, "bytes or engine is null.");
            require(given.num_threads <= most_threads, "There are too many threads.");
            require(given.mode >= SPIKFORMER_AUTO && given.mode <= SPIKFORMER_DENSE, "The mode is unknown.");
            kernels_of(given);
            return SPIKFORMER_OK;
        });
        if (status != SPIKFORMER_OK) {
            return status;
        }
        auto made = std::make_unique<spikformer_engine>(
            read_engine_file(kernels_of(given), static_cast<const unsigned char*>(bytes), size),
            std::max<std::size_t>(given.num_threads, 1));
        made->engine.mode = static_cast<Mode>(given.mode);
        if (made->about.density_threshold) {
            made->engine.density_thresholds.fill(*made->about.density_threshold);
        }
        *engine = made.release();
        return SPIKFORMER_OK;
    });
}

void spikformer_free(spikformer_engine* engine) { delete engine; }

spikformer_status spikformer_get_shape(const spikformer_engine* engine, spikformer_shape* shape) {
    if (!engine || !shape) {
        return fail(SPIKFORMER_BAD_ARGUMENT, "engine or shape is null.");
    }
    const Description& about = engine->about;
    const Program& program = engine->engine.program();
    *shape = {program.in_channels(), about.height,     about.width,
              about.patch_size,      about.time_steps, program.num_classes()};
    return SPIKFORMER_OK;
}

spikformer_status spikformer_get_preprocessing(const spikformer_engine* engine,
                                               spikformer_preprocessing* preprocessing) {
    if (!engine || !preprocessing) {
        return fail(SPIKFORMER_BAD_ARGUMENT, "engine or preprocessing is null.");
    }
    *preprocessing = spikformer_preprocessing{};
    if (const auto& seen = engine->about.preprocessing) {
        *preprocessing = {seen->events ? SPIKFORMER_RECORDINGS : SPIKFORMER_PICTURES,
                          seen->height,
                          seen->width,
                          seen->channels,
                          seen->time_steps,
                          seen->crop_ratio,
                          static_cast<spikformer_resampling>(seen->resampling),
                          seen->mean.empty() ? nullptr : seen->mean.data(),
                          seen->deviation.empty() ? nullptr : seen->deviation.data()};
    }
    return SPIKFORMER_OK;
}

const char* spikformer_class_name(const spikformer_engine* engine, size_t index) {
    return engine && index < engine->about.class_names.size() ? engine->about.class_names[index].c_str() : nullptr;
}

spikformer_status spikformer_prepare(const spikformer_engine* engine, const uint8_t* pixels, size_t height,
                                     size_t width, size_t channels, float* x) {
    return guard(SPIKFORMER_BAD_ARGUMENT, [&] {
        require(engine && pixels && x, "engine, pixels or x is null.");
        require(engine->about.preprocessing.has_value(), "The file does not say how its inputs are made.");
        engine->about.preprocessing->prepare(pixels, height, width, channels, x);
        return SPIKFORMER_OK;
    });
}

spikformer_status spikformer_run(spikformer_engine* engine, const float* x, size_t batch_size, size_t time_steps,
                                 size_t height, size_t width, float* logits, float* step_logits) {
    return guard(SPIKFORMER_BAD_ARGUMENT, [&] {
        require(engine && x && logits, "engine, x or logits is null.");
        const bool is_static = time_steps == 0;
        const Input input{x, is_static, batch_size, is_static ? engine->about.time_steps : time_steps, height, width};
        const std::size_t size = batch_size * engine->engine.program().num_classes();
        std::vector<float> own;
        if (!step_logits) {
            engine->engine.program().check_size(height, width, input.time_steps, batch_size);
            own.resize(input.time_steps * size);
        }
        float* steps = step_logits ? step_logits : own.data();
        const spikformer_status status = run_steps(*engine, input, nullptr, nullptr, steps);
        if (status != SPIKFORMER_OK) {
            return status;
        }
        average(steps, input.time_steps, size, logits);
        return are_finite(logits, size) ? SPIKFORMER_OK : fail(SPIKFORMER_NOT_FINITE, "The mean of the logits is infinite.");
    });
}

spikformer_status spikformer_new_state(spikformer_engine* engine, size_t batch_size, size_t height, size_t width,
                                       spikformer_state** state) {
    return guard(SPIKFORMER_BAD_ARGUMENT, [&] {
        require(engine && state, "engine or state is null.");
        require(batch_size > 0, "There must be at least one sample.");
        engine->about.check_sample(engine->engine.program(), height, width, 1);
        const Program& program = engine->engine.program();
        program.check_size(height, width, program.ops().size(), batch_size);  // bounds all membranes together
        const std::size_t size = batch_size * engine->engine.state_size(height, width);
        *state = new spikformer_state{engine, batch_size,      height, width, true, std::vector<float>(size),
                                      std::vector<float>(size)};
        return SPIKFORMER_OK;
    });
}

spikformer_status spikformer_step(spikformer_engine* engine, spikformer_state* state, const float* x, float* logits) {
    return guard(SPIKFORMER_BAD_ARGUMENT, [&] {
        require(engine && state && x && logits, "engine, state, x or logits is null.");
        require(state->owner == engine, "The state belongs to another engine.");
        const Input input{x, false, state->batch_size, 1, state->height, state->width};
        const float* before = state->is_at_rest ? nullptr : state->voltages.data();
        const spikformer_status status = run_steps(*engine, input, before, state->next.data(), logits);
        if (status == SPIKFORMER_OK) {
            state->voltages.swap(state->next);
            state->is_at_rest = false;
        }
        return status;
    });
}

void spikformer_free_state(spikformer_state* state) { delete state; }
