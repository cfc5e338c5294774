// NumPy archives of events: arrays t, x, y, p and perhaps size, in a zip file, stored or deflated. Nothing is trusted:
// places and sizes are checked before they are used, and what is unpacked is bounded before it is there.

import { FileProblem, smallestSize } from "./events.js";

/** @typedef {import("./types.js").Recording} Recording */
/** @typedef {{method: number, packed: number, size: number, offset: number}} Entry */

const LARGEST_CONTENT = 1 << 28;
const MOST_ENTRIES = 1000;
/** @type {[number, number][]} */
const SIZES = [[34, 34], [128, 128], [180, 240], [240, 304], [260, 346], [480, 640], [720, 1280]];
const LARGEST_SIDE = 4096;

/**
 * @param {Uint8Array} file
 * @returns {Promise<Recording>}
 */
export async function readNpz(file) {
  const entries = directory(file);
  /** @type {Record<string, number[] | Float64Array>} */
  const columns = {};
  for (const name of ["t", "x", "y", "p", "size"]) {
    const entry = entries.get(`${name}.npy`);
    if (entry) columns[name] = integers(await content(file, entry), name);
    else if (name !== "size") throw new FileProblem(`The archive lacks the array ${name}; expected t, x, y and p.`);
  }
  const { t, x, y, p, size } = columns;
  if (x.length !== t.length || y.length !== t.length || p.length !== t.length) {
    throw new FileProblem("The arrays t, x, y and p have different lengths.");
  }
  const across = bounded(x, "x"), down = bounded(y, "y");
  if (size && (size.length !== 2 || !Array.from(size).every((side) => side >= 1 && side <= LARGEST_SIDE))) {
    throw new FileProblem("The array size should be the sensor's height and width.");
  }
  return {
    time: Float64Array.from(t),
    x: across,
    y: down,
    on: Uint8Array.from(p, (polarity) => (polarity > 0 ? 1 : 0)),
    size: size ? [size[0], size[1]] : smallestSize(across, down, SIZES),
    guessed: !size,
  };
}

/**
 * @param {ArrayLike<number>} values
 * @param {string} name
 */
function bounded(values, name) {
  return Uint16Array.from(values, (value, index) => {
    if (value < 0 || value > 32767) throw new FileProblem(`Event ${index} has ${name} = ${value}, expected 0 to 32767.`);
    return value;
  });
}

/**
 * The entries of a zip file by name, by its central directory.
 * @param {Uint8Array} file
 * @returns {Map<string, Entry>}
 */
function directory(file) {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  let end = file.length - 22;
  while (end >= Math.max(0, file.length - 65557) && view.getUint32(end, true) !== 0x06054b50) end--;
  if (end < Math.max(0, file.length - 65557) || end < 0) throw new FileProblem("The file is no zip archive, or is cut off.");
  const count = view.getUint16(end + 10, true);
  let place = view.getUint32(end + 16, true);
  if (count > MOST_ENTRIES) throw new FileProblem(`The archive has ${count} entries, more than ${MOST_ENTRIES}.`);
  const entries = new Map();
  for (let number = 0; number < count; number++) {
    if (place + 46 > file.length || view.getUint32(place, true) !== 0x02014b50) {
      throw new FileProblem("The archive's directory is damaged.");
    }
    const nameLength = view.getUint16(place + 28, true);
    const name = new TextDecoder().decode(file.subarray(place + 46, place + 46 + nameLength));
    entries.set(name, {
      method: view.getUint16(place + 10, true),
      packed: view.getUint32(place + 20, true),
      size: view.getUint32(place + 24, true),
      offset: view.getUint32(place + 42, true),
    });
    place += 46 + nameLength + view.getUint16(place + 30, true) + view.getUint16(place + 32, true);
  }
  return entries;
}

/**
 * @param {Uint8Array} file
 * @param {Entry} entry
 * @returns {Promise<Uint8Array>}
 */
