// node formats.mjs FILES: a line of JSON for each, its events, or the problem that the page would show.
import { readFileSync } from "node:fs";
import { basename } from "node:path";

import { FileProblem } from "../../src/spikformer/page/events.js";
import { readRecording } from "../../src/spikformer/page/formats.js";

for (const path of process.argv.slice(2)) {
  try {
    const { time, x, y, on, size, guessed } = await readRecording(new Uint8Array(readFileSync(path)), basename(path));
    console.log(JSON.stringify({ time: [...time], x: [...x], y: [...y], on: [...on], size, guessed }));
  } catch (error) {
    if (!(error instanceof FileProblem)) throw error;
    console.log(JSON.stringify({ problem: error.message }));
  }
}
