// Unit tests of the page's modules: node --test scripts.test.mjs.
import assert from "node:assert/strict";
import { test } from "node:test";

import { exitStep, isQuiet, likeliest, sharesAfterSteps, softmax } from "../../src/spikformer/page/anytime.js";
import { FileProblem, toFrames } from "../../src/spikformer/page/events.js";
import { readRecording } from "../../src/spikformer/page/formats.js";
import { mosaicGrid, rgb } from "../../src/spikformer/page/plots.js";
import { isPicture } from "../../src/spikformer/page/picture.js";
import { fromBase64, occlude, patchGrid, toBase64, toBytes, toInput } from "../../src/spikformer/page/sample.js";
import { fromLink, initialState, isChanged, toLink } from "../../src/spikformer/page/state.js";
import { amount, layerTitle, percent } from "../../src/spikformer/page/ui.js";

const seen = { kind: "image", size: [2, 4], channels: 1, mean: [0.3], std: [0.4] };
const about = {
  card: { confidence: null, results: [] }, classes: ["a", "b"], preprocessing: seen, timeSteps: 4, mostSteps: 16, patchSize: 2,
  ops: [
    { name: "one", op: "fire", channels: 8, height: 2, width: 4 }, { name: "two", op: "fire", channels: 4, height: 1, width: 2 },
    { name: "mix", op: "attend", channels: 4, height: 1, width: 2 },
  ],
  attention: [{ block: "blocks.0", form: "product", number: 3, heads: 2, neuron: "two" }],
};

test("probabilities are the softmax of the mean so far, and end at the first that is sure", () => {
  const shares = sharesAfterSteps([Float32Array.of(0, 0), Float32Array.of(0, 4)]);
  assert.deepEqual([...shares[0]], [0.5, 0.5]);
  assert.ok(Math.abs(shares[1][1] - 1 / (1 + Math.exp(-2))) < 1e-15);
  assert.equal(exitStep(shares, 0.5), 0);
  assert.equal(exitStep(shares, 0.8), 1);
  assert.equal(exitStep(shares, 0.9), null);
  assert.equal(likeliest(Float64Array.of(0.2, 0.4, 0.4)), 1);
  assert.deepEqual([...softmax(Float64Array.of(1000, -1000))], [1, 0]);
  assert.equal(isQuiet([Float32Array.of(1, 2)], [1, 2]), true);
  assert.equal(isQuiet([Float32Array.of(1, 2.5)], [1, 2]), false);
});

test("bytes and inputs are each other's inverse", () => {
  const bytes = Uint8Array.from({ length: 256 }, (_, index) => index);
  assert.deepEqual(toBytes(toInput(bytes, { ...seen, size: [16, 16] }), { ...seen, size: [16, 16] }), bytes);
  assert.deepEqual(toBytes(toInput(bytes, { ...seen, mean: null, std: null }), { ...seen, mean: null, std: null }), bytes);
  assert.deepEqual(fromBase64(toBase64(bytes)), bytes);
});

test("a hidden patch is black, or without events", () => {
  const [hidden] = occlude([new Float32Array(8).fill(1)], [1], 2, seen);
  const black = toInput(Uint8Array.of(0), { ...seen, size: [1, 1] })[0];
  assert.deepEqual([...hidden], [1, 1, black, black, 1, 1, black, black]);
  const events = occlude([new Float32Array(16).fill(3)], [0], 2, { ...seen, kind: "events", channels: 2 });
  assert.deepEqual([...events[0]], [0, 0, 3, 3, 0, 0, 3, 3, 0, 0, 3, 3, 0, 0, 3, 3]);
  assert.deepEqual(patchGrid({ ...seen, size: [5, 4] }, 2), { rows: 3, columns: 2 });
});

test("a link gives the state back", () => {
  const state = initialState(about);
  Object.assign(state, { steps: 7, step: 2, confidence: 0.75, layer: "two", channel: 3, position: 1, head: 1, query: 1, convention: "strict" });
  state.changes = { silent: ["one"], heads: ["0:1"], noise: { two: 0.25 }, occluded: [0, 1] };
  const bytes = Uint8Array.from({ length: 8 }, (_, index) => 31 * index);
  assert.deepEqual(fromLink(`#${toLink(state, { item: null, bytes })}`, about, 3), { state, source: { item: null, bytes } });
  assert.deepEqual(fromLink(toLink(state, { item: 2, bytes }), about, 3).source, { item: 2, bytes: null });
  assert.equal(isChanged(state, about), true);
  assert.equal(isChanged(initialState(about), about), false);
});

