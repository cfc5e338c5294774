// Event files: AEDAT 2.0 and 3.1, N-MNIST's .bin, NumPy's .npz, recognised by their first bytes, or else by their ending.
// The layouts are those of spikformer/data/events/formats, which says where they come from.

import { FileProblem, checked, smallestSize } from "./events.js";
import { readNpz } from "./npz.js";

/** @typedef {import("./types.js").Recording} Recording */

export const LARGEST_FILE = 64 << 20;
const LONGEST_HEADER = 1 << 20;
/** @type {Record<string, [number, number]>} */
const CHIPS = { DVS128: [128, 128], DAVIS240: [180, 240], DAVIS346: [260, 346] };

/**
 * @param {Uint8Array} file
 * @param {string} name
 * @returns {Promise<Recording>}
 */
export async function readRecording(file, name) {
  if (file.length > LARGEST_FILE) throw new FileProblem(`The file is larger than ${LARGEST_FILE >> 20} MB.`);
  const beginning = latin1(file.subarray(0, 11));
  if (beginning.startsWith("PK\x03\x04")) return checked(await readNpz(file));
  if (beginning === "#!AER-DAT2.") return checked(readAedat2(file));
  if (beginning === "#!AER-DAT3.") return checked(readAedat3(file));
  if (beginning === "#!AER-DAT4.") throw new FileProblem("AEDAT 4 is not read here; convert it to .npz.");
  if (name.toLowerCase().endsWith(".bin")) return checked(readNmnist(file));
  throw new FileProblem("The file is in no event format known here: expected .npz, .aedat (2 or 3.1) or N-MNIST's .bin.");
}

/**
 * 40 bits an event: column, row, 1 ON · 23 microseconds. Row 240 is an overflow of the clock by 2¹³ µs.
 * @param {Uint8Array} file
 * @returns {Recording}
 */
function readNmnist(file) {
  const count = wholeEvents(file.length, 5);
  const events = empty(count);
  let kept = 0, overflow = 0;
  for (let place = 0; place < file.length; place += 5) {
    if (file[place + 1] === 240) {
      overflow += 1 << 13;
      continue;
    }
    const high = file[place + 2];
    events.time[kept] = (((high & 127) << 16) | (file[place + 3] << 8) | file[place + 4]) + overflow;
    events.x[kept] = file[place];
    events.y[kept] = file[place + 1];
    events.on[kept++] = high >> 7;
  }
  const { time, x, y, on } = cut(events, kept);
  const small = Math.max(median(x), median(y)) < 34;
  return { time, x, y, on, size: small ? [34, 34] : [180, 240], guessed: true };
}

/**
 * Big-endian uint32 address and microseconds; what an address means depends on the chip that the header names.
 * @param {Uint8Array} file
 * @returns {Recording}
 */
function readAedat2(file) {
  const { lines, start } = textHeader(file, "#End Of ASCII Header");
  const named = lines.find((line) => line.startsWith("AEChip:"))?.slice(7).trim().split(".").pop() ?? "DVS128";
  const chip = Object.keys(CHIPS).find((each) => named.toUpperCase().startsWith(each));
  if (!chip) throw new FileProblem("The file is of a chip whose addresses are not known here.");
  const [height, width] = CHIPS[chip], old = chip === "DVS128";
  const view = new DataView(file.buffer, file.byteOffset + start, file.length - start);
  const count = wholeEvents(view.byteLength, 8), events = empty(count), clock = unwrapping();
  let kept = 0;
  for (let index = 0; index < count; index++) {
    const address = view.getUint32(8 * index), stamp = view.getUint32(8 * index + 4);
    if (address & (old ? 0x80008000 : 0x80000400)) continue; // a trigger, frame or IMU sample
    if (old && address >>> 16) throw new FileProblem(`Event ${index} has an address that a DVS128 has not.`);
    events.time[kept] = clock(stamp);
    events.x[kept] = width - 1 - (old ? (address >>> 1) & 127 : (address >>> 12) & 1023);
    events.y[kept] = height - 1 - (old ? (address >>> 8) & 127 : (address >>> 22) & 511);
    events.on[kept++] = old ? ~address & 1 : (address >>> 11) & 1;
  }
  return { ...cut(events, kept), size: [height, width], guessed: false };
}

/**
 * Packets: a header of 28 bytes, then room for events; those of type 1 are uint32 data and int32 microseconds.
 * @param {Uint8Array} file
 * @returns {Recording}
 */
