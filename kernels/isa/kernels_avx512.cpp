#define SPIKFORMER_SET avx512
#define SPIKFORMER_LANES 16
#define SPIKFORMER_TILE 32
#include "compiled.inl"
