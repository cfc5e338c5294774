// What an engine does, as lines and arrays that compare with the Python engine's; for Node and for a browser.

/**
 * Ops and reports as lines. Then arrays: logits with those of each step and of a stream of two; all spikes and
 * membranes; logits and spikes while two ops are changed; and logits afterwards.
 * @param {Awaited<ReturnType<typeof import("../../src/spikformer/page/engine.js").compileCore>>} core
 * @param {Uint8Array} file @param {Float32Array} x
 * @param {number} mode @param {number} batch @param {number} timeSteps @param {number} height @param {number} width
 */
export function probe(core, file, x, mode, batch, timeSteps, height, width) {
  const engine = core.load(file, { mode: /** @type {const} */ (["auto", "events", "dense"])[mode] });
  const sizes = { batch, timeSteps, height, width }, ops = engine.opsAt(height, width);
  const neurons = ops.filter((op) => op.neurons), spikes = neurons.map((op) => op.name);
  const seen = engine.run(x, { ...sizes, spikes, membranes: spikes });
  /** @type {(Float32Array | Uint8Array)[]} */
  const parts = [seen.logits, ...seen.steps];
  const state = engine.newState(batch, { height, width }), frame = x.length / (timeSteps || 1);
  for (const t of [0, 1]) {
    const begin = timeSteps > t ? t * frame : 0;
    parts.push(engine.step(state, x.subarray(begin, begin + frame)));
  }
  for (const name of spikes) {
    parts.push(seen.spikes.get(name) ?? new Uint8Array(), seen.membranes.get(name) ?? new Float32Array());
  }
  engine.intervene(spikes[0], { silence: [0, neurons[0].channels - 1] });
  engine.intervene(spikes[spikes.length - 1], { noise: 0.25, seed: Number.MAX_SAFE_INTEGER });
  const changed = engine.run(x, { ...sizes, spikes });
  parts.push(changed.logits, ...spikes.map((name) => changed.spikes.get(name) ?? new Uint8Array()));
  engine.clearInterventions();
  parts.push(engine.run(x, sizes).logits);
  engine.free();
  const lines = [
    ...ops.map((op) => [op.name, op.op, Number(op.neurons), op.channels, op.height, op.width].join(" ")),
    ...seen.profile.map((op) => [op.name, op.density ?? -1, op.denseShare].join(" ")),
  ];
  return { lines, parts };
}