function readAedat3(file) {
  const { lines, start } = textHeader(file, "#!END-HEADER");
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  const events = empty(Math.floor((file.length - start) / 8));
  let kept = 0;
  const sources = new Set();
  for (let place = start; place < file.length; ) {
    if (place + 28 > file.length) throw new FileProblem(`The file is cut off in the packet at byte ${place}.`);
    const kind = view.getInt16(place, true), width = view.getInt32(place + 4, true), timeAt = view.getInt32(place + 8, true);
    const overflow = view.getInt32(place + 12, true), capacity = view.getInt32(place + 16, true);
    const number = view.getInt32(place + 20, true), first = place + 28;
    if (width < 0 || number < 0 || number > capacity || overflow < 0 || width * capacity > file.length - first) {
      throw new FileProblem(`The packet at byte ${place} is cut off or damaged.`);
    }
    if (kind === 1) {
      if (width !== 8 || timeAt !== 4) throw new FileProblem(`The packet at byte ${place} has events of ${width} bytes.`);
      sources.add(view.getInt16(place + 2, true));
      for (let at = first; at < first + 8 * number; at += 8) {
        const data = view.getUint32(at, true), time = view.getInt32(at + 4, true);
        if (!(data & 1)) continue;
        if (time < 0) throw new FileProblem(`The event at byte ${at} has a negative time.`);
        events.time[kept] = time + overflow * 2 ** 31;
        events.x[kept] = data >>> 17;
        events.y[kept] = (data >>> 2) & 0x7fff;
        events.on[kept++] = (data >>> 1) & 1;
      }
    }
    place = first + width * capacity;
  }
  if (sources.size > 1) throw new FileProblem(`The file mixes the events of ${sources.size} cameras.`);
  const found = cut(events, kept);
  const stated = statedSize(lines, sources);
  return { ...found, size: stated ?? smallestSize(found.x, found.y, [...Object.values(CHIPS), [480, 640]]), guessed: !stated };
}

/**
 * By the line `#Source 1: DVS128`.
 * @param {string[]} lines
 * @param {Set<number>} sources
 * @returns {[number, number] | null}
 */
function statedSize(lines, sources) {
  for (const line of lines) {
    const match = /^Source (\d{1,9}): (\S+)/.exec(line);
    const chip = match && Object.keys(CHIPS).find((each) => match[2].toUpperCase().startsWith(each));
    if (chip && sources.has(Number(match[1]))) return CHIPS[chip];
  }
  return null;
}

/**
 * The lines at the beginning that start with #, without it, and the byte after them.
 * @param {Uint8Array} file
 * @param {string} last
 */
function textHeader(file, last) {
  const lines = [];
  let start = 0;
  while (file[start] === 35 && start < LONGEST_HEADER) {
    const end = file.indexOf(10, start);
    const line = latin1(file.subarray(start, end < 0 ? file.length : end)).replace(/\r$/, "");
    // Old files lack the last line; an event that begins with # has control characters, which text has not.
    if (/[\x00-\x08\x0a-\x1f\x7f]/.test(line)) break;
    if (end < 0) throw new FileProblem("The file is cut off in its header.");
    lines.push(line.slice(1).trim());
    start = end + 1;
    if (line.startsWith(last)) break;
  }
  if (start >= LONGEST_HEADER) throw new FileProblem("The file's header is too long; it is damaged.");
  return { lines, start };
}

/** A 32-bit clock that runs on where it wrapped: from its last quarter into its first. */
function unwrapping() {
  let before = 0, leaps = 0;
  return (/** @type {number} */ stamp) => {
    if (before >= 3 * 2 ** 30 && stamp < 2 ** 30) leaps += 2 ** 32;
    before = stamp;
    return stamp + leaps;
  };
}

/** @param {number} count */
function empty(count) {
  return { time: new Float64Array(count), x: new Uint16Array(count), y: new Uint16Array(count), on: new Uint8Array(count) };
}

/**
 * @param {ReturnType<typeof empty>} events
 * @param {number} count
 */
function cut({ time, x, y, on }, count) {
  return { time: time.slice(0, count), x: x.slice(0, count), y: y.slice(0, count), on: on.slice(0, count) };
}

/**
 * @param {number} bytes
 * @param {number} width
 */
function wholeEvents(bytes, width) {
  if (bytes % width) throw new FileProblem(`The file is cut off in mid-event: ${bytes % width} bytes are left over.`);
  return bytes / width;
}

/** @param {Uint16Array} values */
function median(values) {
  const sorted = values.slice().sort(), half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : ((sorted[half - 1] ?? 0) + (sorted[half] ?? 0)) / 2;
}

/** @param {Uint8Array} bytes */
function latin1(bytes) {
  return new TextDecoder("latin1").decode(bytes);
}
