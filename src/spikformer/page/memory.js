// The memory of engine.wasm, and its errors.

/**
 * @typedef {{memory: WebAssembly.Memory, _initialize: () => void} & Record<string, (...values: any[]) => number>}
 *   Exports  The functions of spikformer.h and spikformer_probes.h, malloc and free. Pointers are numbers.
 */

/** Codes of spikformer_status. */
export const Status = Object.freeze({
  ok: 0, badArgument: 1, noFile: 2, badFile: 3, noMemory: 4, notFinite: 5, failed: 6,
});

/** What the core could not do; `code` is one of `Status`. */
export class EngineError extends Error {
  /** @param {number} code @param {string} message */
  constructor(code, message) {
    super(message);
    this.name = "EngineError";
    this.code = code;
  }
}

/** Throw unless a condition holds. @param {boolean} holds @param {string} message @returns {asserts holds} */
export function require(holds, message) {
  if (!holds) throw new EngineError(Status.badArgument, message);
}

/**
 * The value, if the core can take it as it is.
 * @param {number} value @param {string} name @param {number} [least] @param {number} [most]
 */
export function integer(value, name, least = 0, most = 2 ** 32 - 1) {
  const fits = Number.isSafeInteger(value) && value >= least && value <= most;
  require(fits, `${name} must be an integer from ${least} to ${most}, not ${value}.`);
  return value;
}

/** The core's memory: what a call borrows is given back when it ends, whether it succeeds or not. */
export class Memory {
  /** @param {Exports} exports */
  constructor(exports) {
    this.exports = exports;
  }

  /**
   * Call `use` with a function that lends bytes.
   * @template T
   * @param {(lend: (size: number) => number) => T} use
   * @returns {T}
   */
  borrow(use) {
    /** @type {number[]} */
    const lent = [];
    try {
      return use((size) => {
        const place = size < 2 ** 31 ? this.exports.malloc(size + 1) >>> 0 : 0;
        if (place === 0) throw new EngineError(Status.noMemory, `There is not enough memory for ${size} bytes.`);
        lent.push(place);
        return place;
      });
    } finally {
      lent.forEach((place) => this.exports.free(place));
    }
  }

  /** @param {number} place @param {number} size */
  bytes(place, size) {
    return new Uint8Array(this.exports.memory.buffer, place >>> 0, size);
  }

  /** @param {number} place @param {number} count */
  floats(place, count) {
    return new Float32Array(this.exports.memory.buffer, place >>> 0, count);
  }

  /** @param {number} place @param {number} count */
  numbers(place, count) {
    return new Uint32Array(this.exports.memory.buffer, place >>> 0, count);
  }

  /** @param {number} place */
  double(place) {
    return new DataView(this.exports.memory.buffer).getFloat64(place >>> 0, true);
  }

  /** The text at a place, or null. @param {number} place @returns {string | null} */
  textOrNull(place) {
    if (place >>> 0 === 0) return null;
    const all = new Uint8Array(this.exports.memory.buffer, place >>> 0);
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(all.subarray(0, all.indexOf(0)));
  }

  /** @param {number} place */
  text(place) {
    return this.textOrNull(place) ?? "";
  }

  /** @param {(size: number) => number} lend @param {ArrayLike<number> & ArrayBufferView} values */
  put(lend, values) {
    const place = lend(values.byteLength);
    this.bytes(place, values.byteLength).set(new Uint8Array(values.buffer, values.byteOffset, values.byteLength));
    return place;
  }

  /** A C string. No name holds a zero. @param {(size: number) => number} lend @param {string} text */
  putText(lend, text) {
    const bytes = new TextEncoder().encode(`${text}\0`);
    require(bytes.indexOf(0) === bytes.length - 1, "A name holds no zeros.");
    return this.put(lend, bytes);
  }

  /** @param {number} status */
  check(status) {
    if (status !== Status.ok) throw new EngineError(status, this.text(this.exports.spikformer_last_error()));
  }
}
