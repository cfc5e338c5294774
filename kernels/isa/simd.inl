// The few vector operations that the kernels need, at the width of the instruction set being compiled.
// Included once by each kernels_*.cpp, which sets SPIKFORMER_LANES.

#if SPIKFORMER_LANES > 1
typedef float Floats __attribute__((vector_size(SPIKFORMER_LANES * sizeof(float)), may_alias));
#else
typedef float Floats;
#endif

constexpr std::size_t lanes = SPIKFORMER_LANES;
constexpr std::size_t tile_vectors = tile / lanes;

// A loop unrolled at compile time, whose body gets its index as a constant: what it indexes can stay in registers. (A
// std::integral_constant would bring a function of the library, which must not be compiled here.)
template <std::size_t number>
struct Number {
    static constexpr std::size_t value = number;
};

template <typename Body, std::size_t... index>
[[gnu::always_inline]] inline void each_of(std::index_sequence<index...>, const Body& body) {
    (body(Number<index>{}), ...);
}

template <std::size_t count, typename Body>
[[gnu::always_inline]] inline void each(const Body& body) {
    each_of(std::make_index_sequence<count>{}, body);
}

inline Floats broadcast(float x) {
#if SPIKFORMER_LANES == 16
    return _mm512_set1_ps(x);  // 0 + x would be an addition, for the sake of the sign of a zero
#elif SPIKFORMER_LANES == 8
    return _mm256_set1_ps(x);
#elif defined(__ARM_NEON) && SPIKFORMER_LANES == 4
    return vdupq_n_f32(x);
#else
    return x;
#endif
}

inline Floats load(const float* from) {
    Floats x;
    std::memcpy(&x, from, sizeof x);
    return x;
}

inline void store(float* to, Floats x) { std::memcpy(to, &x, sizeof x); }

// a * b + c, rounded once, as on every instruction set.
inline Floats multiply_add(Floats a, Floats b, Floats c) {
#if SPIKFORMER_LANES == 16
    return _mm512_fmadd_ps(a, b, c);
#elif SPIKFORMER_LANES == 8
    return _mm256_fmadd_ps(a, b, c);
#elif defined(__ARM_NEON) && SPIKFORMER_LANES == 4
    return vfmaq_f32(c, a, b);
#elif SPIKFORMER_LANES == 1
    return __builtin_fmaf(a, b, c);
#else
#error "no multiply-add for this instruction set"
#endif
}

// One bit a lane: where a >= b.
inline std::uint32_t at_least(Floats a, Floats b) {
#if SPIKFORMER_LANES == 16
    return _mm512_cmp_ps_mask(a, b, _CMP_GE_OQ);
#elif SPIKFORMER_LANES == 8
    return static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_GE_OQ)));
#elif SPIKFORMER_LANES > 1
    std::uint32_t bits = 0;
    for (std::size_t lane = 0; lane < lanes; ++lane) {
        bits |= static_cast<std::uint32_t>(a[lane] >= b[lane]) << lane;
    }
    return bits;
#else
    return a >= b;
#endif
}

// a where the bit of its lane is set, else b.
inline Floats choose(std::uint32_t bits, Floats a, Floats b) {
#if SPIKFORMER_LANES == 16
    return _mm512_mask_blend_ps(static_cast<__mmask16>(bits), b, a);
#elif SPIKFORMER_LANES == 8
    const __m256i lane_bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    const __m256i chosen = _mm256_and_si256(_mm256_set1_epi32(static_cast<int>(bits)), lane_bits);
    return _mm256_blendv_ps(b, a, _mm256_castsi256_ps(_mm256_cmpeq_epi32(chosen, lane_bits)));
#elif SPIKFORMER_LANES > 1
    for (std::size_t lane = 0; lane < lanes; ++lane) {
        b[lane] = bits >> lane & 1 ? a[lane] : b[lane];
    }
    return b;
#else
    return bits & 1 ? a : b;
#endif
}
