#include "isa/neon/simd.hpp"

#include "isa/table.hpp"
