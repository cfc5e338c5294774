/* Inspecting an engine of spikformer.h: its ops, taps on their neurons, interventions, and where the time goes.
 *
 *     spikformer_tap(engine, "stem.0", 1);                            before a run or a step
 *     spikformer_run(engine, x, 1, 0, h, w, logits, NULL);
 *     spikformer_read_tap(engine, "stem.0", size, spikes, membranes);
 *
 * Errors and threads are as in spikformer.h. Taps, interventions and reports are the engine's: threads that share one see
 * each other's.
 */
#ifndef SPIKFORMER_PROBES_H
#define SPIKFORMER_PROBES_H

#include "spikformer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One op of the program: what it is called, its kind as in the file ("convolve", "fire", ...), and what it writes. */
typedef struct spikformer_op {
    const char* name; /* both are the engine's, UTF-8 */
    const char* kind;
    int has_neurons;
    size_t channels, height, width;
} spikformer_op;

/* What an op with a product did in the last run or step. Products that share their input, as Q, K and V, count as one. */
typedef struct spikformer_report {
    const char* name;          /* the engine's */
    double list_ms;            /* counting the events, and listing them where they are added */
    double product_ms;         /* adding or multiplying weights, and the neurons */
    double additions, inputs;  /* their quotient is the density of its inputs; both 0 of pixels and of attention */
    size_t dense_samples, samples;
} spikformer_report;

/* The ops in their order, `spikformer_num_ops` of them, for inputs of that size. NULL has none. */
SPIKFORMER_API size_t spikformer_num_ops(const spikformer_engine* engine);
SPIKFORMER_API spikformer_status spikformer_get_ops(const spikformer_engine* engine, size_t height, size_t width,
                                                    spikformer_op* ops);

/* Taps: from the next run or step, what the neurons of an op do is kept. `membranes` other than 0 keeps the potential H
 * before each reset, too. `spikformer_read_tap` copies what the last run or step left, [T][B][positions][channels]: spikes,
 * after interventions, as bytes 0 and 1. `size` is that of each array; either may be NULL. */
SPIKFORMER_API spikformer_status spikformer_tap(spikformer_engine* engine, const char* name, int membranes);
SPIKFORMER_API spikformer_status spikformer_read_tap(spikformer_engine* engine, const char* name, size_t size,
                                                     uint8_t* spikes, float* membranes);
SPIKFORMER_API spikformer_status spikformer_clear_taps(spikformer_engine* engine);

/* Interventions: the neurons of an op fire differently until all interventions end. Some channels are silent; then any
 * neuron gets a spike that was not there with the probability `noise`, which depends on the seed and its place in the call
 * alone. Several of one op apply in their order. */
SPIKFORMER_API spikformer_status spikformer_intervene(spikformer_engine* engine, const char* name,
                                                      const size_t* silenced, size_t num_silenced, double noise,
                                                      uint64_t seed);
SPIKFORMER_API spikformer_status spikformer_clear_interventions(spikformer_engine* engine);

/* Where the time of the last run or step went. There are never more reports than ops. */
SPIKFORMER_API spikformer_status spikformer_get_reports(spikformer_engine* engine, size_t capacity,
                                                        spikformer_report* reports, size_t* num_reports);

#ifdef __cplusplus
}
#endif

#endif
