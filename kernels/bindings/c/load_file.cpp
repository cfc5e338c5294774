// Engines from a path: the part of the interface that needs a file system.
#include <cstdio>
#include <memory>
#include <vector>

#include "guard.hpp"

using spikformer::c::fail;

spikformer_status spikformer_load_file(const char* path, const spikformer_options* options,
                                       spikformer_engine** engine) {
    return spikformer::c::guard(SPIKFORMER_BAD_ARGUMENT, [&] {
        if (!path) {
            return fail(SPIKFORMER_BAD_ARGUMENT, "path is null.");
        }
        const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path, "rb"), std::fclose);
        if (!file || std::fseek(file.get(), 0, SEEK_END) != 0) {
            return fail(SPIKFORMER_NO_FILE, "The file cannot be opened.");
        }
        const long size = std::ftell(file.get());
        if (size < 0 || std::fseek(file.get(), 0, SEEK_SET) != 0) {
            return fail(SPIKFORMER_NO_FILE, "The file cannot be read.");
        }
        std::vector<unsigned char> bytes(static_cast<std::size_t>(size));
        if (std::fread(bytes.data(), 1, bytes.size(), file.get()) != bytes.size()) {
            return fail(SPIKFORMER_NO_FILE, "The file cannot be read.");
        }
        return spikformer_load_memory(bytes.data(), bytes.size(), options, engine);
    });
}
