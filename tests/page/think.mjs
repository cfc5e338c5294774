// What the page computes, without the page: node think.mjs FOLDER, which holds wasm, engine, about.json and samples.json;
// prints a line of JSON for each sample. A sample has bytes in base64 and may have steps, changes and a query.
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { exitStep } from "../../src/spikformer/page/anytime.js";
import { attentionMaps } from "../../src/spikformer/page/attention.js";
import { spent } from "../../src/spikformer/page/cost.js";
import { compileCore } from "../../src/spikformer/page/engine.js";
import { readRecording } from "../../src/spikformer/page/formats.js";
import { fromBase64 } from "../../src/spikformer/page/sample.js";
import { think } from "../../src/spikformer/page/think.js";

const [wasm, folder] = process.argv.slice(2);
const read = (name) => readFileSync(join(folder, name));
const about = JSON.parse(read("about.json"));
const core = await compileCore(readFileSync(wasm));
const engine = core.load(new Uint8Array(read("page.engine")), { mode: "events" });
const nothing = { silent: [], heads: [], noise: {}, occluded: [] };

for (const { kind, bytes, steps = about.timeSteps, changes = {}, query = -1, confidence = 0.9 } of JSON.parse(read("samples.json"))) {
  const content = fromBase64(bytes);
  const sample = kind === "recording" ? { kind, recording: await readRecording(content, "a.npz") } : { kind, values: content };
  const last = about.ops.filter((op) => op.op === "fire").at(-1);
  const thought = think(engine, about, sample, steps, { ...nothing, ...changes }, [last.name]);
  const fires = about.ops.map((op, index) => [op, thought.buffers(index + 1)]);
  console.log(JSON.stringify({
    logits: [...thought.logits],
    readouts: thought.readouts.map((readout) => [...readout]),
    shares: thought.shares.map((shares) => [...shares]),
    exit: exitStep(thought.shares, confidence),
    quiet: thought.quiet,
    frames: thought.frames.map((frame) => [...frame]),
    spikes: thought.cost.spikes,
    sums: Object.fromEntries(fires.filter(([, buffer]) => buffer).map(([op, buffer]) => [op.name, buffer.reduce((sum, value) => sum + value, 0)])),
    layers: thought.cost.layers,
    energy: Object.fromEntries(["paper", "strict", "entrywise"].map((name) => [name, spent(thought.cost, name, steps, about.energy)])),
    attention: about.attention.map((each) => attentionMaps(about.ops, each, thought.buffers, steps - 1, query)?.heads.map((head) => [...head])),
    membrane: [...thought.membranes.get(last.name)],
  }));
}
