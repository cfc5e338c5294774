// Buffers of a program from the spikes of its neurons: pools, masks, max filters and residual sums, as engine/reference.

/** @typedef {import("./types.js").Op} Op */
/**
 * Spikes or counts of every step, [T][positions][channels].
 * @typedef {Uint8Array} Buffer
 */

/**
 * A function from the number of a buffer to its content; null for pixels and floats, which cannot be derived from spikes.
 * @param {Op[]} ops
 * @param {Map<string, Uint8Array>} spikes by the name of the neurons' op
 * @param {number} steps
 * @returns {(number: number) => Buffer | null}
 */
export function buffersOf(ops, spikes, steps) {
  /** @type {Map<number, Buffer | null>} */
  const known = new Map();
  /** @type {(number: number) => Buffer | null} */
  const get = (number) => {
    let buffer = known.get(number);
    if (buffer === undefined) {
      buffer = number === 0 ? null : compute(number);
      known.set(number, buffer);
    }
    return buffer;
  };
  /** @type {(number: number) => Buffer | null} */
  const compute = (number) => {
    const op = ops[number - 1];
    if (op.op === "fire") return spikes.get(op.name) ?? null;
    if (op.kind !== "spikes" && op.kind !== "counts") return null;
    const inputs = op.inputs.map(get);
    const [first, second] = inputs;
    if (!first || inputs.includes(null)) return null;
    const from = ops[op.inputs[0] - 1];
    const filter = FILTERS[op.op];
    if (filter) return filter(first, from, op, steps);
    if (!second) return null;
    if (op.op === "add") return first.map((value, index) => value + second[index]);
    return op.op === "and" ? masked(first, second, op, steps) : null;
  };
  return get;
}

/** @type {Record<string, (buffer: Buffer, from: Op, op: Op, steps: number) => Buffer>} */
const FILTERS = {
  pool: (buffer, from, op, steps) => {
    const reach = op.kernel === 3 ? [-1, 0, 1] : [0, 1];
    return largest(buffer, from, op, steps, (row, column) =>
      reach.flatMap((down) => reach.map((right) => place(from, 2 * row + down, 2 * column + right))),
    );
  },
  dilate: (buffer, from, op, steps) =>
    largest(buffer, from, op, steps, (row, column) =>
      [-1, 0, 1].flatMap((down) => [-1, 0, 1].map((right) => place(from, row + down, column + right))),
    ),
  pool_tokens: (buffer, from, op, steps) => {
    const half = ((op.kernel ?? 1) - 1) / 2, count = from.height * from.width;
    return largest(buffer, from, op, steps, (row, column) => {
      const token = row * from.width + column;
      const first = Math.max(0, token - half), last = Math.min(count - 1, token + half);
      return Array.from({ length: last - first + 1 }, (_, index) => first + index);
    });
  },
  dilate_heads: (buffer, from, op, steps) => {
    const { channels } = from, width = channels / (op.heads ?? 1), count = from.height * from.width;
    const wider = new Uint8Array(buffer.length);
    for (let index = 0; index < buffer.length; index++) {
      const channel = index % channels, inHead = channel % width, token = Math.floor(index / channels) % count;
      for (let down = token > 0 ? -1 : 0; down <= (token + 1 < count ? 1 : 0); down++) {
        for (let right = inHead > 0 ? -1 : 0; right <= (inHead + 1 < width ? 1 : 0); right++) {
          wider[index] |= buffer[index + down * channels + right];
        }
      }
    }
    return wider.subarray(0, steps * count * channels);
  },
};

/**
 * @param {Op} from
 * @param {number} row
 * @param {number} column
 * @returns {number} -1 outside
 */
function place(from, row, column) {
  const inside = row >= 0 && column >= 0 && row < from.height && column < from.width;
  return inside ? row * from.width + column : -1;
}

/**
 * Of every output position, channel by channel, the largest of some input positions.
 * @param {Buffer} buffer
 * @param {Op} from
 * @param {Op} op
 * @param {number} steps
 * @param {(row: number, column: number) => number[]} neighbours
 * @returns {Buffer}
 */
function largest(buffer, from, op, steps, neighbours) {
  const { channels } = op, positions = op.height * op.width, before = from.height * from.width;
  const output = new Uint8Array(steps * positions * channels);
  for (let position = 0; position < positions; position++) {
    const near = neighbours(Math.floor(position / op.width), position % op.width).filter((each) => each >= 0);
    for (let step = 0; step < steps; step++) {
      const start = (step * positions + position) * channels;
      for (const each of near) {
        const other = (step * before + each) * channels;
        for (let channel = 0; channel < channels; channel++) {
          const value = buffer[other + channel];
          if (value > output[start + channel]) output[start + channel] = value;
        }
      }
    }
  }
  return output;
}

/**
 * x ∧ mask: of one shape, one position for all, or one channel for each head.
 * @param {Buffer} x
 * @param {Buffer} mask
 * @param {Op} op
 * @param {number} steps
 * @returns {Buffer}
 */
function masked(x, mask, op, steps) {
  const { channels } = op, positions = op.height * op.width, heads = op.heads ?? 1, width = channels / heads;
  const wanted = op.inverted ? 0 : 1;
  return x.map((value, index) => {
    const channel = index % channels, place = Math.floor(index / channels), step = Math.floor(place / positions);
    let bit = mask[index];
    if (mask.length === steps * channels && positions > 1) bit = mask[step * channels + channel];
    else if (mask.length !== x.length) bit = mask[place * heads + Math.floor(channel / width)];
    return bit === wanted ? value : 0;
  });
}
