// Which instruction sets were compiled in, and which of them this machine can run.
#include "kernels.hpp"

#include <cstring>

namespace spikformer::engine {

namespace scalar { extern const Kernels kernels; }
#if defined(SPIKFORMER_HAS_X86)
namespace avx2 { extern const Kernels kernels; }
namespace avx512 { extern const Kernels kernels; }
#elif defined(SPIKFORMER_HAS_NEON)
namespace neon { extern const Kernels kernels; }
#endif

const Kernels* choose_kernels(const char* name) {
    const auto wanted = [name](const char* set) { return name == nullptr || std::strcmp(name, set) == 0; };
#if defined(SPIKFORMER_HAS_X86)
    __builtin_cpu_init();
    const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                          __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
                          __builtin_cpu_supports("popcnt");
    const bool has_avx512 = has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                            __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    if (wanted("avx512") && has_avx512) {
        return &avx512::kernels;
    }
    if (wanted("avx2") && has_avx2) {
        return &avx2::kernels;
    }
#elif defined(SPIKFORMER_HAS_NEON)
    if (wanted("neon")) {
        return &neon::kernels;
    }
#endif
    return wanted("scalar") ? &scalar::kernels : nullptr;
}

}  // namespace spikformer::engine
