// The structs of spikformer.h and spikformer_probes.h as objects: what an engine says of itself, and of its last run.

/**
 * @typedef {import("./memory.js").Memory} Memory
 * @typedef {{channels: number, height: number, width: number, patchSize: number, timeSteps: number,
 *   numClasses: number}} Shape  Height and width are 0 if the network takes any multiple of patchSize.
 * @typedef {{input: "unknown" | "pictures" | "recordings", height: number, width: number, channels: number,
 *   timeSteps: number, cropRatio: number, resampling: "nearest" | "bilinear" | "bicubic", mean: number[] | null,
 *   std: number[] | null}} Preprocessing
 * @typedef {{name: string, op: string, neurons: boolean, channels: number, height: number, width: number}} Op
 *   Its kind as in the file, and what it writes.
 * @typedef {{name: string, listMs: number, productMs: number, density: number | null, denseShare: number}} Profile
 *   What an op with a product did. The density is null for pixels and for attention's product.
 */

const INPUTS = /** @type {const} */ (["unknown", "pictures", "recordings"]);
const FILTERS = /** @type {const} */ (["nearest", "bilinear", "bicubic"]);
const SHAPE = 24, PREPROCESSING = 48, OP = 24, REPORT = 48; // bytes, where pointers and sizes have four

/** @param {Memory} memory @param {number} engine @returns {Shape} */
export function readShape(memory, engine) {
  return memory.borrow((lend) => {
    const place = lend(SHAPE);
    memory.check(memory.exports.spikformer_get_shape(engine, place));
    const [channels, height, width, patchSize, timeSteps, numClasses] = memory.numbers(place, SHAPE / 4);
    return { channels, height, width, patchSize, timeSteps, numClasses };
  });
}

/**
 * Null if the file does not say what its inputs are.
 * @param {Memory} memory @param {number} engine @returns {Preprocessing | null}
 */
export function readPreprocessing(memory, engine) {
  return memory.borrow((lend) => {
    const place = lend(PREPROCESSING);
    memory.check(memory.exports.spikformer_get_preprocessing(engine, place));
    const [input, height, width, channels, timeSteps] = memory.numbers(place, 5);
    if (input === 0) return null;
    const cropRatio = memory.double(place + 24), [resampling, mean, std] = memory.numbers(place + 32, 3);
    /** @param {number} at */
    const floats = (at) => (at === 0 ? null : [...memory.floats(at, channels)]);
    return {
      input: INPUTS[input], height, width, channels, timeSteps, cropRatio, resampling: FILTERS[resampling],
      mean: floats(mean), std: floats(std),
    };
  });
}

/**
 * The ops in their order, for inputs of that size.
 * @param {Memory} memory @param {number} engine @param {number} height @param {number} width @returns {Op[]}
 */
export function readOps(memory, engine, height, width) {
  return memory.borrow((lend) => {
    const count = memory.exports.spikformer_num_ops(engine), ops = lend(count * OP);
    memory.check(memory.exports.spikformer_get_ops(engine, height, width, ops));
    return Array.from({ length: count }, (_, index) => {
      const [name, op, neurons, ...size] = memory.numbers(ops + index * OP, OP / 4), [channels, rows, columns] = size;
      const about = { name: memory.text(name), op: memory.text(op), neurons: neurons !== 0 };
      return { ...about, channels, height: rows, width: columns };
    });
  });
}

/** Of the last run or step. @param {Memory} memory @param {number} engine @returns {Profile[]} */
export function readReports(memory, engine) {
  return memory.borrow((lend) => {
    const capacity = memory.exports.spikformer_num_ops(engine), reports = lend(capacity * REPORT), out = lend(4);
    memory.check(memory.exports.spikformer_get_reports(engine, capacity, reports, out));
    return Array.from({ length: memory.numbers(out, 1)[0] }, (_, index) => {
      const place = reports + index * REPORT, [name] = memory.numbers(place, 1);
      const [listMs, productMs, additions, inputs] = [8, 16, 24, 32].map((at) => memory.double(place + at));
      const [denseSamples, samples] = memory.numbers(place + 40, 2), density = inputs > 0 ? additions / inputs : null;
      return { name: memory.text(name), listMs, productMs, density, denseShare: denseSamples / samples };
    });
  });
}
