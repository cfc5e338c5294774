// From a recording of events to frames of counts, as spikformer/sampling.py: slices by count or time, resize or crop.

/** @typedef {import("./types.js").Recording} Recording */
/** @typedef {import("./types.js").Preprocessing} Preprocessing */

/** A file that cannot be used; its message is for people. */
export class FileProblem extends Error {}

/**
 * Counts [T][2][H][W], OFF before ON, one array for each frame.
 * @param {Recording} recording
 * @param {number} steps
 * @param {Preprocessing} seen
 * @returns {Float32Array[]}
 */
export function toFrames(recording, steps, seen) {
  const placed = seen.swap_axes ? swapped(withSensor(recording, seen)) : withSensor(recording, seen);
  const [height, width] = seen.size, [rows, columns] = placed.size;
  const crop = seen.fit === "crop" && (rows !== height || columns !== width);
  if (crop && (height > rows || width > columns)) {
    throw new FileProblem(`A sensor of ${rows}×${columns} cannot be cropped to the network's ${height}×${width}.`);
  }
  const frames = Array.from({ length: steps }, () => new Float32Array(2 * height * width));
  const slice = seen.slicing === "time" ? sliceByTime(placed.time, steps) : sliceByCount(placed.time.length, steps);
  for (let index = 0; index < placed.time.length; index++) {
    let x = placed.x[index], y = placed.y[index];
    if (crop) {
      x -= Math.floor((columns - width) / 2);
      y -= Math.floor((rows - height) / 2);
      if (x < 0 || y < 0 || x >= width || y >= height) continue;
    } else {
      x = Math.floor((x * width) / columns);
      y = Math.floor((y * height) / rows);
    }
    frames[slice(index)][(placed.on[index] * height + y) * width + x]++;
  }
  return frames;
}

/**
 * ⌊n/T⌋ events a slice; the last one takes what is left over.
 * @param {number} count
 * @param {number} steps
 * @returns {(index: number) => number}
 */
function sliceByCount(count, steps) {
  const size = Math.max(Math.floor(count / steps), 1);
  return (index) => Math.min(Math.floor(index / size), steps - 1);
}

/**
 * Slice k starts at ⌈k · duration / T⌉, in integers that do not round.
 * @param {Float64Array} time
 * @param {number} steps
 * @returns {(index: number) => number}
 */
function sliceByTime(time, steps) {
  const duration = BigInt(time[time.length - 1] - time[0]) + 1n, parts = BigInt(steps);
  const starts = Array.from({ length: steps }, (_, step) => Number((BigInt(step) * duration + parts - 1n) / parts));
  let current = 0;
  return (index) => {
    while (current + 1 < steps && time[index] - time[0] >= starts[current + 1]) current++;
    return current;
  };
}

/**
 * A recording whose sensor was guessed, with that of the network's set.
 * @param {Recording} recording
 * @param {Preprocessing} seen
 * @returns {Recording}
 */
function withSensor(recording, seen) {
  if (!seen.sensor || !recording.guessed) return recording;
  const [rows, columns] = seen.sensor;
  if (recording.y.some((y) => y >= rows) || recording.x.some((x) => x >= columns)) {
    throw new FileProblem(`The file does not say its sensor, and has events outside the ${rows}×${columns} of its set.`);
  }
  return { ...recording, size: seen.sensor, guessed: false };
}

/**
 * Rows as columns.
 * @param {Recording} recording
 * @returns {Recording}
 */
function swapped(recording) {
  return { ...recording, x: recording.y, y: recording.x, size: [recording.size[1], recording.size[0]] };
}

/**
 * The recording, if it is one: not empty, inside its sensor, in the order of time.
 * @param {Recording} recording
 * @returns {Recording}
 */
export function checked(recording) {
  const { time, x, y, size: [height, width] } = recording;
  if (!time.length) throw new FileProblem("The file holds no events.");
  for (let index = 0; index < time.length; index++) {
    if (x[index] >= width || y[index] >= height) {
      throw new FileProblem(`Event ${index} is at column ${x[index]}, row ${y[index]}, outside the sensor of ${width}×${height}.`);
    }
    if (index && time[index] < time[index - 1]) throw new FileProblem(`Time runs backwards at event ${index}.`);
  }
  return recording;
}

/**
 * The first of some sizes, in growing order, that holds all events; the last if none does.
 * @param {Uint16Array} x
 * @param {Uint16Array} y
 * @param {[number, number][]} sizes
 * @returns {[number, number]}
 */
export function smallestSize(x, y, sizes) {
  const rows = y.reduce((most, value) => Math.max(most, value + 1), 0);
  const columns = x.reduce((most, value) => Math.max(most, value + 1), 0);
  return sizes.find(([height, width]) => rows <= height && columns <= width) ?? sizes[sizes.length - 1];
}
