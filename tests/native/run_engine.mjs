// run_engine.c for engine.wasm: node run_engine.mjs WASM ENGINE INPUT OUTPUT MODE BATCH STEPS HEIGHT WIDTH.
// With --fill ENGINE, it makes states until memory is full, and prints the status of the last, of one more after all are
// freed, and the bytes.
import { readFileSync, writeFileSync } from "node:fs";

const [wasm, ...words] = process.argv.slice(2);
const module = await WebAssembly.compile(readFileSync(wasm));
// Clocks and error output, all that the library ever asks for.
const names = WebAssembly.Module.imports(module).map(({ name }) => name);
const host = Object.fromEntries(names.map((name) => [name, () => 0]));
const instance = await WebAssembly.instantiate(module, { wasi_snapshot_preview1: host });
const core = instance.exports;
core._initialize();

const bytesAt = (place, size) => new Uint8Array(core.memory.buffer, place, size);
const numbersAt = (place, count) => new Uint32Array(core.memory.buffer, place, count);

function lastError() {
  const text = bytesAt(core.spikformer_last_error(), 1024);
  return new TextDecoder().decode(text.subarray(0, text.indexOf(0)));
}

function check(status, what) {
  if (status !== 0) throw new Error(`${what}: ${lastError()}`);
}

function allocate(size) {
  const place = core.malloc(size);
  if (place === 0) throw new Error(`no memory for ${size} bytes`);
  return place;
}

function put(bytes) {
  const place = allocate(bytes.length + 1);
  bytesAt(place, bytes.length).set(bytes);
  return place;
}

function load(path, mode) {
  const content = readFileSync(path), bytes = put(content), out = allocate(4), options = allocate(12);
  numbersAt(options, 3).set([0, 0, mode]);
  const status = core.spikformer_load_memory(bytes, content.length, options, out);
  const engine = status === 0 ? numbersAt(out, 1)[0] : 0;
  [bytes, out, options].forEach(core.free);
  return { status, engine };
}

function run([path, inputPath, output, mode, ...sizes]) {
  const [batch, steps, height, width] = sizes.map(Number);
  const { status, engine } = load(path, Number(mode));
  check(status, "load");
  const shape = allocate(24);
  check(core.spikformer_get_shape(engine, shape), "shape");
  const [channels, , , , ownSteps, classes] = numbersAt(shape, 6);
  const x = put(readFileSync(inputPath)), frame = 4 * batch * channels * height * width, readout = 4 * batch * classes;
  const total = (1 + (steps || ownSteps) + 2) * readout, logits = allocate(total);
  check(core.spikformer_run(engine, x, batch, steps, height, width, logits, logits + readout), "run");
  const out = allocate(4);
  check(core.spikformer_new_state(engine, batch, height, width, out), "new_state");
  const state = numbersAt(out, 1)[0];
  for (const t of [0, 1]) {
    const from = x + (steps > t ? t * frame : 0);
    check(core.spikformer_step(engine, state, from, logits + total - (2 - t) * readout), "step");
  }
  writeFileSync(output, bytesAt(logits, total));
  core.spikformer_free_state(state);
  core.spikformer_free(engine);
}

function fill(path) {
  const { status, engine } = load(path, 0);
  check(status, "load");
  const shape = allocate(24), out = allocate(4), states = [];
  check(core.spikformer_get_shape(engine, shape), "shape");
  const [, height, width, patch] = numbersAt(shape, 6);
  const more = () => core.spikformer_new_state(engine, 64, height || patch, width || patch, out);
  let failed = more();
  while (failed === 0) {
    states.push(numbersAt(out, 1)[0]);
    failed = more();
  }
  states.forEach(core.spikformer_free_state);
  console.log(failed, more(), core.memory.buffer.byteLength);
}

if (words[0] === "--fill") {
  fill(words[1]);
} else {
  run(words);
}
