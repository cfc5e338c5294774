/* The input of a decoded picture: prepare_picture ENGINE PIXELS OUTPUT HEIGHT WIDTH CHANNELS, all raw bytes. */
#include <stdio.h>
#include <stdlib.h>

#include "spikformer.h"

int main(int argc, char** argv) {
    spikformer_engine* engine = NULL;
    spikformer_preprocessing seen;
    if (argc != 7 || spikformer_load_file(argv[1], NULL, &engine) || spikformer_get_preprocessing(engine, &seen)) {
        return 1;
    }
    const size_t height = strtoul(argv[4], NULL, 10), width = strtoul(argv[5], NULL, 10);
    const size_t channels = strtoul(argv[6], NULL, 10), size = height * width * channels;
    const size_t numbers = seen.channels * seen.height * seen.width;
    unsigned char* pixels = malloc(size);
    float* x = malloc(numbers * sizeof *x);
    FILE *input = fopen(argv[2], "rb"), *output = fopen(argv[3], "wb");
    if (!input || !output || fread(pixels, 1, size, input) != size) {
        return 1;
    }
    const int status = spikformer_prepare(engine, pixels, height, width, channels, x);
    if (status) {
        printf("%s\n", spikformer_last_error());
    } else {
        fwrite(x, sizeof *x, numbers, output);
    }
    fclose(input);
    fclose(output);
    free(pixels);
    free(x);
    spikformer_free(engine);
    return status ? 10 + status : 0;
}
