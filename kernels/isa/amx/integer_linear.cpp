// Dense products in integers by AMX: sixteen rows times sixteen outputs, 64 inputs of each, in one instruction.
//
// Spikes and counts are integers already. A weight becomes one of 24 bits, three signed bytes (see layer.cpp), and
// each byte has a sum of its own: exact, in any order. Only putting the three together rounds, so that a current is as
// close to the true one as a sum of floats.
#include <immintrin.h>

#include "core/kernels.hpp"

namespace spikformer::engine::amx {
namespace {

// Of a tile register, called a panel here: a tile is already something else.
constexpr std::size_t panel_rows = 16, panel_bytes = 64, panel_size = panel_rows * panel_bytes;

static_assert(integer_rows == panel_rows && integer_outputs == 16 && num_digits == 3 && word_bits == panel_bytes);
static_assert(std::uint64_t{255} * 128 * most_inputs < std::uint64_t{1} << 31, "a digit's sum is exact in 32 bits");

struct alignas(64) PanelShapes {
    std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
    std::uint16_t bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(PanelShapes) == 64);

const PanelShapes shapes;
thread_local PanelShapes shapes_before;

// One panel of sums for each digit, lowest first, as currents.
void put_together(const std::int32_t* sums, const float* scales, std::size_t stride, float* currents) {
    const __m512 low_scale = _mm512_loadu_ps(scales), middle_scale = _mm512_loadu_ps(scales + integer_outputs),
                 high_scale = _mm512_loadu_ps(scales + 2 * integer_outputs);
    constexpr std::size_t panel = panel_rows * integer_outputs;
    for (std::size_t row = 0; row < panel_rows; ++row, sums += integer_outputs, currents += stride) {
        const __m512 low = _mm512_cvtepi32_ps(_mm512_load_si512(sums));
        const __m512 middle = _mm512_cvtepi32_ps(_mm512_load_si512(sums + panel));
        const __m512 high = _mm512_cvtepi32_ps(_mm512_load_si512(sums + 2 * panel));
        const __m512 lower = _mm512_fmadd_ps(middle, middle_scale, _mm512_mul_ps(low, low_scale));
        _mm512_storeu_ps(currents, _mm512_fmadd_ps(high, high_scale, lower));
    }
}

// Registers 0 to 2 and 3 to 5 have the sums of two panels of rows, 6 the rows, 7 the weights. The compiler writes their
// numbers into the instructions as they stand here: no name or loop can stand for them.
template <bool both>
void multiply_panels(const std::uint8_t* inputs, std::size_t num_inputs, const std::int8_t* digits, const float* scales,
                     std::size_t stride, float* currents) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    if constexpr (both) {
        _tile_zero(3);
        _tile_zero(4);
        _tile_zero(5);
    }
    const std::uint8_t* more_inputs = inputs + panel_rows * num_inputs;
    for (std::size_t k = 0; k < num_inputs; k += panel_bytes, digits += num_digits * panel_size) {
        _tile_loadd(6, inputs + k, num_inputs);
        _tile_loadd(7, digits, panel_bytes);
        _tile_dpbusd(0, 6, 7);
        _tile_loadd(7, digits + panel_size, panel_bytes);
        _tile_dpbusd(1, 6, 7);
        _tile_loadd(7, digits + 2 * panel_size, panel_bytes);
        _tile_dpbusd(2, 6, 7);
        if constexpr (both) {  // the last digit is still there: backwards
            _tile_loadd(6, more_inputs + k, num_inputs);
            _tile_dpbusd(5, 6, 7);
            _tile_loadd(7, digits + panel_size, panel_bytes);
            _tile_dpbusd(4, 6, 7);
            _tile_loadd(7, digits, panel_bytes);
            _tile_dpbusd(3, 6, 7);
        }
    }
    alignas(64) std::int32_t sums[6][panel_rows * integer_outputs];
    _tile_stored(0, sums[0], panel_bytes);
    _tile_stored(1, sums[1], panel_bytes);
    _tile_stored(2, sums[2], panel_bytes);
    put_together(sums[0], scales, stride, currents);
    if constexpr (both) {
        _tile_stored(3, sums[3], panel_bytes);
        _tile_stored(4, sums[4], panel_bytes);
        _tile_stored(5, sums[5], panel_bytes);
        put_together(sums[3], scales, stride, currents + panel_rows * stride);
    }
}

// Others in this thread may have shaped their registers for products to come: they get the shapes back.
void begin() {
    _tile_storeconfig(&shapes_before);
    _tile_loadconfig(&shapes);
}

void end() {
    if (shapes_before.palette == 0) {
        _tile_release();
    } else {
        _tile_loadconfig(&shapes_before);
    }
}

void expand_bytes(const Word* spikes, std::size_t words, std::uint8_t* values) {
    for (std::size_t w = 0; w < words; ++w) {
        _mm512_storeu_si512(values + w * word_bits, _mm512_maskz_set1_epi8(spikes[w], 1));
    }
}

void integer_linear(const std::uint8_t* inputs, std::size_t rows, std::size_t num_inputs, const std::int8_t* digits,
                  const float* scales, std::size_t tile, float* currents) {
    for (std::size_t first = 0; first < tile; first += integer_outputs) {
        std::size_t row = 0;
        for (; row + panel_rows < rows; row += 2 * panel_rows) {
            multiply_panels<true>(inputs + row * num_inputs, num_inputs, digits, scales, tile,
                                  currents + row * tile + first);
        }
        if (row < rows) {
            multiply_panels<false>(inputs + row * num_inputs, num_inputs, digits, scales, tile,
                                   currents + row * tile + first);
        }
        digits += num_digits * integer_outputs * num_inputs;
        scales += num_digits * integer_outputs;
    }
}

constexpr IntegerKernels make_table() {
    IntegerKernels table{};
    table.begin = begin;
    table.end = end;
    table.expand_bytes = expand_bytes;
    table.integer_linear = integer_linear;
    return table;
}

}  // namespace

extern const IntegerKernels kernels;
const IntegerKernels kernels = make_table();

}  // namespace spikformer::engine::amx
