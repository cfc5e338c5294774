// Samples and inputs: bytes of a picture or counts of events on one side, the network's floats on the other.
// The arithmetic is that of spikformer/preprocessing.py, in float32.

/** @typedef {import("./types.js").Preprocessing} Preprocessing */
/** @typedef {import("./types.js").Sample} Sample */
/** @typedef {import("./types.js").GalleryItem} GalleryItem */

/**
 * The input of a picture's bytes [C][H][W].
 * @param {Uint8Array} bytes
 * @param {Preprocessing} seen
 * @returns {Float32Array}
 */
export function toInput(bytes, seen) {
  const plane = seen.size[0] * seen.size[1];
  return Float32Array.from(bytes, (byte, index) => normalised(Math.fround(byte / 255), Math.floor(index / plane), seen));
}

/**
 * The bytes that an input was made of.
 * @param {Float32Array} x
 * @param {Preprocessing} seen
 * @returns {Uint8Array}
 */
export function toBytes(x, seen) {
  const plane = seen.size[0] * seen.size[1];
  return Uint8Array.from(x, (value, index) => {
    const channel = Math.floor(index / plane);
    const brightness = seen.mean && seen.std ? value * of(seen.std, channel) + of(seen.mean, channel) : value;
    return Math.min(255, Math.max(0, Math.round(brightness * 255)));
  });
}

/**
 * @param {number} brightness
 * @param {number} channel
 * @param {Preprocessing} seen
 */
function normalised(brightness, channel, seen) {
  if (!seen.mean || !seen.std) return brightness;
  const [mean, std] = [of(seen.mean, channel), of(seen.std, channel)].map(Math.fround);
  return Math.fround(Math.fround(brightness - mean) / std);
}

/**
 * @param {number[]} values one for each channel, or one for all
 * @param {number} channel
 */
function of(values, channel) {
  return values.length === 1 ? values[0] : values[channel];
}

/**
 * Frames without what lies in some patches: black pixels, or no events. Patches are numbered row by row.
 * @param {Float32Array[]} frames each [C][H][W]
 * @param {number[]} patches
 * @param {number} side of a patch
 * @param {Preprocessing} seen
 * @returns {Float32Array[]}
 */
export function occlude(frames, patches, side, seen) {
  if (!patches.length) return frames;
  const [height, width] = seen.size, plane = height * width, columns = Math.ceil(width / side);
  const hidden = new Set(patches);
  const black = Float32Array.from({ length: seen.channels }, (_, channel) =>
    seen.kind === "image" ? normalised(0, channel, seen) : 0,
  );
  return frames.map((frame) => frame.map((value, index) => {
    const row = Math.floor((index % plane) / width), column = index % width;
    const patch = Math.floor(row / side) * columns + Math.floor(column / side);
    return hidden.has(patch) ? black[Math.floor(index / plane)] : value;
  }));
}

/**
 * How many patches lie side by side and above each other.
 * @param {Preprocessing} seen
 * @param {number} side
 */
export function patchGrid(seen, side) {
  return { rows: Math.ceil(seen.size[0] / side), columns: Math.ceil(seen.size[1] / side) };
}

/**
 * @param {string} text base64
 * @returns {Uint8Array}
 */
export function fromBase64(text) {
  const letters = atob(text.trim());
  const bytes = new Uint8Array(letters.length);
  for (let index = 0; index < letters.length; index++) bytes[index] = letters.charCodeAt(index);
  return bytes;
}

/** @param {Uint8Array} bytes */
export function toBase64(bytes) {
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}
