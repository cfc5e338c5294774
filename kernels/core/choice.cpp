// Which instruction sets were compiled in, and which of them this machine can run.
#include "kernels.hpp"

#include <cstring>

#if defined(SPIKFORMER_HAS_AMX)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace spikformer::engine {

#if defined(SPIKFORMER_HAS_WASM)  // alone: a page is small, and every browser has it
namespace wasm { extern const Kernels kernels; }

const Kernels* choose_kernels(const char* name) {
    return name == nullptr || std::strcmp(name, "wasm") == 0 ? &wasm::kernels : nullptr;
}
#else
namespace scalar { extern const Kernels kernels; }
#if defined(SPIKFORMER_HAS_X86)
namespace avx2 { extern const Kernels kernels; }
namespace avx512 { extern const Kernels kernels; }
#elif defined(SPIKFORMER_HAS_NEON)
namespace neon { extern const Kernels kernels; }
#endif

#if defined(SPIKFORMER_HAS_AMX)
namespace amx { extern const IntegerKernels kernels; }

namespace {

// Linux saves the large registers only of a process that asks for it, which is done when AMX is first wanted.
bool asks_for_amx() {
    unsigned a = 0, b = 0, c = 0, features = 0;
    constexpr unsigned tiles = 1u << 24, bytes = 1u << 25;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &features) || !(features & tiles) || !(features & bytes)) {
        return false;
    }
    constexpr long request_permission = 0x1023, tile_data = 18;
    return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
}

bool has_amx() {
    static const bool has = asks_for_amx();
    return has;
}

// AVX-512, and dense products in integers.
const Kernels* amx_kernels() {
    static const Kernels kernels = [] {
        Kernels kernels = avx512::kernels;
        kernels.name = "amx";
        kernels.integers = &amx::kernels;
        return kernels;
    }();
    return &kernels;
}

}  // namespace
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
#if defined(SPIKFORMER_HAS_AMX)
    if (wanted("amx") && has_avx512 && has_amx()) {
        return amx_kernels();
    }
#endif
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
#endif

}  // namespace spikformer::engine
