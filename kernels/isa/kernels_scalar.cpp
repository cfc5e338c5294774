#define SPIKFORMER_SET scalar
#define SPIKFORMER_LANES 1
#define SPIKFORMER_TILE 16
#include "compiled.inl"
