// Spikes: a map for every layer, and of the chosen layer all channels, a raster, and the membrane of one neuron.

import { colours, context2d, heatMap, lines, mosaic, mosaicGrid, raster } from "./plots.js";
import { byId, fillSelect, layerTitle, make, percent, press, toggle } from "./ui.js";

/** @typedef {import("./app.js").App} App */
/** @typedef {import("./types.js").Op} Op */

const MOST_SHOWN = 256; // neurons of a raster

/** @param {App} app */
export function setUpLayers(app) {
  const fires = app.about.ops.filter((op) => op.op === "fire");
  const parts = fires.map((op) => {
    const map = make("canvas", { className: "map" }), line = make("canvas", { className: "line" });
    const name = make("span", { className: "name", text: layerTitle(op.name) }), rate = make("span");
    const button = toggle(layerTitle(op.name), () => chooseLayer(app, op.name), [map, rate, line, name]);
    return { op, map, line, name, rate, button };
  });
  byId("thumbs", HTMLElement).replaceChildren(...parts.map((each) => each.button));
  const size = new Map(fires.map((op) => [op.name, op.height * op.width * op.channels]));
  app.onChange(() => {
    const { thought, state } = app, palette = colours();
    if (!thought) return;
    for (const { op, map, line, name, rate, button } of parts) {
      const spikes = /** @type {Uint8Array} */ (thought.spikes.get(op.name)), count = size.get(op.name) ?? 1;
      const rates = Array.from({ length: thought.steps }, (_, step) => total(spikes.subarray(step * count, (step + 1) * count)) / count);
      const places = perPosition(spikes, op);
      const most = places.reduce((largest, share) => Math.max(largest, share), 0.02), at = state.step * op.height * op.width; // of all steps, so that they compare
      heatMap(map, places.subarray(at, at + op.height * op.width).map((share) => share / most), op.width, op.height, palette);
      rate.textContent = `${percent(rates[state.step])} fire`;
      stepBars(line, rates, state.step, palette);
      press(button, op.name === state.layer);
      const silent = state.changes.silent.includes(op.name);
      name.classList.toggle("off", silent);
      button.setAttribute("aria-label", `${layerTitle(op.name)}: ${percent(rates[state.step])} fire${silent ? ", silenced" : ""}`);
    }
  });
  setUpNeuron(app, fires);
}

/**
 * @param {App} app
 * @param {string} layer
 */
export function chooseLayer(app, layer) {
  app.set({ layer, position: 0, channel: 0 });
}

/**
 * The share of channels that fire at each position of each step.
 * @param {Uint8Array} spikes
 * @param {Op} op
 */
function perPosition(spikes, { channels }) {
  return Float32Array.from({ length: spikes.length / channels }, (_, place) => total(spikes.subarray(place * channels, (place + 1) * channels)) / channels);
}

/** @param {Uint8Array} values */
function total(values) {
  let sum = 0;
  for (const value of values) sum += value;
  return sum;
}

/**
 * @param {HTMLCanvasElement} canvas
 * @param {number[]} rates
 * @param {number} step
 * @param {import("./plots.js").Colours} palette
 */
function stepBars(canvas, rates, step, palette) {
  canvas.width = 6 * rates.length;
  canvas.height = 16;
  const context = context2d(canvas), most = Math.max(...rates, 0.02);
  rates.forEach((rate, index) => {
    const height = Math.max(1, Math.round((16 * rate) / most));
    context.fillStyle = index === step ? palette.spike : palette.quiet;
    context.fillRect(6 * index, 16 - height, 5, height);
  });
}

/**
 * @param {App} app
 * @param {Op[]} fires
 */
