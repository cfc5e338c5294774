// probe_engine.c through engine.js: node probe_engine.mjs WASM ENGINE INPUT OUTPUT MODE BATCH STEPS HEIGHT WIDTH.
import { readFileSync, writeFileSync } from "node:fs";

import { compileCore } from "../../src/spikformer/page/engine.js";
import { probe } from "./probes.mjs";

const [wasm, path, input, output, mode, ...sizes] = process.argv.slice(2);
const core = await compileCore(readFileSync(wasm));
const content = readFileSync(input);
const x = new Float32Array(content.buffer.slice(content.byteOffset, content.byteOffset + content.byteLength));
const { lines, parts } = probe(core, readFileSync(path), x, Number(mode), ...sizes.map(Number));
lines.forEach((line) => console.log(line));
writeFileSync(output, Buffer.concat(parts.map((part) => Buffer.from(part.buffer, part.byteOffset, part.byteLength))));
