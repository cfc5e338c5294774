/* Each of the files as an engine: load_engine FILES. Prints the status and the message; whatever loads is run. */
#include <stdio.h>
#include <stdlib.h>

#include "spikformer.h"

static int run(spikformer_engine* engine) {
    spikformer_shape shape;
    if (spikformer_get_shape(engine, &shape)) {
        return 1;
    }
    const size_t height = shape.height ? shape.height : shape.patch_size;
    const size_t width = shape.width ? shape.width : shape.patch_size;
    float* x = calloc(shape.channels * height * width, sizeof *x);
    float* logits = calloc(shape.num_classes, sizeof *logits);
    const int status = x && logits ? spikformer_run(engine, x, 1, 0, height, width, logits, NULL) : 0;
    free(x);
    free(logits);
    return status;
}

int main(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
        spikformer_engine* engine = NULL;
        int status = spikformer_load_file(argv[i], NULL, &engine);
        if (!status && run(engine)) {
            status = -1;
        }
        printf("%d %s\n", status, status ? spikformer_last_error() : "");
        spikformer_free(engine);
    }
    return 0;
}
