/* Into an engine through the C interface: probe_engine ENGINE INPUT OUTPUT MODE BATCH STEPS HEIGHT WIDTH.
 *
 * OUTPUT gets spikes [T][B][positions][channels] as bytes, then membranes as floats, of one op with neurons after another;
 * spikes and logits while two of them are intervened with; and the logits after that. Prints ops, then reports.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spikformer_probes.h"

static void check(int holds, const char* what) {
    if (!holds) {
        printf("%s: %s\n", what, spikformer_last_error());
        exit(1);
    }
}

static float* read_input(const char* path, size_t count) {
    float* x = malloc(count * sizeof *x);
    FILE* file = fopen(path, "rb");
    check(x && file && fread(x, sizeof *x, count, file) == count && fgetc(file) == EOF && !fclose(file), path);
    return x;
}

static FILE* output;
static spikformer_engine* engine;
static spikformer_op* ops;
static size_t num_ops, rows; /* steps times samples */

static void run(const float* x, char** sizes, float* logits, size_t readout, int writes) {
    const size_t batch = strtoul(sizes[0], NULL, 10), steps = strtoul(sizes[1], NULL, 10);
    const size_t height = strtoul(sizes[2], NULL, 10), width = strtoul(sizes[3], NULL, 10);
    check(!spikformer_run(engine, x, batch, steps, height, width, logits, NULL), "run");
    check(!writes || fwrite(logits, sizeof *logits, readout, output) == readout, "write");
}

/* Of all neurons, which are tapped with or without their membranes. */
static void write_taps(int with_membranes) {
    for (size_t i = 0; i < num_ops; ++i) {
        const size_t size = rows * ops[i].height * ops[i].width * ops[i].channels;
        uint8_t* spikes = malloc(size);
        float* membranes = with_membranes ? malloc(size * sizeof *membranes) : NULL;
        if (ops[i].has_neurons) {
            check(spikformer_read_tap(engine, ops[i].name, size + 1, spikes, NULL) == SPIKFORMER_BAD_ARGUMENT, "size");
            check(!spikformer_read_tap(engine, ops[i].name, size, spikes, membranes), ops[i].name);
            check(fwrite(spikes, 1, size, output) == size, "write");
            check(!membranes || fwrite(membranes, sizeof *membranes, size, output) == size, "write");
        }
        free(spikes);
        free(membranes);
    }
}

static void tap_all(int membranes) {
    for (size_t i = 0; i < num_ops; ++i) {
        const int expected = ops[i].has_neurons ? SPIKFORMER_OK : SPIKFORMER_BAD_ARGUMENT;
        check((int)spikformer_tap(engine, ops[i].name, membranes) == expected, ops[i].name);
    }
}

/* Of the first neurons, the first and the last channel are silent; the last neurons are noisy. */
static void intervene(void) {
    size_t first = 0, last = num_ops - 1;
    while (!ops[first].has_neurons) {
        ++first;
    }
    while (!ops[last].has_neurons) {
        --last;
    }
    const size_t silenced[2] = {0, ops[first].channels - 1}, absent = ops[first].channels;
    check(!spikformer_intervene(engine, ops[first].name, silenced, 2, 0, 0), "silence");
    check(!spikformer_intervene(engine, ops[last].name, NULL, 0, 0.25, 9007199254740991u), "noise");
    check(spikformer_intervene(engine, ops[first].name, &absent, 1, 0, 0) == SPIKFORMER_BAD_ARGUMENT, "channel");
    check(spikformer_intervene(engine, ops[first].name, NULL, 0, 1.5, 0) == SPIKFORMER_BAD_ARGUMENT, "probability");
    check(spikformer_intervene(engine, ops[first].name, NULL, 0, 0, 0) == SPIKFORMER_BAD_ARGUMENT, "nothing");
}

static void print_reports(void) {
    spikformer_report* reports = malloc(num_ops * sizeof *reports);
    size_t count = 0;
    check(spikformer_get_reports(engine, 0, NULL, &count) == SPIKFORMER_BAD_ARGUMENT && count == 0, "capacity");
    check(!spikformer_get_reports(engine, num_ops, reports, &count), "reports");
    for (size_t i = 0; i < count; ++i) {
        const spikformer_report* report = &reports[i];
        check(report->list_ms >= 0 && report->product_ms > 0, "times");
        printf("%s %.17g %.17g\n", report->name, report->inputs > 0 ? report->additions / report->inputs : -1,
               (double)report->dense_samples / (double)report->samples);
    }
    free(reports);
}

int main(int argc, char** argv) {
    check(argc == 9, "usage");
    const spikformer_options options = {NULL, 2, atoi(argv[4])};
    const size_t batch = strtoul(argv[5], NULL, 10), steps = strtoul(argv[6], NULL, 10);
    const size_t height = strtoul(argv[7], NULL, 10), width = strtoul(argv[8], NULL, 10);
    spikformer_shape shape;
    check(!spikformer_load_file(argv[1], &options, &engine) && !spikformer_get_shape(engine, &shape), "load");
    float* x = read_input(argv[2], (steps ? steps : 1) * batch * shape.channels * height * width);
    const size_t readout = batch * shape.num_classes;
    float* logits = malloc(readout * sizeof *logits);
    output = fopen(argv[3], "wb");
    check(logits && output, argv[3]);
    rows = batch * (steps ? steps : shape.time_steps);
    num_ops = spikformer_num_ops(engine);
    ops = malloc(num_ops * sizeof *ops);
    check(!spikformer_get_ops(engine, height, width, ops), "ops");
    for (size_t i = 0; i < num_ops; ++i) {
        printf("%s %s %d %zu %zu %zu\n", ops[i].name, ops[i].kind, ops[i].has_neurons, ops[i].channels, ops[i].height,
               ops[i].width);
    }
    uint8_t spike;
    tap_all(0);
    for (size_t i = 0; i < num_ops; ++i) {
        check(spikformer_read_tap(engine, ops[i].name, 1, &spike, NULL) == SPIKFORMER_BAD_ARGUMENT, "before a run");
    }
    tap_all(1);
    run(x, argv + 5, logits, readout, 0);
    print_reports();
    write_taps(1);
    tap_all(0);
    intervene();
    run(x, argv + 5, logits, readout, 1);
    write_taps(0);
    check(!spikformer_clear_taps(engine) && !spikformer_clear_interventions(engine), "clear");
    run(x, argv + 5, logits, readout, 1);
    check(!fclose(output), argv[3]);
    spikformer_free(engine);
    free(ops);
    free(logits);
    free(x);
    return 0;
}
