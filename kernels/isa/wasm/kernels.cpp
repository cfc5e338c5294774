#include "isa/wasm/simd.hpp"

#include "isa/table.hpp"
