/* Spikformer's engine behind a C interface: an engine file in, logits out. No Python, no exceptions.
 *
 *     spikformer_engine* engine = NULL;
 *     if (spikformer_load_file("digits.engine", NULL, &engine) != SPIKFORMER_OK) { puts(spikformer_last_error()); }
 *     spikformer_prepare(engine, pixels, height, width, 3, x);        bytes [H][W][C] in, floats [C][h][w] out
 *     spikformer_run(engine, x, 1, 0, h, w, logits, NULL);
 *     spikformer_free(engine);
 *
 * `spikformer compile` writes engine files; docs/embedding.md has whole programs. spikformer_probes.h has taps,
 * interventions and timings.
 *
 * Errors. Every function that can fail returns a status, and leaves its outputs alone if that is not SPIKFORMER_OK
 * (logits excepted). spikformer_last_error() says in words what was wrong. Null pointers are errors, unless said
 * otherwise. Files are not trusted: any bytes may be loaded.
 *
 * Threads. Any thread may call anything. Calls that run one engine wait for each other; engines are independent. A state
 * belongs to one call at a time. Free an engine or a state when no call uses it, and states before their engine.
 *
 * Numbers. To the last bit, results do not depend on the batch or the number of threads. In the modes `events` and
 * `dense` they are those of the Python engine in that mode.
 */
#ifndef SPIKFORMER_H
#define SPIKFORMER_H

#include <stddef.h>
#include <stdint.h>

#if defined(SPIKFORMER_BUILDS_LIBRARY) && defined(__GNUC__)
#define SPIKFORMER_API __attribute__((visibility("default")))
#else
#define SPIKFORMER_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum spikformer_status {
    SPIKFORMER_OK = 0,
    SPIKFORMER_BAD_ARGUMENT = 1, /* a pointer, size or number that does not fit */
    SPIKFORMER_NO_FILE = 2,      /* it cannot be opened or read */
    SPIKFORMER_BAD_FILE = 3,     /* it is damaged, no engine file, or of a newer version */
    SPIKFORMER_NO_MEMORY = 4,
    SPIKFORMER_NOT_FINITE = 5,   /* logits are NaN or infinite: the weights are too large for floats */
    SPIKFORMER_FAILED = 6        /* anything else, such as threads that cannot be started */
} spikformer_status;

typedef enum spikformer_mode {
    SPIKFORMER_AUTO = 0,  /* events or dense for each sample and op, by the file's density threshold, or else 0.5 */
    SPIKFORMER_EVENTS = 1,
    SPIKFORMER_DENSE = 2
} spikformer_mode;

typedef enum spikformer_input {
    SPIKFORMER_UNKNOWN = 0, /* the file does not say what its inputs are */
    SPIKFORMER_PICTURES = 1,
    SPIKFORMER_RECORDINGS = 2 /* of event cameras: frames of counts, OFF and ON, which the caller makes */
} spikformer_input;

typedef enum spikformer_resampling {
    SPIKFORMER_NEAREST = 0,
    SPIKFORMER_BILINEAR = 1,
    SPIKFORMER_BICUBIC = 2
} spikformer_resampling;

/* An engine with its weights, and the membranes of a stream between two steps. */
typedef struct spikformer_engine spikformer_engine;
typedef struct spikformer_state spikformer_state;

/* Zeros are the defaults. */
typedef struct spikformer_options {
    const char* instructions; /* "scalar", "avx2", "avx512", "amx", "neon" or "wasm"; NULL: the best of this machine */
    size_t num_threads;       /* 0 is 1 */
    int mode;                 /* a spikformer_mode */
} spikformer_options;

typedef struct spikformer_shape {
    size_t channels;
    size_t height, width; /* 0 if the network takes any multiple of patch_size */
    size_t patch_size;
    size_t time_steps; /* for which a static image is repeated */
    size_t num_classes;
} spikformer_shape;

/* How pictures become inputs; spikformer_prepare does it. */
typedef struct spikformer_preprocessing {
    spikformer_input input;
    size_t height, width, channels;
    size_t time_steps;  /* frames of a recording; 0 of pictures */
    double crop_ratio;  /* how much of the short side is seen */
    spikformer_resampling resampling;
    const float* mean; /* of brightness between 0 and 1, one for each channel; NULL: it is taken as it is */
    const float* std;  /* both are the engine's */
} spikformer_preprocessing;

/* Load an engine from a file, or from bytes, which are not needed afterwards. `options` may be NULL. */
SPIKFORMER_API spikformer_status spikformer_load_file(const char* path, const spikformer_options* options,
                                                      spikformer_engine** engine);
SPIKFORMER_API spikformer_status spikformer_load_memory(const void* bytes, size_t size,
                                                        const spikformer_options* options, spikformer_engine** engine);

/* NULL is let pass. */
SPIKFORMER_API void spikformer_free(spikformer_engine* engine);

/* What goes in and comes out. */
SPIKFORMER_API spikformer_status spikformer_get_shape(const spikformer_engine* engine, spikformer_shape* shape);
SPIKFORMER_API spikformer_status spikformer_get_preprocessing(const spikformer_engine* engine,
                                                              spikformer_preprocessing* preprocessing);

/* The name of an output, as UTF-8 that is the engine's; NULL if the file does not name it. */
SPIKFORMER_API const char* spikformer_class_name(const spikformer_engine* engine, size_t index);

/* The input [channels][h][w] of a decoded picture, bytes [height][width][channels] without gaps: gray (1 channel), RGB
 * (3), or the network's own number of channels. h and w are those of spikformer_get_preprocessing. All of its resampling
 * is done here, to the bit as Pillow does it. */
SPIKFORMER_API spikformer_status spikformer_prepare(const spikformer_engine* engine, const uint8_t* pixels,
                                                    size_t height, size_t width, size_t channels, float* x);

/* Logits [B][K]. With `time_steps` 0, x is [B][C][H][W], static images that are repeated for the network's steps;
 * otherwise it is [T][B][C][H][W]. `step_logits` gets the readout [T][B][K] of each step on its own, whose mean the
 * logits are, or is NULL. */
SPIKFORMER_API spikformer_status spikformer_run(spikformer_engine* engine, const float* x, size_t batch_size,
                                                size_t time_steps, size_t height, size_t width, float* logits,
                                                float* step_logits);

/* Streams: a state at rest, then a frame [B][C][H][W] at a time, each with the readout [B][K] of its step. A step that
 * fails leaves the state as it was. */
SPIKFORMER_API spikformer_status spikformer_new_state(spikformer_engine* engine, size_t batch_size, size_t height,
                                                      size_t width, spikformer_state** state);
SPIKFORMER_API spikformer_status spikformer_step(spikformer_engine* engine, spikformer_state* state, const float* x,
                                                 float* logits);
SPIKFORMER_API void spikformer_free_state(spikformer_state* state);

/* What was wrong in the last call of this thread that failed; UTF-8, never NULL, valid until the next call. */
SPIKFORMER_API const char* spikformer_last_error(void);

#ifdef __cplusplus
}
#endif

#endif
