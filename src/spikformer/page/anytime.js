// Anytime inference, as spikformer/engine/anytime.py: probabilities after each step, and the step that may be the last.

/**
 * After each step, the softmax of the mean of the readouts so far.
 * @param {Float32Array[]} readouts
 * @returns {Float64Array[]}
 */
export function sharesAfterSteps(readouts) {
  const sums = new Float64Array(readouts[0]?.length ?? 0);
  return readouts.map((readout, step) => {
    readout.forEach((value, index) => (sums[index] += value));
    return softmax(sums.map((sum) => sum / (step + 1)));
  });
}

/**
 * @param {Float64Array} logits
 * @returns {Float64Array}
 */
export function softmax(logits) {
  const largest = logits.reduce((most, value) => Math.max(most, value), -Infinity);
  const powers = logits.map((value) => Math.exp(value - largest));
  const total = powers.reduce((sum, value) => sum + value, 0);
  return powers.map((value) => value / total);
}

/**
 * The first step, from 0, at which a class has that probability; null if none has.
 * @param {Float64Array[]} shares
 * @param {number} confidence
 * @returns {number | null}
 */
export function exitStep(shares, confidence) {
  const found = shares.findIndex((each) => each[likeliest(each)] >= confidence);
  return found < 0 ? null : found;
}

/**
 * The index of the largest share, the first of several.
 * @param {Float64Array | Float32Array} shares
 * @returns {number}
 */
export function likeliest(shares) {
  let best = 0;
  for (let index = 1; index < shares.length; index++) if (shares[index] > shares[best]) best = index;
  return best;
}

/**
 * Whether no spike reached the head in any step: its readouts are the bias alone, to the bit.
 * @param {Float32Array[]} readouts
 * @param {number[]} resting
 * @returns {boolean}
 */
export function isQuiet(readouts, resting) {
  return readouts.every((readout) => readout.every((value, index) => value === resting[index]));
}
