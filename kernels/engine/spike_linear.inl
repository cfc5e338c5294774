// Event-driven products: for every event, add its weights to the steps it fires at.
//
// The currents of all steps of a group stay in registers; a weight is loaded once for all the steps that need it, and
// what differs between patterns is known at compile time. Each step's sum runs over patterns, then over inputs in
// ascending order: an order that depends on the input alone, so results are the same for every batch, thread count and
// vector width.

template <std::size_t steps>
struct Currents {
    Floats sums[steps][tile_vectors];
};

// Spikes: additions only.
template <std::size_t pattern, std::size_t steps>
inline void add_pattern(const Index* event, const Index* end, const float* weights, Currents<steps>& currents) {
    for (; event != end; ++event) {
        const float* row = weights + std::size_t{*event} * tile;
        for (std::size_t v = 0; v < tile_vectors; ++v) {
            const Floats weight = load(row + v * lanes);
            for (std::size_t t = 0; t < steps; ++t) {
                if (pattern >> t & 1) {
                    currents.sums[t][v] += weight;
                }
            }
        }
    }
}

// Counts: each addition is weighed by a small whole number.
template <std::size_t pattern, std::size_t steps>
inline const float* add_pattern(const Index* event, const Index* end, const float* values, const float* weights,
                                Currents<steps>& currents) {
    for (; event != end; ++event) {
        const float* row = weights + std::size_t{*event} * tile;
        Floats count[steps];
        for (std::size_t t = 0; t < steps; ++t) {
            if (pattern >> t & 1) {
                count[t] = broadcast(*values++);
            }
        }
        for (std::size_t v = 0; v < tile_vectors; ++v) {
            const Floats weight = load(row + v * lanes);
            for (std::size_t t = 0; t < steps; ++t) {
                if (pattern >> t & 1) {
                    currents.sums[t][v] = multiply_add(count[t], weight, currents.sums[t][v]);
                }
            }
        }
    }
    return values;
}

template <std::size_t steps>
inline Currents<steps> silence() {
    Currents<steps> currents;
    for (std::size_t t = 0; t < steps; ++t) {
        for (std::size_t v = 0; v < tile_vectors; ++v) {
            currents.sums[t][v] = Floats{};
        }
    }
    return currents;
}

template <std::size_t steps>
inline void keep(const Currents<steps>& currents, float* to) {
    for (std::size_t t = 0; t < steps; ++t) {
        for (std::size_t v = 0; v < tile_vectors; ++v) {
            store(to + t * tile + v * lanes, currents.sums[t][v]);
        }
    }
}

// `pattern` counts from 0 for the pattern 1: silence has no events.
template <std::size_t steps, std::size_t... pattern>
inline void add_spikes_of(std::index_sequence<pattern...>, const Index* indices, const std::uint32_t* ends,
                          const float* weights, float* to) {
    Currents<steps> currents = silence<steps>();
    (add_pattern<pattern + 1, steps>(indices + ends[pattern], indices + ends[pattern + 1], weights, currents), ...);
    keep(currents, to);
}

template <std::size_t steps, std::size_t... pattern>
inline void add_counts_of(std::index_sequence<pattern...>, const Index* indices, const float* values,
                          const std::uint32_t* ends, const float* weights, float* to) {
    Currents<steps> currents = silence<steps>();
    ((values = add_pattern<pattern + 1, steps>(indices + ends[pattern], indices + ends[pattern + 1], values, weights,
                                               currents)),
     ...);
    keep(currents, to);
}

template <std::size_t steps>
using Patterns = std::make_index_sequence<(std::size_t{1} << steps) - 1>;

void spike_linear(const Index* indices, const std::uint32_t* ends, std::size_t num_steps, const float* weights,
                  float* currents) {
    switch (num_steps) {
        case 1: return add_spikes_of<1>(Patterns<1>{}, indices, ends, weights, currents);
        case 2: return add_spikes_of<2>(Patterns<2>{}, indices, ends, weights, currents);
        case 3: return add_spikes_of<3>(Patterns<3>{}, indices, ends, weights, currents);
        default: return add_spikes_of<4>(Patterns<4>{}, indices, ends, weights, currents);
    }
}

void count_linear(const Index* indices, const float* values, const std::uint32_t* ends, std::size_t num_steps,
                  const float* weights, float* currents) {
    switch (num_steps) {
        case 1: return add_counts_of<1>(Patterns<1>{}, indices, values, ends, weights, currents);
        case 2: return add_counts_of<2>(Patterns<2>{}, indices, values, ends, weights, currents);
        case 3: return add_counts_of<3>(Patterns<3>{}, indices, values, ends, weights, currents);
        default: return add_counts_of<4>(Patterns<4>{}, indices, values, ends, weights, currents);
    }
}
