#define SPIKFORMER_SET avx2
#define SPIKFORMER_LANES 8
#define SPIKFORMER_TILE 16
#include "compiled.inl"
