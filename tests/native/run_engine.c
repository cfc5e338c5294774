/* An engine file through the C interface: run_engine ENGINE INPUT OUTPUT MODE BATCH STEPS HEIGHT WIDTH [INSTRUCTIONS].
 *
 * INPUT is raw floats, OUTPUT gets logits [B][K], those of each step [T][B][K], and of two steps of a stream [2][B][K].
 * The engine is loaded from a file and from memory, and both must answer alike. Exit code 1: an error, in words.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spikformer.h"

static void check(int holds, const char* what) {
    if (!holds) {
        printf("%s: %s\n", what, spikformer_last_error());
        exit(1);
    }
}

static void* read_all(const char* path, size_t* size) {
    FILE* file = fopen(path, "rb");
    check(file && !fseek(file, 0, SEEK_END), path);
    *size = (size_t)ftell(file);
    rewind(file);
    void* bytes = malloc(*size + 1);
    check(bytes && fread(bytes, 1, *size, file) == *size, path);
    fclose(file);
    return bytes;
}

int main(int argc, char** argv) {
    check(argc == 9 || argc == 10, "usage");
    const spikformer_options options = {argc == 10 ? argv[9] : NULL, 2, atoi(argv[4])};
    const size_t batch = strtoul(argv[5], NULL, 10), steps = strtoul(argv[6], NULL, 10);
    const size_t height = strtoul(argv[7], NULL, 10), width = strtoul(argv[8], NULL, 10);
    spikformer_engine *engine = NULL, *twin = NULL;
    spikformer_state* state = NULL;
    spikformer_shape shape;
    size_t size = 0, input_size = 0;
    check(!spikformer_load_file(argv[1], &options, &engine), "load_file");
    void* bytes = read_all(argv[1], &size);
    check(!spikformer_load_memory(bytes, size, NULL, &twin), "load_memory");
    free(bytes);
    spikformer_free(twin);
    check(!spikformer_get_shape(engine, &shape), "get_shape");
    float* x = read_all(argv[2], &input_size);
    const size_t frame = batch * shape.channels * height * width, readout = batch * shape.num_classes;
    const size_t time_steps = steps ? steps : shape.time_steps, total = (1 + time_steps + 2) * readout;
    check(input_size == (steps ? steps : 1) * frame * sizeof *x, "size of the input");
    float* logits = malloc(total * sizeof *logits);
    check(!spikformer_run(engine, x, batch, steps, height, width, logits, logits + readout), "run");
    float* stream = logits + (1 + time_steps) * readout;
    check(!spikformer_new_state(engine, batch, height, width, &state), "new_state");
    for (size_t t = 0; t < 2; ++t) {
        check(!spikformer_step(engine, state, x + (steps > t ? t * frame : 0), stream + t * readout), "step");
    }
    FILE* output = fopen(argv[3], "wb");
    check(output && fwrite(logits, sizeof *logits, total, output) == total && !fclose(output), argv[3]);
    spikformer_free_state(state);
    spikformer_free(engine);
    free(logits);
    free(x);
    return 0;
}
