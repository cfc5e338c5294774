// What attention attends to: Q Kᵀ · scale of tapped spikes by head and step, or the tokens that a mask lets pass.

/** @typedef {import("./types.js").Op} Op */
/** @typedef {import("./types.js").Attention} Attention */

/**
 * The maps of one attention at one step: for each head a weight for each token, none negative.
 * Of products, the mean over queries, or the row of one; of masks, the share of a head's channels that pass.
 * @param {Op[]} ops
 * @param {Attention} attention
 * @param {(number: number) => Uint8Array | null} buffers
 * @param {number} step
 * @param {number} query -1 for the mean of all
 * @returns {{height: number, width: number, heads: Float32Array[]} | null}
 */
export function attentionMaps(ops, attention, buffers, step, query) {
  const op = ops[attention.number - 1], { height, width, channels } = op, tokens = height * width;
  const share = channels / attention.heads;
  const numbers = attention.form === "product" ? op.inputs.slice(0, 2) : [attention.number];
  const [first, second] = numbers.map(buffers).map((each) => each?.subarray(step * tokens * channels));
  if (!first) return null;
  const heads = Array.from({ length: attention.heads }, (_, head) => {
    if (attention.form === "mask") return passing(first, tokens, channels, head * share, share);
    return weights(first, /** @type {Uint8Array} */ (second), { tokens, channels, from: head * share, share, query },
      op.scale ?? 1);
  });
  return { height, width, heads };
}

/**
 * Σ over queries i, or of one, of qᵢ · kⱼ · scale; the mean over queries is that of the sum of all.
 * @param {Uint8Array} queries
 * @param {Uint8Array} keys
 * @param {{tokens: number, channels: number, from: number, share: number, query: number}} head
 * @param {number} scale
 */
function weights(queries, keys, { tokens, channels, from, share, query }, scale) {
  const asked = new Float32Array(share);
  const [begin, end] = query < 0 ? [0, tokens] : [query, query + 1];
  for (let token = begin; token < end; token++) {
    for (let channel = 0; channel < share; channel++) asked[channel] += queries[token * channels + from + channel];
  }
  return Float32Array.from({ length: tokens }, (_, token) => {
    let sum = 0;
    for (let channel = 0; channel < share; channel++) sum += asked[channel] * keys[token * channels + from + channel];
    return (sum * scale) / (end - begin);
  });
}

/**
 * @param {Uint8Array} spikes
 * @param {number} tokens
 * @param {number} channels
 * @param {number} from
 * @param {number} share
 */
function passing(spikes, tokens, channels, from, share) {
  return Float32Array.from({ length: tokens }, (_, token) => {
    let sum = 0;
    for (let channel = 0; channel < share; channel++) sum += spikes[token * channels + from + channel];
    return sum / share;
  });
}

/**
 * The mean of several maps.
 * @param {Float32Array[]} maps
 */
export function meanMap(maps) {
  return maps[0].map((_, index) => maps.reduce((sum, map) => sum + map[index], 0) / maps.length);
}

/**
 * The channels of a head among the neurons whose spikes it becomes.
 * @param {Op[]} ops
 * @param {Attention} attention
 * @param {number} head
 * @returns {number[]}
 */
export function headChannels(ops, attention, head) {
  const neuron = ops.find((op) => op.name === attention.neuron);
  const share = (neuron?.channels ?? 0) / attention.heads;
  return Array.from({ length: share }, (_, index) => head * share + index);
}
