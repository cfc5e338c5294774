#define SPIKFORMER_SET neon
#define SPIKFORMER_LANES 4
#define SPIKFORMER_TILE 16
#include "compiled.inl"
