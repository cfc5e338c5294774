#include "isa/avx2/simd.hpp"

#include "isa/table.hpp"
