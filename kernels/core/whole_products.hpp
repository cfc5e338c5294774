// A thread's products in whole numbers begin and end with this. Not for the files of single instruction sets: see
// compiled.inl.
#pragma once

#include "kernels.hpp"

namespace spikformer::engine {

class WholeProducts {
public:
    // `any`: else there is nothing to begin.
    WholeProducts(const Kernels& kernels, bool any) : end_(any ? kernels.end_whole : nullptr) {
        if (any) {
            kernels.begin_whole();
        }
    }
    ~WholeProducts() {
        if (end_) {
            end_();
        }
    }
    WholeProducts(const WholeProducts&) = delete;
    WholeProducts& operator=(const WholeProducts&) = delete;

private:
    void (*end_)();
};

}  // namespace spikformer::engine
