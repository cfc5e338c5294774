// What a run costs by the conventions of spikformer/analysis/energy.py: operations of each layer and step.
//
//   paper      an input x costs x accumulates; the first convolution is multiply-accumulates
//   strict     a product whose input is not binary throughout is multiply-accumulates, all of it
//   entrywise  0 costs nothing, 1 an accumulate, anything else a multiply-accumulate

/** @typedef {import("./types.js").Op} Op */
/** @typedef {import("./types.js").Operations} Operations */
/** @typedef {import("./types.js").Cost} Cost */
/** @typedef {import("./types.js").Convention} Convention */
/** @typedef {{mean: number, density: number, ones: number, binary: boolean}} Seen */

/** @type {Convention[]} */
export const CONVENTIONS = ["paper", "strict", "entrywise"];

/**
 * @param {Op[]} ops
 * @param {(number: number) => Uint8Array | null} buffers
 * @param {Float32Array[]} frames the input of every step
 * @returns {Cost}
 */
export function costOf(ops, buffers, frames) {
  const steps = frames.length;
  const layers = ops.filter((op) => op.macs).map((op) => ({
    name: op.name,
    ...(op.op === "attend" ? ofAttention(op, buffers, steps) : ofProduct(ops, op, buffers, frames)),
  }));
  const spikesByStep = new Array(steps).fill(0);
  ops.forEach((op, index) => {
    const fired = op.op === "fire" ? buffers(index + 1) : null;
    if (fired) ofEachStep(fired, steps).forEach((spikes, step) => (spikesByStep[step] += sum(spikes)));
  });
  return { layers, spikes: sum(spikesByStep), spikesByStep };
}

/**
 * Operations and energy of the first steps of a run; those of all are the whole run's.
 * @param {Cost} cost
 * @param {Convention} convention
 * @param {number} steps
 * @param {{macPj: number, acPj: number}} energy
 * @returns {Operations & {picojoules: number}}
 */
export function spent(cost, convention, steps, energy) {
  let macs = 0, acs = 0;
  for (const layer of cost.layers) {
    for (const each of layer.steps[convention].slice(0, steps)) {
      macs += each.macs;
      acs += each.acs;
    }
  }
  return { macs, acs, picojoules: macs * energy.macPj + acs * energy.acPj };
}

/**
 * A convolution or the readout: one product of what enters it with its weights.
 * @param {Op[]} ops
 * @param {Op} op
 * @param {(number: number) => Uint8Array | null} buffers
 * @param {Float32Array[]} frames
 */
function ofProduct(ops, op, buffers, frames) {
  const first = op.inputs[0] === 0, content = buffers(op.inputs[0]);
  const inputs = first ? frames : content ? ofEachStep(content, frames.length) : null;
  const source = ops[op.inputs[0] - 1];
  // Floats that no neuron made cannot be seen from here: they are multiplied, all of them.
  const seen = inputs?.map((each) => look(op.op === "read_out" ? channelMeans(each, source) : each)) ??
    frames.map(() => ({ mean: 1, density: 1, ones: 0, binary: false }));
  const binary = seen.every((each) => each.binary);
  return {
    density: sum(seen.map((each) => each.density)) / frames.length,
    steps: byConvention(seen.map(({ mean, density, ones }) => ({
      paper: first || !inputs ? { macs: op.macs, acs: 0 } : { macs: 0, acs: mean * op.macs },
      strict: binary ? { macs: 0, acs: density * op.macs } : { macs: op.macs, acs: 0 },
      entrywise: { macs: (density - ones) * op.macs, acs: ones * op.macs },
    }))),
  };
}

/**
 * Q Kᵀ V: two products, counted in the order with fewer pairs; only pairs of spikes that meet are added.
 * @param {Op} op
 * @param {(number: number) => Uint8Array | null} buffers
 * @param {number} steps
 */
