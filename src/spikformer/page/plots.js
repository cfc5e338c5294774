// Drawings on canvases: heat maps, mosaics, rasters and curves, in the colours of the style sheet.

/** @typedef {{paper: string, panel: string, ink: string, soft: string, line: string, band: string, accent: string, spike: string, cell: string, quiet: string, good: string, off: string}} Colours */

/** @returns {Colours} */
export function colours() {
  const style = getComputedStyle(document.documentElement);
  const names = ["paper", "panel", "ink", "soft", "line", "band", "accent", "spike", "cell", "quiet", "good", "off"];
  return /** @type {Colours} */ (Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()])));
}

/**
 * @param {string} hex #rrggbb
 * @returns {[number, number, number]}
 */
export function rgb(hex) {
  const value = parseInt(hex.slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

/**
 * The drawing context of a canvas with one unit for each CSS pixel, cleared.
 * @param {HTMLCanvasElement} canvas
 */
export function plot(canvas) {
  const ratio = window.devicePixelRatio || 1, { clientWidth: width, clientHeight: height } = canvas;
  canvas.width = Math.max(1, Math.round(width * ratio));
  canvas.height = Math.max(1, Math.round(height * ratio));
  const context = context2d(canvas);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.font = `11px ${getComputedStyle(canvas).fontFamily}`;
  context.lineJoin = "round";
  return { context, width, height };
}

/** @param {HTMLCanvasElement} canvas */
export function context2d(canvas) {
  return /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d", { willReadFrequently: true }));
}

/**
 * One pixel for each value, from the colour of an empty cell to that of spikes.
 * @param {HTMLCanvasElement} canvas
 * @param {ArrayLike<number>} values between 0 and 1, [height][width]
 * @param {number} width
 * @param {number} height
 * @param {Colours} colours
 */
export function heatMap(canvas, values, width, height, { cell, spike }) {
  canvas.width = width;
  canvas.height = height;
  const image = new ImageData(width, height), from = rgb(cell), to = rgb(spike);
  for (let index = 0; index < width * height; index++) {
    const share = Math.min(1, values[index]) ** 0.8; // what is rare is seen, too
    for (let part = 0; part < 3; part++) image.data[4 * index + part] = from[part] + (to[part] - from[part]) * share;
    image.data[4 * index + 3] = 255;
  }
  context2d(canvas).putImageData(image, 0, 0);
}

/**
 * How channels of a map are laid out side by side with a pixel between them.
 * @param {number} channels
 * @param {number} height
 * @param {number} width
 */
export function mosaicGrid(channels, height, width) {
  const columns = Math.max(1, Math.round(Math.sqrt((channels * (height + 1) * 1.45) / (width + 1))));
  return { columns, rows: Math.ceil(channels / columns) };
}

/**
 * The spikes of every channel at one step, as a map each.
 * @param {HTMLCanvasElement} canvas
 * @param {Uint8Array} spikes [positions][channels]
 * @param {{channels: number, height: number, width: number}} shape
 * @param {{position: number, channel: number}} chosen
 * @param {Colours} colours
 */
export function mosaic(canvas, spikes, { channels, height, width }, chosen, { cell, spike, panel, accent }) {
  const { columns, rows } = mosaicGrid(channels, height, width);
  canvas.width = columns * (width + 1) + 1;
  canvas.height = rows * (height + 1) + 1;
  const context = context2d(canvas);
  context.fillStyle = panel;
  context.fillRect(0, 0, canvas.width, canvas.height);
  for (let channel = 0; channel < channels; channel++) {
    const left = (channel % columns) * (width + 1) + 1, top = Math.floor(channel / columns) * (height + 1) + 1;
    if (channel === chosen.channel) {
      context.fillStyle = accent;
      context.fillRect(left - 1, top - 1, width + 2, height + 2);
    }
    context.fillStyle = cell;
    context.fillRect(left, top, width, height);
    context.fillStyle = spike;
    for (let position = 0; position < height * width; position++) {
      if (spikes[position * channels + channel]) {
        context.fillRect(left + (position % width), top + Math.floor(position / width), 1, 1);
      }
    }
  }
}

/**
 * A row of ticks for each step, a column for each of the neurons that are shown.
 * @param {HTMLCanvasElement} canvas
 * @param {Uint8Array} spikes [T][neurons]
 * @param {number} steps
 * @param {number[]} shown neurons
 * @param {{step: number, neuron: number}} chosen
 * @param {Colours} colours
 */
export function raster(canvas, spikes, steps, shown, chosen, colours) {
  const { context, width, height } = plot(canvas), size = spikes.length / steps;
  const left = 22, row = (height - 4) / steps, column = (width - left - 4) / shown.length;
  context.textBaseline = "middle";
  for (let step = 0; step < steps; step++) {
    const top = 2 + step * row;
    context.fillStyle = step === chosen.step ? colours.band : colours.panel;
    context.fillRect(left, top, width - left - 4, row - 2);
    context.fillStyle = step === chosen.step ? colours.ink : colours.soft;
    if (steps <= 20 || step % 5 === 4) context.fillText(String(step + 1), 4, top + row / 2);
    context.fillStyle = colours.spike;
    shown.forEach((neuron, index) => {
      if (spikes[step * size + neuron]) context.fillRect(left + index * column, top + 1, Math.max(0.7, column - 0.5), row - 4);
    });
  }
  const place = shown.indexOf(chosen.neuron);
  if (place < 0) return;
  context.strokeStyle = colours.accent;
  context.strokeRect(left + place * column - 1, 1, column + 1.5, height - 2);
}

/**
 * Curves over steps, each with a colour, a width and perhaps dashes, between two values, with lines across.
 * @param {HTMLCanvasElement} canvas
 * @param {{values: ArrayLike<number>, colour: string, width?: number, dashed?: boolean, text?: string}[]} curves
 * @param {{steps: number, low: number, high: number, format: (value: number) => string, step: number,
 *   levels?: {value: number, text: string, colour: string}[], marks?: {step: number, value: number, colour: string}[]}} axes
 * @param {Colours} colours
 */
export function lines(canvas, curves, axes, colours) {
  const { context, width, height } = plot(canvas);
  const left = 40, right = width - 12, top = 12, bottom = height - 22;
  const gap = axes.steps > 1 ? (right - left - 24) / (axes.steps - 1) : 0;
  const across = (/** @type {number} */ step) => (axes.steps > 1 ? left + 12 + step * gap : (left + right) / 2);
  const down = (/** @type {number} */ value) => bottom - ((value - axes.low) / (axes.high - axes.low || 1)) * (bottom - top);
  context.fillStyle = colours.band;
  const wide = Math.max(8, Math.min(gap || 60, 60));
  context.fillRect(across(axes.step) - wide / 2, top - 6, wide, bottom - top + 6);
  context.lineWidth = 1;
  context.textBaseline = "middle";
  for (const share of [0, 0.5, 1]) {
    const value = axes.low + share * (axes.high - axes.low), y = Math.round(down(value)) + 0.5;
    context.strokeStyle = colours.line;
    segment(context, [[left, y], [right, y]]);
    context.fillStyle = colours.soft;
    context.textAlign = "right";
    context.fillText(axes.format(value), left - 6, y);
  }
  context.textAlign = "center";
  for (let step = 0; step < axes.steps; step++) {
    context.fillStyle = step === axes.step ? colours.ink : colours.soft;
    if (axes.steps <= 20 || step % 4 === 3) context.fillText(String(step + 1), across(step), height - 9);
  }
  for (const { value, text, colour } of axes.levels ?? []) {
    context.strokeStyle = context.fillStyle = colour;
    context.setLineDash([2, 3]);
    segment(context, [[left, down(value)], [right, down(value)]]);
    context.setLineDash([]);
    context.textAlign = "left";
    context.fillText(text, left + 4, down(value) + (down(value) < top + 26 ? 9 : -7));
  }
  for (const { values, colour, width: thick = 1.5, dashed = false, text } of curves) {
    const points = Array.from(values, (value, step) => /** @type {[number, number]} */ ([across(step), down(value)]));
    context.strokeStyle = context.fillStyle = colour;
    context.lineWidth = thick;
    context.setLineDash(dashed ? [4, 4] : []);
    segment(context, points);
    context.setLineDash([]);
    if (!dashed) points.forEach(([x, y]) => dot(context, x, y, thick + 0.8));
    if (text) {
      const [x, y] = points[points.length - 1];
      context.textAlign = "right";
      context.fillText(text, x - 6, y + (y < top + 16 ? 12 : -10));
    }
  }
  for (const { step, value, colour } of axes.marks ?? []) {
    context.fillStyle = colour;
    dot(context, across(step), down(value), 4.5);
  }
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {[number, number][]} points
 */
function segment(context, points) {
  context.beginPath();
  points.forEach(([x, y], index) => (index ? context.lineTo(x, y) : context.moveTo(x, y)));
  context.stroke();
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {number} x
 * @param {number} y
 * @param {number} radius
 */
function dot(context, x, y, radius) {
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.fill();
}
