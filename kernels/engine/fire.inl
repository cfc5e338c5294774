// Bias and neuron over all steps of one tile, writing one bit a neuron. Operation for operation that of kernels/lif.cpp.

void fire(const float* currents, std::size_t current_stride, std::size_t time_steps, const float* bias,
          const Dynamics& dynamics, const float* initial, float* voltage, unsigned char* spikes,
          std::size_t spike_stride) {
    const Floats gain = broadcast(dynamics.gain), leak = broadcast(dynamics.leak);
    const Floats threshold = broadcast(dynamics.v_threshold), rest = broadcast(dynamics.v_reset);
    Floats state[tile_vectors];
    for (std::size_t v = 0; v < tile_vectors; ++v) {
        state[v] = initial ? load(initial + v * lanes) : rest;
    }
    for (std::size_t t = 0; t < time_steps; ++t) {
        Word bits = 0;
        for (std::size_t v = 0; v < tile_vectors; ++v) {
            const Floats current = load(currents + t * current_stride + v * lanes) + load(bias + v * lanes);
            const Floats membrane = state[v] + gain * (current - leak * (state[v] - rest));
            const std::uint32_t fired = at_least(membrane, threshold);
            state[v] = choose(fired, rest, membrane);
            bits |= Word{fired} << (v * lanes);
        }
        std::memcpy(spikes + t * spike_stride, &bits, tile / 8);  // little-endian: the low bits come first
    }
    for (std::size_t v = 0; voltage && v < tile_vectors; ++v) {
        store(voltage + v * lanes, state[v]);
    }
}