function ofAttention(op, buffers, steps) {
  const tokens = op.height * op.width, { channels } = op, heads = op.heads ?? 1, width = channels / heads;
  const operands = op.inputs.map((number) => ofEachStep(buffers(number) ?? new Uint8Array(), steps));
  const keysFirst = tokens > width, dense = 2 * tokens * channels * (keysFirst ? width : tokens);
  const seen = Array.from({ length: steps }, (_, step) => {
    const [query, key, value] = operands.map((each) => each[step]);
    const rate = (sum(query) + sum(key) + sum(value)) / (3 * tokens * channels);
    let pairs = 0;
    for (let head = 0; head < heads; head++) {
      const shape = { tokens, channels, from: head * width, width };
      pairs += keysFirst ? meeting(key, value, query, shape, true) : meeting(query, key, value, shape, false);
    }
    return { rate, pairs };
  });
  return {
    density: sum(seen.map((each) => each.pairs)) / (dense * steps),
    steps: byConvention(seen.map(({ rate, pairs }) => ({
      paper: { macs: 0, acs: rate * tokens * tokens * channels },
      strict: { macs: 0, acs: pairs },
      entrywise: { macs: 0, acs: pairs },
    }))),
  };
}

/**
 * Pairs of spikes that meet in Kᵀ V and then in Q (Kᵀ V), or in Q Kᵀ and then in (Q Kᵀ) V, of one head.
 * @param {Uint8Array} one
 * @param {Uint8Array} other
 * @param {Uint8Array} last
 * @param {{tokens: number, channels: number, from: number, width: number}} shape
 * @param {boolean} overTokens whether the first product sums over tokens
 */
function meeting(one, other, last, { tokens, channels, from, width }, overTokens) {
  const [rows, inner] = overTokens ? [width, tokens] : [tokens, width];
  /** @type {(spikes: Uint8Array, row: number, along: number) => number} */
  const at = (spikes, row, along) =>
    overTokens ? spikes[along * channels + from + row] : spikes[row * channels + from + along];
  let pairs = 0;
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < rows; column++) {
      let met = 0;
      for (let along = 0; along < inner; along++) met += at(one, row, along) & at(other, column, along);
      if (!met) continue;
      pairs += met;
      // Of its second product: each spike of the last operand that this entry meets.
      const across = overTokens ? row : column;
      for (let along = 0; along < inner; along++) pairs += at(last, across, along);
    }
  }
  return pairs;
}

/**
 * @param {Record<Convention, Operations>[]} steps
 * @returns {Record<string, Operations[]>}
 */
function byConvention(steps) {
  return Object.fromEntries(CONVENTIONS.map((name) => [name, steps.map((each) => each[name])]));
}

/**
 * The content of each step.
 * @param {Uint8Array} content
 * @param {number} steps
 */
function ofEachStep(content, steps) {
  const size = content.length / steps;
  return Array.from({ length: steps }, (_, step) => content.subarray(step * size, (step + 1) * size));
}

/**
 * The mean over positions of every channel, which the readout multiplies.
 * @param {ArrayLike<number>} entries
 * @param {Op} source
 */
function channelMeans(entries, source) {
  const positions = source.height * source.width, means = new Float64Array(source.channels);
  for (let index = 0; index < entries.length; index++) means[index % source.channels] += entries[index];
  return means.map((total) => total / positions);
}

/**
 * @param {ArrayLike<number>} entries
 * @returns {Seen}
 */
function look(entries) {
  let total = 0, present = 0, ones = 0;
  for (let index = 0; index < entries.length; index++) {
    const value = entries[index];
    total += value;
    present += value !== 0 ? 1 : 0;
    ones += value === 1 ? 1 : 0;
  }
  const count = entries.length;
  return { mean: total / count, density: present / count, ones: ones / count, binary: present === ones };
}

/** @param {ArrayLike<number>} values */
function sum(values) {
  let total = 0;
  for (let index = 0; index < values.length; index++) total += values[index];
  return total;
}
