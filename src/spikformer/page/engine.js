// Engine files in JavaScript: spikformer.h as WebAssembly, with memory managed and errors thrown.
//
//     const core = await compileCore(wasmBytes);
//     const engine = core.load(engineBytes);
//     const { logits, spikes } = engine.run(engine.prepare(pixels, height, width, 3), { spikes: ["stem.0"] });
//     engine.free();
//
// Runs in browsers and in Node, on one thread. Arrays that go in and come out are the caller's: nothing that is
// returned lies in WebAssembly's memory, which moves when it grows. docs/embedding.md has the rules of the C interface.

import { EngineError as CoreError, Memory, integer, require } from "./memory.js";
import { readOps, readPreprocessing, readReports, readShape } from "./structs.js";

/**
 * @typedef {import("./memory.js").Exports} Exports
 * @typedef {import("./memory.js").EngineError} EngineError
 * @typedef {import("./structs.js").Shape} Shape
 * @typedef {import("./structs.js").Preprocessing} Preprocessing
 * @typedef {import("./structs.js").Op} Op
 * @typedef {import("./structs.js").Profile} Profile
 * @typedef {{timeSteps?: number, batch?: number, spikes?: string[], membranes?: string[], height?: number,
 *   width?: number}} RunOptions  Height and width matter where the shape leaves them open.
 * @typedef {{logits: Float32Array, steps: Float32Array[], spikes: Map<string, Uint8Array>,
 *   membranes: Map<string, Float32Array>, profile: Profile[]}} RunResult
 */

const MODES = ["auto", "events", "dense"];
const POINTER = 4, FLOAT = 4; // bytes

/** What the core could not do; its `code` is that of spikformer.h. */
export const EngineError = CoreError;

/** The compiled core, which loads any number of engines into one memory. */
class Core {
  /** @param {Exports} exports */
  constructor(exports) {
    this.memory = new Memory(exports);
  }

  /**
   * The engine in the bytes of a file; anything else throws.
   * @param {Uint8Array} engineBytes
   * @param {{mode?: "auto" | "events" | "dense"}} [options]
   */
  load(engineBytes, options = {}) {
    const mode = MODES.indexOf(options.mode ?? "auto");
    require(mode >= 0, `mode must be one of ${MODES.join(", ")}.`);
    const { memory } = this;
    const handle = memory.borrow((lend) => {
      const bytes = memory.put(lend, engineBytes), given = lend(3 * POINTER), out = lend(POINTER);
      memory.numbers(given, 3).set([0, 0, mode]);
      memory.check(memory.exports.spikformer_load_memory(bytes, engineBytes.byteLength, given, out));
      return memory.numbers(out, 1)[0];
    });
    try {
      return new Engine(memory, handle);
    } catch (error) {
      memory.exports.spikformer_free(handle);
      throw error;
    }
  }
}

/** Neurons of a stream between two steps. Freed with its engine, or before. */
class State {
  /** @param {Engine} engine @param {number} handle @param {number} batch @param {number} frame */
  constructor(engine, handle, batch, frame) {
    this.engine = engine;
    this.handle = handle;
    this.batch = batch;
    /** Numbers of a frame [B][C][H][W]. */
    this.frame = frame;
  }

  free() {
    if (this.handle === 0) return;
    this.engine.memory.exports.spikformer_free_state(this.handle);
    this.handle = 0;
    this.engine.states.delete(this);
  }
}

/** A network. Free it when it is no longer needed: the garbage collector does not see its memory. */
class Engine {
  /** @param {Memory} memory @param {number} handle */
  constructor(memory, handle) {
    this.memory = memory;
    /** 0 once it is freed. */
    this.handle = handle;
    /** @type {Set<State>} */
    this.states = new Set();
    /** @type {Shape} */
    this.shape = readShape(memory, handle);
    /** @type {Preprocessing | null} */
    this.preprocessing = readPreprocessing(memory, handle);
    /** @type {(string | null)[]} */
    this.classes = Array.from({ length: this.shape.numClasses }, (_, index) =>
      memory.textOrNull(memory.exports.spikformer_class_name(handle, index)),
    );
    const [height, width] = this.#size({});
    /** For inputs of the network's own size. @type {Op[]} */
    this.ops = this.opsAt(height, width);
  }

