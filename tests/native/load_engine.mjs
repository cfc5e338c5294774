// load_engine.c through engine.js: node load_engine.mjs WASM FILES. One instance loads them all, and runs what it can; a
// trap ends it with another exit code than 0.
import { readFileSync } from "node:fs";

import { EngineError, compileCore } from "../../src/spikformer/page/engine.js";

const [wasm, ...paths] = process.argv.slice(2);
const core = await compileCore(readFileSync(wasm));

/** The status that a file is loaded and run with. @param {string} path */
function statusOf(path) {
  try {
    const engine = core.load(readFileSync(path)), { channels, height, width, patchSize } = engine.shape;
    const rows = height || patchSize, columns = width || patchSize;
    try {
      engine.run(new Float32Array(channels * rows * columns), { height: rows, width: columns });
    } finally {
      engine.free();
    }
    return 0;
  } catch (error) {
    if (error instanceof EngineError) return error.code;
    throw error;
  }
}

paths.forEach((path) => console.log(statusOf(path)));
