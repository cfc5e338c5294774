// Pictures: from files, canvases and the camera to pixels, and what the network sees painted on a canvas.

import { FileProblem } from "./events.js";
import { context2d, rgb } from "./plots.js";
import { toBytes } from "./sample.js";

/** @typedef {import("./types.js").Preprocessing} Preprocessing */
/** @typedef {import("./types.js").Sample} Sample */
/** @typedef {import("./plots.js").Colours} Colours */

const LARGEST_FILE = 32 << 20;
const LARGEST_SIDE = 8192;
const SIDE_KEPT = 1024; // pixels of the long side that are handed to the engine
const SIGNATURES = ["\x89PNG", "\xff\xd8\xff", "GIF8", "RIFF", "BM"];

/** @param {Uint8Array} file */
export function isPicture(file) {
  const beginning = String.fromCharCode(...file.subarray(0, 4));
  return SIGNATURES.some((each) => beginning.startsWith(each));
}

/**
 * A file, decoded by the browser; whatever it holds, only pixels come out.
 * @param {Uint8Array} file
 * @returns {Promise<ImageData>}
 */
export async function decode(file) {
  if (file.length > LARGEST_FILE) throw new FileProblem(`The file is larger than ${LARGEST_FILE >> 20} MB.`);
  let bitmap;
  try {
    bitmap = await createImageBitmap(new Blob([/** @type {Uint8Array<ArrayBuffer>} */ (file)]));
  } catch {
    throw new FileProblem("The picture cannot be decoded: it is damaged, or of a format that this browser does not know.");
  }
  const { width, height } = bitmap;
  if (Math.max(width, height) > LARGEST_SIDE) throw new FileProblem(`The picture is ${width}×${height}, larger than ${LARGEST_SIDE} pixels.`);
  const scale = Math.min(1, SIDE_KEPT / Math.max(width, height));
  const pixels = drawn(bitmap, Math.max(1, Math.round(width * scale)), Math.max(1, Math.round(height * scale)));
  bitmap.close();
  return pixels;
}

/**
 * @param {CanvasImageSource} source
 * @param {number} width
 * @param {number} height
 */
export function drawn(source, width, height) {
  const canvas = document.createElement("canvas");
  Object.assign(canvas, { width, height });
  const context = context2d(canvas);
  context.fillStyle = "#fff"; // under what is transparent
  context.fillRect(0, 0, width, height);
  context.imageSmoothingQuality = "high";
  context.drawImage(source, 0, 0, width, height);
  return context.getImageData(0, 0, width, height);
}

/**
 * The sample of pixels, resampled by the engine's core.
 * @param {import("./types.js").Engine} engine
 * @param {ImageData} pixels
 * @param {Preprocessing} seen
 * @param {string} name
 * @returns {Sample}
 */
export function pictureSample(engine, pixels, seen, name) {
  const colour = new Uint8Array(3 * pixels.width * pixels.height);
  for (let from = 0, to = 0; from < pixels.data.length; from += 4, to += 3) {
    colour[to] = pixels.data[from];
    colour[to + 1] = pixels.data[from + 1];
    colour[to + 2] = pixels.data[from + 2];
  }
  const x = engine.prepare(colour, pixels.height, pixels.width, 3);
  return { kind: "picture", values: toBytes(x, seen), name, label: null };
}

/**
 * A frame [C][H][W] as the network gets it: a picture, or OFF and ON events.
 * @param {HTMLCanvasElement} canvas
 * @param {Float32Array} frame
 * @param {Preprocessing} seen
 * @param {Colours} colours
 */
export function paintFrame(canvas, frame, seen, colours) {
  const [height, width] = seen.size, plane = height * width, image = new ImageData(width, height);
  if (seen.kind === "image") {
    const bytes = toBytes(frame, seen);
    for (let index = 0; index < plane; index++) {
      for (let part = 0; part < 3; part++) image.data[4 * index + part] = bytes[(seen.channels >= 3 ? part * plane : 0) + index];
      image.data[4 * index + 3] = 255;
    }
  } else {
    const empty = rgb(colours.cell), off = rgb(colours.off), on = rgb(colours.spike);
    const most = frame.reduce((largest, value) => Math.max(largest, value), 1);
    for (let index = 0; index < plane; index++) {
      const before = Math.sqrt(frame[index] / most), after = Math.sqrt(frame[plane + index] / most), rest = Math.max(0, 1 - before - after);
      const total = before + after + rest;
      for (let part = 0; part < 3; part++) {
        image.data[4 * index + part] = (empty[part] * rest + off[part] * before + on[part] * after) / total;
      }
      image.data[4 * index + 3] = 255;
    }
  }
  canvas.width = width;
  canvas.height = height;
  context2d(canvas).putImageData(image, 0, 0);
}

/**
 * A map over tokens on top of a frame, the more attention, the less transparent.
 * @param {HTMLCanvasElement} canvas
 * @param {Float32Array} frame
 * @param {{height: number, width: number, values: Float32Array, most: number}} map
 * @param {Preprocessing} seen
 * @param {Colours} colours
 */
export function paintAttention(canvas, frame, map, seen, colours) {
  const under = document.createElement("canvas");
  paintFrame(under, frame, seen, colours);
  const side = 8 * Math.max(1, Math.round(32 / Math.max(map.height, map.width)));
  canvas.width = side * map.width;
  canvas.height = side * map.height;
  const context = context2d(canvas);
  context.imageSmoothingEnabled = false;
  context.drawImage(under, 0, 0, canvas.width, canvas.height);
  context.fillStyle = colours.spike;
  map.values.forEach((value, token) => {
    context.globalAlpha = map.most > 0 ? 0.82 * (value / map.most) : 0;
    context.fillRect((token % map.width) * side, Math.floor(token / map.width) * side, side, side);
  });
  context.globalAlpha = 1;
}