  /** The ops, and what each writes for inputs of that size. @param {number} height @param {number} width */
  opsAt(height, width) {
    return readOps(this.memory, this.#live(), integer(height, "height"), integer(width, "width"));
  }

  /**
   * The input [C][h][w] of a decoded picture, bytes [height][width][channels] without gaps.
   * @param {Uint8Array} pixels @param {number} height @param {number} width @param {number} channels
   */
  prepare(pixels, height, width, channels) {
    const { memory } = this, engine = this.#live(), seen = this.preprocessing;
    require(seen !== null, "The file does not say how its inputs are made.");
    const size = integer(height, "height", 1) * integer(width, "width", 1) * integer(channels, "channels", 1);
    require(pixels.length === size, `pixels must hold ${height} x ${width} x ${channels} bytes, not ${pixels.length}.`);
    return memory.borrow((lend) => {
      const count = seen.channels * seen.height * seen.width;
      const from = memory.put(lend, pixels), to = lend(count * FLOAT);
      memory.check(memory.exports.spikformer_prepare(engine, from, height, width, channels, to));
      return memory.floats(to, count).slice();
    });
  }

  /**
   * Logits [B][K] and what led to them. With `timeSteps` 0, x is [B][C][H][W], repeated for the network's own steps;
   * otherwise [T][B][C][H][W]. Spikes and membranes, of the neurons that are named, are [T][B][positions][channels].
   * @param {Float32Array} x
   * @param {RunOptions} [options]
   * @returns {RunResult}
   */
  run(x, options = {}) {
    const { memory, shape } = this, { exports } = memory, engine = this.#live();
    const timeSteps = integer(options.timeSteps ?? 0, "timeSteps"), batch = integer(options.batch ?? 1, "batch", 1);
    const [height, width] = this.#size(options), steps = timeSteps || shape.timeSteps;
    const size = (timeSteps || 1) * batch * shape.channels * height * width;
    require(x.length === size, `x must hold ${size} numbers, not ${x.length}.`);
    const membranes = new Set(options.membranes ?? []), tapped = new Set([...(options.spikes ?? []), ...membranes]);
    try {
      return memory.borrow((lend) => {
        for (const name of tapped) {
          memory.check(exports.spikformer_tap(engine, memory.putText(lend, name), membranes.has(name) ? 1 : 0));
        }
        const readout = batch * shape.numClasses, values = memory.put(lend, x);
        const logits = lend(readout * FLOAT), each = lend(steps * readout * FLOAT);
        memory.check(exports.spikformer_run(engine, values, batch, timeSteps, height, width, logits, each));
        const all = memory.floats(each, steps * readout);
        return {
          logits: memory.floats(logits, readout).slice(),
          steps: Array.from({ length: steps }, (_, t) => all.slice(t * readout, (t + 1) * readout)),
          ...this.#readTaps(tapped, options, steps * batch, height, width),
          profile: readReports(memory, engine),
        };
      });
    } finally {
      exports.spikformer_clear_taps(engine);
    }
  }

  /**
   * A stream at rest. Height and width matter where the shape leaves them open.
   * @param {number} batch @param {{height?: number, width?: number}} [size]
   */
  newState(batch, size = {}) {
    const { memory } = this, engine = this.#live(), [height, width] = this.#size(size);
    return memory.borrow((lend) => {
      const out = lend(POINTER);
      memory.check(memory.exports.spikformer_new_state(engine, integer(batch, "batch", 1), height, width, out));
      const state = new State(this, memory.numbers(out, 1)[0], batch, batch * this.shape.channels * height * width);
      this.states.add(state);
      return state;
    });
  }

  /** The readout [B][K] of the next frame [B][C][H][W]. @param {State} state @param {Float32Array} x */
  step(state, x) {
    const { memory } = this, engine = this.#live();
    require(state.engine === this, "The state belongs to another engine.");
    require(state.handle !== 0, "The state was freed.");
    require(x.length === state.frame, `x must hold ${state.frame} numbers, not ${x.length}.`);
    return memory.borrow((lend) => {
      const count = state.batch * this.shape.numClasses, values = memory.put(lend, x), logits = lend(count * FLOAT);
      memory.check(memory.exports.spikformer_step(engine, state.handle, values, logits));
      return memory.floats(logits, count).slice();
    });
  }

  /**
   * Until `clearInterventions`, neurons fire differently: channels are silent, then spikes of noise are added with that
   * probability. Several apply in their order.
   * @param {string} name @param {{silence?: number[], noise?: number, seed?: number}} change
   */
  intervene(name, change) {
    const { memory } = this, engine = this.#live();
    const seed = BigInt(integer(change.seed ?? 0, "seed", 0, Number.MAX_SAFE_INTEGER));
    const silence = Uint32Array.from((change.silence ?? []).map((channel) => integer(channel, "A channel")));
    memory.borrow((lend) => {
      const [text, channels] = [memory.putText(lend, name), memory.put(lend, silence)];
      const { exports } = memory;
      memory.check(exports.spikformer_intervene(engine, text, channels, silence.length, change.noise ?? 0, seed));
    });
  }

  clearInterventions() {
    this.memory.check(this.memory.exports.spikformer_clear_interventions(this.#live()));
  }

  /** With its states. A second time does nothing. */
  free() {
    if (this.handle === 0) return;
    [...this.states].forEach((state) => state.free());
    this.memory.exports.spikformer_free(this.handle);
    this.handle = 0;
  }

  #live() {
    require(this.handle !== 0, "The engine was freed.");
    return this.handle;
  }

  /**
   * Of an input: as given, the network's, its preprocessing's or a patch.
   * @param {{height?: number, width?: number}} given
   */
  #size(given) {
    const { shape, preprocessing } = this;
    const height = given.height ?? (shape.height || preprocessing?.height || shape.patchSize);
    const width = given.width ?? (shape.width || preprocessing?.width || shape.patchSize);
    return [integer(height, "height", 1), integer(width, "width", 1)];
  }

  /**
   * @param {Set<string>} tapped @param {RunOptions} options @param {number} rows  Steps times samples.
   * @param {number} height @param {number} width
   */
  #readTaps(tapped, options, rows, height, width) {
    const { memory } = this;
    /** @type {Map<string, Uint8Array>} */
    const spikes = new Map();
    /** @type {Map<string, Float32Array>} */
    const membranes = new Map();
    const ops = tapped.size > 0 ? this.opsAt(height, width).filter((op) => tapped.has(op.name)) : [];
    for (const { name, channels, ...map } of ops) {
      const size = rows * map.height * map.width * channels;
      const wanted = [options.spikes?.includes(name) ?? false, options.membranes?.includes(name) ?? false];
      memory.borrow((lend) => {
        const text = memory.putText(lend, name);
        const [bytes, floats] = [wanted[0] ? lend(size) : 0, wanted[1] ? lend(size * FLOAT) : 0];
        memory.check(memory.exports.spikformer_read_tap(this.handle, text, size, bytes, floats));
        if (wanted[0]) spikes.set(name, memory.bytes(bytes, size).slice());
        if (wanted[1]) membranes.set(name, memory.floats(floats, size).slice());
      });
    }
    return { spikes, membranes };
  }
}

/**
 * The core in the bytes of engine.wasm.
 * @param {BufferSource} wasmBytes
 */
export async function compileCore(wasmBytes) {
  const module = await WebAssembly.compile(wasmBytes);
  /** @type {WebAssembly.Instance | null} */
  let instance = null;
  // Of all that the library may ask of its host, the clock alone is answered: nanoseconds, at a place in its memory.
  /** @type {Record<string, (...values: any[]) => number>} */
  const host = Object.fromEntries(WebAssembly.Module.imports(module).map(({ name }) => [name, () => 0]));
  host.clock_time_get = (_clock, _precision, place) => {
    const { memory } = /** @type {Exports} */ (/** @type {unknown} */ (instance?.exports));
    new DataView(memory.buffer).setBigUint64(place, BigInt(Math.round(performance.now() * 1e6)), true);
    return 0;
  };
  instance = await WebAssembly.instantiate(module, { wasi_snapshot_preview1: host });
  const exports = /** @type {Exports} */ (/** @type {unknown} */ (instance.exports));
  exports._initialize();
  return new Core(exports);
}
