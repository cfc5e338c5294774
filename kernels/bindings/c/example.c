/* What a picture shows: example ENGINE PICTURE, the picture a binary PPM or PGM of 8 bits.
 *
 *     cc example.c $(pkg-config --cflags --libs spikformer) -o example
 */
#include <stdio.h>
#include <stdlib.h>

#include "spikformer.h"

static int failed(const char* what) {
    fprintf(stderr, "%s: %s\n", what, spikformer_last_error());
    return 1;
}

/* Decoding is the host's job; this is the simplest format there is. The pixels are the caller's to free. */
static unsigned char* read_picture(const char* path, size_t* height, size_t* width, size_t* channels) {
    char kind = 0;
    unsigned char* pixels = NULL;
    FILE* file = fopen(path, "rb");
    if (!file) {
        return NULL;
    }
    if (fscanf(file, "P%c %zu %zu 255", &kind, width, height) == 3 && (kind == '5' || kind == '6') &&
        *width > 0 && *width < 1 << 15 && *height > 0 && *height < 1 << 15 && fgetc(file) != EOF) {
        *channels = kind == '6' ? 3 : 1;
        const size_t size = *height * *width * *channels;
        pixels = malloc(size);
        if (pixels && fread(pixels, 1, size, file) != size) {
            free(pixels);
            pixels = NULL;
        }
    }
    fclose(file);
    return pixels;
}

/* The most likely class of a decoded picture. */
static int classify(spikformer_engine* engine, const unsigned char* pixels, size_t height, size_t width,
                    size_t channels) {
    spikformer_shape shape;
    spikformer_preprocessing seen;
    if (spikformer_get_shape(engine, &shape) || spikformer_get_preprocessing(engine, &seen)) {
        return failed("shape");
    }
    float* x = calloc(seen.channels * seen.height * seen.width + 1, sizeof *x);
    float* logits = calloc(shape.num_classes, sizeof *logits);
    int status = 1;
    if (!x || !logits) {
        fprintf(stderr, "out of memory\n");
    } else if (spikformer_prepare(engine, pixels, height, width, channels, x) ||
               spikformer_run(engine, x, 1, 0, seen.height, seen.width, logits, NULL)) {
        status = failed("run");
    } else {
        size_t best = 0;
        for (size_t k = 1; k < shape.num_classes; ++k) {
            best = logits[k] > logits[best] ? k : best;
        }
        const char* name = spikformer_class_name(engine, best);
        printf("%s\n", name ? name : "unnamed");
        status = 0;
    }
    free(x);
    free(logits);
    return status;
}

int main(int argc, char** argv) {
    spikformer_engine* engine = NULL;
    size_t height = 0, width = 0, channels = 0;
    if (argc != 3) {
        fprintf(stderr, "usage: example ENGINE PICTURE\n");
        return 2;
    }
    if (spikformer_load_file(argv[1], NULL, &engine) != SPIKFORMER_OK) {
        return failed(argv[1]);
    }
    unsigned char* pixels = read_picture(argv[2], &height, &width, &channels);
    int status = 1;
    if (pixels) {
        status = classify(engine, pixels, height, width, channels);
    } else {
        fprintf(stderr, "%s: not a binary PPM or PGM of 8 bits\n", argv[2]);
    }
    free(pixels);
    spikformer_free(engine);
    return status;
}
