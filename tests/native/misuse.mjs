// What engine.js does with mistakes: node misuse.mjs WASM ENGINE. Codes, no leak, no use after freeing;
// exit code 0 if all is as it should be.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

import { EngineError, compileCore } from "../../src/spikformer/page/engine.js";

const [wasm, path] = process.argv.slice(2);
const core = await compileCore(readFileSync(wasm)), file = new Uint8Array(readFileSync(path));
const BAD_ARGUMENT = 1, BAD_FILE = 3, NO_MEMORY = 4;
const memorySize = () => core.memory.exports.memory.buffer.byteLength;
/** @param {number} code @param {() => unknown} call */
function fails(code, call) {
  assert.throws(call, (/** @type {unknown} */ error) => {
    assert.ok(error instanceof EngineError);
    assert.ok(error.message.length > 0);
    return error.code === code;
  });
}

const engine = core.load(file, { mode: "events" });
const { channels, height, width, numClasses } = engine.shape;
const x = Float32Array.from({ length: channels * height * width }, (_, i) => Math.sin(i));
const neurons = engine.ops.filter((op) => op.neurons), { name } = neurons[0];
const { logits, profile } = engine.run(x);

// Files.
fails(BAD_FILE, () => core.load(new Uint8Array(0)));
fails(BAD_FILE, () => core.load(file.subarray(0, file.length - 1)));
// @ts-expect-error
fails(BAD_ARGUMENT, () => core.load(file, { mode: "quick" }));
assert.equal(engine.preprocessing?.input, "pictures");
assert.deepEqual(engine.preprocessing.mean, Array(channels).fill(0.5));
assert.deepEqual(engine.classes, ["Zoë", "<b>", "\u{1f642}"]);
assert.equal(numClasses, 3);

// Inputs.
fails(BAD_ARGUMENT, () => engine.run(x.subarray(1)));
fails(BAD_ARGUMENT, () => engine.run(x, { timeSteps: -1 }));
fails(BAD_ARGUMENT, () => engine.run(x, { timeSteps: 0.5 }));
fails(BAD_ARGUMENT, () => engine.run(x, { batch: 0 }));
fails(BAD_ARGUMENT, () => engine.run(x, { height: width, width: height }));
fails(BAD_ARGUMENT, () => engine.run(x.map(() => NaN)));
fails(BAD_ARGUMENT, () => engine.run(x, { spikes: [name, "nobody"] }));
fails(BAD_ARGUMENT, () => engine.run(x, { membranes: [`${name}\0`] }));
fails(BAD_ARGUMENT, () => engine.opsAt(height + 1, width));
fails(BAD_ARGUMENT, () => engine.prepare(new Uint8Array(5), 2, 1, 3));
fails(BAD_ARGUMENT, () => engine.prepare(new Uint8Array(20), 2, 2, 5));
assert.equal(engine.prepare(new Uint8Array(4), 2, 1, 2).length, x.length);

// Interventions.
for (const silence of [[], [neurons[0].channels], [-1], [0.5]]) {
  fails(BAD_ARGUMENT, () => engine.intervene(name, { silence }));
}
for (const change of [{ noise: 1.1 }, { noise: NaN }, { noise: 0.5, seed: -1 }]) {
  fails(BAD_ARGUMENT, () => engine.intervene(name, change));
}
fails(BAD_ARGUMENT, () => engine.intervene("nobody", { noise: 0.5 }));
assert.deepEqual(engine.run(x).logits, logits);
engine.intervene(name, { silence: [...Array(neurons[0].channels).keys()] });
assert.ok(engine.run(x, { spikes: [name] }).spikes.get(name)?.every((spike) => spike === 0));
engine.clearInterventions();

// A clock that goes on, and a share of inputs that fire.
assert.ok(profile.some((op) => op.productMs > 0));
assert.ok(profile.every(({ density }) => density === null || (density >= 0 && density <= 1)));

// Streams.
fails(BAD_ARGUMENT, () => engine.newState(0));
fails(BAD_ARGUMENT, () => engine.newState(2 ** 32 + 1));
fails(NO_MEMORY, () => engine.newState(2 ** 24));
const state = engine.newState(1), twin = core.load(file);
fails(BAD_ARGUMENT, () => twin.step(state, x));
fails(BAD_ARGUMENT, () => engine.step(state, x.subarray(1)));
assert.equal(engine.step(state, x).length, numClasses);
state.free();
state.free();
fails(BAD_ARGUMENT, () => engine.step(state, x));
const left = twin.newState(1);
twin.free();
twin.free();
left.free();
const late = [
  () => twin.run(x),
  () => twin.step(left, x),
  () => twin.newState(1),
  () => twin.opsAt(height, width),
  () => twin.intervene(name, { noise: 0.5 }),
  () => twin.clearInterventions(),
  () => twin.prepare(new Uint8Array(2), 1, 1, 2),
];
late.forEach((call) => fails(BAD_ARGUMENT, call));

// Memory: what failed or was freed leaves nothing behind, and results outlive its growth.
const kept = engine.run(x, { spikes: [name] });
function repeat() {
  for (let i = 0; i < 300; ++i) {
    core.load(file).free();
    fails(BAD_FILE, () => core.load(file.subarray(0, file.length - 1)));
    fails(BAD_ARGUMENT, () => engine.run(x, { spikes: [name], membranes: ["nobody"] }));
    engine.newState(8).free();
  }
}
repeat(); // memory settles
const before = memorySize();
repeat();
assert.equal(memorySize(), before);
const many = 64, large = new Float32Array(many * x.length);
for (let i = 0; i < many; ++i) large.set(x, i * x.length);
const all = neurons.map((op) => op.name), grown = engine.run(large, { batch: many, spikes: all, membranes: all });
assert.ok(memorySize() > before);
assert.deepEqual(grown.logits.subarray(0, numClasses), logits);
assert.deepEqual(kept.logits, logits);
assert.deepEqual(engine.run(x, { spikes: [name] }).spikes.get(name), kept.spikes.get(name));
engine.free();
