// A block of elements goes through all time steps before the next one starts, so that its state stays in cache.
// Rows of a block are plain loops for the compiler to vectorise; threads share the blocks.
#include "lif.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

// One portable binary, yet the full vector width: the clones are compiled once for each instruction set and the loader
// picks. What they call must be inlined into them, or it would keep the baseline instructions.
#if defined(__GNUC__) && defined(__x86_64__) && defined(__GLIBC__)
#define SPIKFORMER_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#define SPIKFORMER_INLINE inline __attribute__((always_inline))
#else
#define SPIKFORMER_CLONES
#define SPIKFORMER_INLINE inline
#endif

namespace spikformer {
namespace {

constexpr std::size_t block_size = 1024;           // a power of two; the backward pass keeps seven such rows in L1
constexpr std::size_t parallel_minimum = 1 << 16;  // with fewer elements, waking threads costs more than it saves

// Rounded to what a pass computes in.
template <typename Real>
Dynamics<Real> rounded(const Dynamics<double>& dynamics) {
    return {static_cast<Real>(dynamics.gain), static_cast<Real>(dynamics.leak),
            static_cast<Real>(dynamics.v_threshold), static_cast<Real>(dynamics.v_reset)};
}

SPIKFORMER_INLINE double exp_nonpositive(double x) { return std::exp(x); }

// Cephes expf (relative error 8e-8): x = n ln 2 + r, a polynomial in r, times 2^n. No library call, so loops vectorise.
SPIKFORMER_INLINE float exp_nonpositive(float x) {
    constexpr float lowest = -87.0f;        // exp leaves the normal numbers just below: flushed to 0
    constexpr float rounder = 12582912.0f;  // 1.5 * 2^23: after adding it, the low mantissa bits are the integer n
    const float clamped = x < lowest ? lowest : x;
    const float shifted = clamped * 1.44269504f + rounder;
    const float n = shifted - rounder;
    const float r = (clamped - n * 0.693359375f) + n * 2.12194440e-4f;
    float series = ((1.9875691500e-4f * r + 1.3981999507e-3f) * r + 8.3334519073e-3f) * r + 4.1665795894e-2f;
    series = (series * r + 1.6666665459e-1f) * r + 5.0000001201e-1f;
    series = series * (r * r) + r + 1.0f;
    std::uint32_t bits;
    std::memcpy(&bits, &shifted, sizeof bits);
    bits = (bits + 127u) << 23;  // n as the exponent of a float
    float power;
    std::memcpy(&power, &bits, sizeof power);
    return x < lowest ? 0.0f : series * power;
}

template <Surrogate surrogate, typename Real>
SPIKFORMER_INLINE Real derivative(Real x, Real alpha) {
    if constexpr (surrogate == Surrogate::sigmoid) {
        const Real e = exp_nonpositive(-alpha * std::abs(x));  // the derivative is even, and e <= 1 cannot overflow
        return alpha * e / ((1 + e) * (1 + e));
    } else {
        const Real slope = static_cast<Real>(1.57079632679489661923) * alpha * x;
        return alpha / 2 / (1 + slope * slope);
    }
}

// One time step of one block. Nothing overlaps.
template <typename Real>
struct ForwardRow {
    const Real* __restrict current;
    Real *__restrict voltage, *__restrict spikes, *__restrict membrane;
    std::size_t count;
};

// `previous` is h[t-1] and resets at v_threshold, or the initial voltage, which never does: its threshold is infinite.
// `voltage_gradient` is the state that goes back in time. `gain_terms` gathers gain * dL/dgain of each element.
template <typename Real>
struct BackwardRow {
    const Real *__restrict grad_spikes, *__restrict membrane, *__restrict previous;
    Real *__restrict voltage_gradient, *__restrict grad_current;
    double* __restrict gain_terms;
    Real previous_threshold, alpha;
    std::size_t count;
};

// The order of operations is that of the Python twin: results are equal to the last bit.
template <typename Real>
SPIKFORMER_INLINE void forward_body(const ForwardRow<Real> row, const Dynamics<Real> c) {
    for (std::size_t i = 0; i < row.count; ++i) {
        const Real v = row.voltage[i];
        const Real h = v + c.gain * (row.current[i] - c.leak * (v - c.v_reset));
        row.membrane[i] = h;
        row.spikes[i] = h >= c.v_threshold ? Real(1) : Real(0);
        row.voltage[i] = h >= c.v_threshold ? c.v_reset : h;
    }
}

// dh/dgain = (h[t] - v[t-1]) / gain, so the current need not be kept.
template <Surrogate surrogate, typename Real>
SPIKFORMER_INLINE void backward_body(const BackwardRow<Real> row, const Dynamics<Real> c) {
    const Real decay = 1 - c.gain * c.leak;
    for (std::size_t i = 0; i < row.count; ++i) {
        const Real h = row.membrane[i];
        const Real v = row.previous[i] >= row.previous_threshold ? c.v_reset : row.previous[i];
        const Real through_voltage = h >= c.v_threshold ? Real(0) : row.voltage_gradient[i];
        const Real through_spike = row.grad_spikes[i] * derivative<surrogate>(h - c.v_threshold, row.alpha);
        const Real gradient = through_spike + through_voltage;
        row.grad_current[i] = c.gain * gradient;
        row.gain_terms[i] += gradient * (h - v);
        row.voltage_gradient[i] = decay * gradient;
    }
}

template <typename Real>
SPIKFORMER_INLINE void backward_body(const BackwardRow<Real>& row, const Dynamics<Real>& c, Surrogate surrogate) {
    if (surrogate == Surrogate::sigmoid) {
        backward_body<Surrogate::sigmoid>(row, c);
    } else {
        backward_body<Surrogate::arctan>(row, c);
    }
}

// In pairs, which vectorises where adding in order would not. Overwrites the terms.
SPIKFORMER_CLONES double pairwise_sum(double* terms) {
    for (std::size_t half = block_size / 2; half > 0; half /= 2) {
        for (std::size_t i = 0; i < half; ++i) {
            terms[i] += terms[half + i];
        }
    }
    return terms[0];
}

// Templates cannot be cloned, hence one function for each type.
SPIKFORMER_CLONES void forward_row(const ForwardRow<float>& row, const Dynamics<float>& c) { forward_body(row, c); }
SPIKFORMER_CLONES void forward_row(const ForwardRow<double>& row, const Dynamics<double>& c) { forward_body(row, c); }
SPIKFORMER_CLONES void backward_row(const BackwardRow<float>& row, const Dynamics<float>& c, Surrogate surrogate) {
    backward_body(row, c, surrogate);
}
SPIKFORMER_CLONES void backward_row(const BackwardRow<double>& row, const Dynamics<double>& c, Surrogate surrogate) {
    backward_body(row, c, surrogate);
}

template <typename Real>
void copy_or_fill(const Real* source, Real value, std::size_t begin, std::size_t count, Real* target) {
    if (source) {
        std::copy_n(source + begin, count, target);
    } else {
        std::fill_n(target, count, value);
    }
}

template <typename Work>
void for_each_block(std::size_t time_steps, std::size_t size, const Work& work) {
    const auto num_blocks = static_cast<std::ptrdiff_t>((size + block_size - 1) / block_size);
    [[maybe_unused]] const bool pays = time_steps * size >= parallel_minimum;
#ifdef _OPENMP
#pragma omp parallel for schedule(static) if (pays)
#endif
    for (std::ptrdiff_t block = 0; block < num_blocks; ++block) {
        const std::size_t begin = static_cast<std::size_t>(block) * block_size;
        work(static_cast<std::size_t>(block), begin, std::min(block_size, size - begin));
    }
}

}  // namespace

template <typename Real>
void lif_forward(const Real* current, std::ptrdiff_t current_stride, const Real* initial, Real* spikes, Real* membrane,
                 Real* voltage, std::size_t time_steps, std::size_t size, const Dynamics<double>& dynamics) {
    const Dynamics<Real> constants = rounded<Real>(dynamics);
    for_each_block(time_steps, size, [&](std::size_t, std::size_t begin, std::size_t count) {
        alignas(64) Real unused_membrane[block_size];
        copy_or_fill(initial, constants.v_reset, begin, count, voltage + begin);
        for (std::size_t t = 0; t < time_steps; ++t) {
            const std::size_t offset = t * size + begin;
            const ForwardRow<Real> row{current + static_cast<std::ptrdiff_t>(t) * current_stride + begin,
                                       voltage + begin, spikes + offset, membrane ? membrane + offset : unused_membrane,
                                       count};
            forward_row(row, constants);
        }
    });
}

template <typename Real>
double lif_backward(const Real* grad_spikes, const Real* grad_voltage, const Real* membrane, const Real* initial,
                    Real* grad_current, Real* grad_initial, std::size_t time_steps, std::size_t size,
                    const Dynamics<double>& dynamics, Surrogate surrogate, double alpha) {
    const Dynamics<Real> constants = rounded<Real>(dynamics);
    std::vector<double> block_sums(size / block_size + 1);
    for_each_block(time_steps, size, [&](std::size_t block, std::size_t begin, std::size_t count) {
        alignas(64) Real start[block_size];
        alignas(64) Real voltage_gradient[block_size];
        alignas(64) double gain_terms[block_size] = {};
        copy_or_fill(initial, constants.v_reset, begin, count, start);
        copy_or_fill(grad_voltage, Real(0), begin, count, voltage_gradient);
        for (std::size_t t = time_steps; t-- > 0;) {
            const std::size_t offset = t * size + begin;
            const Real* previous = t > 0 ? membrane + offset - size : start;
            const Real threshold = t > 0 ? constants.v_threshold : std::numeric_limits<Real>::infinity();
            const BackwardRow<Real> row{grad_spikes + offset, membrane + offset, previous, voltage_gradient,
                                        grad_current + offset, gain_terms, threshold, static_cast<Real>(alpha), count};
            backward_row(row, constants, surrogate);
        }
        if (grad_initial) {
            std::copy_n(voltage_gradient, count, grad_initial + begin);
        }
        block_sums[block] = pairwise_sum(gain_terms);
    });
    // Blocks in order, whichever thread did them: the sum does not depend on the number of threads.
    return std::accumulate(block_sums.begin(), block_sums.end(), 0.0) / dynamics.gain;
}

template void lif_forward(const float*, std::ptrdiff_t, const float*, float*, float*, float*, std::size_t, std::size_t,
                          const Dynamics<double>&);
template void lif_forward(const double*, std::ptrdiff_t, const double*, double*, double*, double*, std::size_t,
                          std::size_t, const Dynamics<double>&);
template double lif_backward(const float*, const float*, const float*, const float*, float*, float*, std::size_t,
                             std::size_t, const Dynamics<double>&, Surrogate, double);
template double lif_backward(const double*, const double*, const double*, const double*, double*, double*, std::size_t,
                             std::size_t, const Dynamics<double>&, Surrogate, double);

}  // namespace spikformer