async function content(file, { method, packed, size, offset }) {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  if (offset + 30 > file.length || view.getUint32(offset, true) !== 0x04034b50) {
    throw new FileProblem("The archive points to an entry that is not there.");
  }
  const start = offset + 30 + view.getUint16(offset + 26, true) + view.getUint16(offset + 28, true);
  if (start + packed > file.length) throw new FileProblem("The archive is cut off.");
  if (size > LARGEST_CONTENT) throw new FileProblem(`An array of ${size} bytes is larger than ${LARGEST_CONTENT}.`);
  const bytes = file.subarray(start, start + packed);
  if (method === 0) return bytes;
  if (method !== 8) throw new FileProblem(`The archive is compressed by method ${method}; expected deflate.`);
  return inflated(bytes, size);
}

/**
 * @param {Uint8Array} bytes
 * @param {number} size what the directory says, which is not believed
 * @returns {Promise<Uint8Array>}
 */
async function inflated(bytes, size) {
  const output = new Uint8Array(size);
  const stream = new Blob([/** @type {Uint8Array<ArrayBuffer>} */ (bytes)]).stream();
  const reader = stream.pipeThrough(new DecompressionStream("deflate-raw")).getReader();
  let filled = 0;
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      if (filled + part.value.length > size) throw new FileProblem("An array is larger than the archive says.");
      output.set(part.value, filled);
      filled += part.value.length;
    }
  } catch (error) {
    void reader.cancel().catch(() => undefined);
    throw error instanceof FileProblem ? error : new FileProblem("An array cannot be unpacked: the archive is damaged.");
  }
  if (filled !== size) throw new FileProblem("An array is cut off.");
  return output;
}

/** @type {Record<string, [number, (view: DataView, place: number) => number]>} */
const READERS = {
  "|b1": [1, (view, place) => view.getUint8(place)],
  "|u1": [1, (view, place) => view.getUint8(place)],
  "|i1": [1, (view, place) => view.getInt8(place)],
  "<u2": [2, (view, place) => view.getUint16(place, true)],
  "<i2": [2, (view, place) => view.getInt16(place, true)],
  "<u4": [4, (view, place) => view.getUint32(place, true)],
  "<i4": [4, (view, place) => view.getInt32(place, true)],
  "<u8": [8, (view, place) => Number(view.getBigUint64(place, true))],
  "<i8": [8, (view, place) => Number(view.getBigInt64(place, true))],
};

/**
 * A one-dimensional .npy array of integers.
 * @param {Uint8Array} bytes
 * @param {string} name
 * @returns {Float64Array}
 */
function integers(bytes, name) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const magic = bytes.length >= 12 && bytes[0] === 0x93 && new TextDecoder("latin1").decode(bytes.subarray(1, 6)) === "NUMPY";
  if (!magic) throw new FileProblem(`The array ${name} is no NumPy array.`);
  const long = bytes[6] > 1;
  const start = (long ? 12 : 10) + (long ? view.getUint32(8, true) : view.getUint16(8, true));
  if (start > bytes.length) throw new FileProblem(`The header of the array ${name} is cut off.`);
  const header = new TextDecoder("latin1").decode(bytes.subarray(10, start));
  const reader = READERS[/'descr': *'([^']{1,8})'/.exec(header)?.[1] ?? ""];
  const shape = /'shape': *\((\d{1,10}),\)/.exec(header);
  if (!reader || !shape) throw new FileProblem(`The array ${name} should be a list of integers.`);
  const [width, read] = reader, count = Number(shape[1]);
  if (bytes.length - start !== count * width) throw new FileProblem(`The array ${name} is cut off.`);
  return Float64Array.from({ length: count }, (_, index) => {
    const value = read(view, start + index * width);
    if (!Number.isSafeInteger(value)) throw new FileProblem(`Event ${index} has ${name} = ${value}, which is too large.`);
    return value;
  });
}
