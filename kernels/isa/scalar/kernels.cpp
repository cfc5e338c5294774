#include "isa/scalar/simd.hpp"

#include "isa/table.hpp"