function setUpNeuron(app, fires) {
  const layer = byId("layer", HTMLSelectElement);
  fillSelect(layer, fires.map((op) => [op.name, layerTitle(op.name)]));
  layer.addEventListener("change", () => chooseLayer(app, layer.value));
  const [row, column, channel] = ["row", "column", "channel"].map((id) => byId(id, HTMLInputElement));
  const chosen = () => /** @type {Op} */ (app.about.ops.find((op) => op.name === app.state.layer));
  const choose = () => {
    const op = chosen(), within = (/** @type {HTMLInputElement} */ field, /** @type {number} */ most) => Math.min(most, Math.max(1, Math.round(Number(field.value) || 1))) - 1;
    app.set({ position: within(row, op.height) * op.width + within(column, op.width), channel: within(channel, op.channels) });
  };
  [row, column, channel].forEach((field) => field.addEventListener("change", choose));
  const map = byId("mosaic", HTMLCanvasElement), ticks = byId("raster", HTMLCanvasElement), curve = byId("membrane", HTMLCanvasElement);
  map.addEventListener("click", (event) => pickFromMosaic(app, map, chosen(), event));
  ticks.addEventListener("click", (event) => {
    const op = chosen(), shown = shownNeurons(op, neuronOf(app, op));
    const place = Math.floor(((event.offsetX - 22) / (ticks.clientWidth - 26)) * shown.length), neuron = shown[place];
    if (neuron !== undefined) app.set({ position: Math.floor(neuron / op.channels), channel: neuron % op.channels });
  });
  app.onChange(() => {
    const { thought, state } = app, palette = colours(), op = chosen();
    const spikes = thought?.spikes.get(op.name), potentials = thought?.membranes.get(op.name);
    if (!thought || !spikes || !potentials) return;
    layer.value = op.name;
    Object.assign(row, { value: String(Math.floor(state.position / op.width) + 1), max: String(op.height) });
    Object.assign(column, { value: String((state.position % op.width) + 1), max: String(op.width) });
    Object.assign(channel, { value: String(state.channel + 1), max: String(op.channels) });
    const size = op.height * op.width * op.channels, neuron = neuronOf(app, op), shown = shownNeurons(op, neuron);
    mosaic(map, spikes.subarray(state.step * size, (state.step + 1) * size), op, state, palette);
    raster(ticks, spikes, thought.steps, shown, { step: state.step, neuron }, palette);
    byId("raster-c", HTMLElement).textContent = `Raster: steps from top to bottom, ${shown.length.toLocaleString("en")} of ${size.toLocaleString("en")} neurons from left to right`;
    drawMembrane(curve, op, Float32Array.from({ length: thought.steps }, (_, step) => potentials[step * size + neuron]), Array.from({ length: thought.steps }, (_, step) => spikes[step * size + neuron]), state.step, palette);
    const fired = thought.steps ? Array.from({ length: thought.steps }, (_, step) => spikes[step * size + neuron]).reduce((sum, spike) => sum + spike, 0) : 0;
    byId("membrane-c", HTMLElement).textContent = `Membrane before each reset; it fired in ${fired} of ${thought.steps} steps`;
  });
}

/**
 * @param {App} app
 * @param {Op} op
 */
function neuronOf({ state }, op) {
  return Math.min(state.position, op.height * op.width - 1) * op.channels + Math.min(state.channel, op.channels - 1);
}

/**
 * Neurons from all over a layer, the chosen one among them.
 * @param {Op} op
 * @param {number} chosen
 */
function shownNeurons(op, chosen) {
  const size = op.height * op.width * op.channels, count = Math.min(size, MOST_SHOWN);
  const spread = Array.from({ length: count }, (_, index) => Math.floor((index * size) / count));
  return [...new Set([...spread, chosen])].sort((one, other) => one - other);
}

/**
 * @param {App} app
 * @param {HTMLCanvasElement} canvas
 * @param {Op} op
 * @param {MouseEvent} event
 */
function pickFromMosaic(app, canvas, op, event) {
  const { columns } = mosaicGrid(op.channels, op.height, op.width);
  const x = (event.offsetX / canvas.clientWidth) * canvas.width - 1, y = (event.offsetY / canvas.clientHeight) * canvas.height - 1;
  const channel = Math.floor(y / (op.height + 1)) * columns + Math.floor(x / (op.width + 1));
  const row = Math.min(op.height - 1, Math.floor(y % (op.height + 1))), column = Math.min(op.width - 1, Math.floor(x % (op.width + 1)));
  if (x >= 0 && y >= 0 && channel < op.channels) app.set({ channel, position: row * op.width + column });
}

/**
 * @param {HTMLCanvasElement} canvas
 * @param {Op} op
 * @param {Float32Array} values
 * @param {number[]} spikes
 * @param {number} step
 * @param {import("./plots.js").Colours} palette
 */
function drawMembrane(canvas, op, values, spikes, step, palette) {
  const threshold = op.threshold ?? 1, reset = op.reset ?? 0;
  const low = Math.min(reset, ...values), high = Math.max(threshold * 1.25, ...values);
  lines(canvas, [{ values, colour: palette.accent, width: 2 }], {
    steps: values.length, low, high, step, format: (value) => value.toFixed(1),
    levels: [{ value: threshold, text: `threshold ${threshold}`, colour: palette.spike }],
    marks: spikes.flatMap((spike, index) => (spike ? [{ step: index, value: values[index], colour: palette.spike }] : [])),
  }, palette);
}
