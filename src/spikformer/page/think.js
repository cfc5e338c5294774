// One run of the network on one input: frames in, spikes, probabilities and costs out, with whatever was changed.

import { isQuiet, sharesAfterSteps } from "./anytime.js";
import { headChannels } from "./attention.js";
import { costOf } from "./cost.js";
import { toFrames } from "./events.js";
import { buffersOf } from "./maps.js";
import { occlude, toInput } from "./sample.js";

/** @typedef {import("./types.js").About} About */
/** @typedef {import("./types.js").Changes} Changes */
/** @typedef {import("./types.js").Sample} Sample */
/** @typedef {import("./types.js").Thought} Thought */

const SLOW_MS = 100; // runs that take longer are not repeated to be timed

/**
 * The frames [C][H][W] that a sample is at every step; those of a picture are one and the same.
 * @param {Sample} sample
 * @param {number} steps
 * @param {About} about
 * @returns {Float32Array[]}
 */
export function framesOf(sample, steps, { preprocessing: seen }) {
  if (sample.recording) return toFrames(sample.recording, steps, seen);
  const values = sample.values ?? new Uint8Array();
  if (sample.kind === "picture") {
    const frame = toInput(/** @type {Uint8Array} */ (values), seen);
    return new Array(steps).fill(frame);
  }
  const size = 2 * seen.size[0] * seen.size[1], count = values.length / size;
  return Array.from({ length: steps }, (_, step) => {
    const start = Math.min(step, count - 1) * size; // the last frame stays, where more steps are asked for
    return Float32Array.from(values.subarray(start, start + size));
  });
}

/**
 * @param {import("./types.js").Engine} engine
 * @param {About} about
 * @param {Sample} sample
 * @param {number} steps
 * @param {Changes} changes
 * @param {string[]} membranes names of neurons whose membranes are wanted
 * @returns {Thought}
 */
export function think(engine, about, sample, steps, changes, membranes) {
  const whole = framesOf(sample, steps, about);
  // A picture is occluded once, so that its frames stay one and the same.
  const still = sample.kind === "picture";
  const hidden = occlude(still ? whole.slice(0, 1) : whole, changes.occluded, about.patchSize, about.preprocessing);
  const frames = still ? new Array(steps).fill(hidden[0]) : hidden;
  const asTrained = still && steps === about.timeSteps; // the engine repeats it itself, and convolves it once
  const x = asTrained ? frames[0] : joined(frames);
  const options = { timeSteps: asTrained ? 0 : steps, batch: 1 };
  intervene(engine, about, changes);
  const names = about.ops.filter((op) => op.op === "fire").map((op) => op.name);
  const started = performance.now();
  const { logits, steps: readouts, spikes, membranes: potentials, profile } = engine.run(x, { ...options, spikes: names, membranes });
  const tapped = performance.now();
  if (tapped - started < SLOW_MS) engine.run(x, options); // the time of a run without taps
  const milliseconds = tapped - started < SLOW_MS ? performance.now() - tapped : tapped - started;
  engine.clearInterventions();
  const buffers = buffersOf(about.ops, spikes, steps);
  return {
    steps,
    frames,
    logits,
    readouts,
    shares: sharesAfterSteps(readouts),
    quiet: isQuiet(readouts, about.resting),
    spikes,
    membranes: potentials,
    buffers,
    cost: costOf(about.ops, buffers, frames),
    times: new Map(profile.map((each) => [each.name, each.listMs + each.productMs])),
    milliseconds,
  };
}

/**
 * @param {import("./types.js").Engine} engine
 * @param {About} about
 * @param {Changes} changes
 */
function intervene(engine, about, { silent, heads, noise }) {
  engine.clearInterventions();
  for (const op of about.ops.filter((each) => each.op === "fire")) {
    const cut = silent.includes(op.name) ? Array.from({ length: op.channels }, (_, channel) => channel) : headsCut(about, heads, op.name);
    const share = noise[op.name] ?? 0;
    if (cut.length || share) engine.intervene(op.name, { silence: cut, noise: share, seed: 0 });
  }
}

/**
 * The channels of the heads that are off, as far as they are those of some neurons.
 * @param {About} about
 * @param {string[]} heads
 * @param {string} name
 */
function headsCut(about, heads, name) {
  return heads.flatMap((each) => {
    const [block, head] = each.split(":").map(Number), attention = about.attention[block];
    return attention.neuron === name ? headChannels(about.ops, attention, head) : [];
  });
}

/** @param {Float32Array[]} frames */
function joined(frames) {
  const all = new Float32Array(frames.length * frames[0].length);
  frames.forEach((frame, index) => all.set(frame, index * frame.length));
  return all;
}
