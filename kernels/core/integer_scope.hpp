// A thread's products of integers begin and end with this. Not for the files of single instruction sets: see isa/simd.hpp.
#pragma once

#include "kernels.hpp"

namespace spikformer::engine {

class IntegerScope {
public:
    // Null: there is nothing to begin.
    explicit IntegerScope(const IntegerKernels* kernels) : kernels_(kernels) {
        if (kernels_) {
            kernels_->begin();
        }
    }
    ~IntegerScope() {
        if (kernels_) {
            kernels_->end();
        }
    }
    IntegerScope(const IntegerScope&) = delete;
    IntegerScope& operator=(const IntegerScope&) = delete;

private:
    const IntegerKernels* kernels_;
};

}  // namespace spikformer::engine