test("a link that does not fit is left aside", () => {
  const fresh = { state: initialState(about), source: { item: null, bytes: null } };
  for (const link of [
    "steps=17&step=99&layer=<script>&channel=-1&attention=5&head=9&query=x&convention=evil&confidence=7",
    "silent=three&off=0:7&off=1:0&off=0:1e0&noise=0.9:two&noise=0.1:three&noise=NaN:one&hidden=7.x.-1&sample=3&picture=!!",
    "picture=AAAA", "%00%ff=%", `layer=${"a".repeat(50000)}&steps=3`, "__proto__=1&constructor=2",
  ]) assert.deepEqual(fromLink(link, about, 3), fresh);
});

test("numbers and names as people read them", () => {
  assert.deepEqual([0, 7, 999, 1234, 3.37e6].map((value) => amount(value)), ["0", "7", "999", "1.23 k", "3.37 M"]);
  assert.deepEqual([0, 3.3e-6, 6.67e-7, 0.5, 2].map((value) => amount(value, "J")), ["0 J", "3.30 µJ", "667 nJ", "500 mJ", "2 J"]);
  assert.deepEqual([0, 0.123, 1].map(percent), ["0 %", "12.3 %", "100 %"]);
  assert.equal(layerTitle("blocks.0.attention.query.neuron"), "block 1 · attention query");
  assert.equal(layerTitle("stem.stages.1.neuron"), "stem 2");
  assert.deepEqual(rgb("#0a10ff"), [10, 16, 255]);
  const { columns, rows } = mosaicGrid(64, 8, 8);
  assert.ok(columns * rows >= 64 && columns >= rows);
});

test("frames by count and by time, resized and cropped", () => {
  const recording = {
    time: Float64Array.of(0, 1, 2, 10, 100), x: Uint16Array.of(0, 1, 2, 3, 3), y: Uint16Array.of(0, 0, 1, 1, 1),
    on: Uint8Array.of(0, 1, 1, 1, 0), size: [2, 4], guessed: false,
  };
  const form = { kind: "events", size: [2, 4], channels: 2, slicing: "count", fit: "resize" };
  const count = (frames) => frames.map((frame) => frame.reduce((sum, value) => sum + value, 0));
  assert.deepEqual(count(toFrames(recording, 2, form)), [2, 3]);
  assert.deepEqual(count(toFrames(recording, 2, { ...form, slicing: "time" })), [4, 1]);
  assert.deepEqual([...toFrames(recording, 1, { ...form, size: [1, 2] })[0]], [1, 1, 1, 2]);
  assert.deepEqual([...toFrames(recording, 1, { ...form, size: [2, 2], fit: "crop" })[0]], [0, 0, 0, 0, 1, 0, 0, 1]);
  assert.deepEqual([...toFrames(recording, 1, { ...form, size: [4, 2], swap_axes: true })[0]].length, 16);
  assert.throws(() => toFrames(recording, 1, { ...form, size: [9, 9], fit: "crop" }), FileProblem);
  assert.throws(() => toFrames({ ...recording, guessed: true }, 1, { ...form, sensor: [1, 1] }), FileProblem);
});

test("what is no recording is a problem, and nothing else", async () => {
  const text = (content) => new TextEncoder().encode(content);
  const wrong = {
    "empty.bin": [], "cut.bin": [1, 2, 3, 4], "text.txt": text("hello"), "none.npz": text("PK\x03\x04"),
    "two.aedat": text("#!AER-DAT2.0\r\n#End Of ASCII Header\r\n\x00\x01"), "new.aedat4": text("#!AER-DAT4.0\r\n"),
    "long.aedat": text("#!AER-DAT2.0\n".concat("# x\n".repeat(300000))), "three.aedat": text("#!AER-DAT3.1\r\n#!END-HEADER\r\n\x01\x00"),
    "chip.aedat": text("#!AER-DAT2.0\r\n# AEChip: a.b.Unknown\r\n#End Of ASCII Header\r\n"),
  };
  for (const [name, content] of Object.entries(wrong)) {
    await assert.rejects(readRecording(Uint8Array.from(content), name), FileProblem, name);
  }
  assert.equal(isPicture(text("<svg onload=alert(1)>")), false);
  assert.equal(isPicture(Uint8Array.of(0x89, 0x50, 0x4e, 0x47)), true);
});
