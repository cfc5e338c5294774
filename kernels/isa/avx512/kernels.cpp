#include "isa/avx512/simd.hpp"

#include "isa/table.hpp"
