// The input panel: a drawing pad, the gallery, files, the camera, and the patches of what the network sees.

import { readRecording } from "./formats.js";
import { decode, drawn, isPicture, paintFrame, pictureSample } from "./picture.js";
import { colours } from "./plots.js";
import { FileProblem } from "./events.js";
import { fromBase64, patchGrid } from "./sample.js";
import { framesOf } from "./think.js";
import { byId, make, press, toggle } from "./ui.js";
import { setUpPad } from "./pad.js";
import { setUpCamera } from "./camera.js";

/** @typedef {import("./app.js").App} App */
/** @typedef {import("./types.js").GalleryItem} GalleryItem */
/** @typedef {import("./types.js").Sample} Sample */

const LARGEST_FILE = 64 << 20;

/**
 * The sample of an item of the gallery.
 * @param {GalleryItem} item
 * @returns {Promise<Sample>}
 */
export async function itemSample(item) {
  const bytes = fromBase64(item.bytes), { kind, name, label } = item;
  return kind === "recording" ? { kind, recording: await readRecording(bytes, "gallery.npz"), name, label } : { kind, values: bytes, name, label };
}

/**
 * @param {App} app
 * @param {GalleryItem[]} items
 */
export function setUpInput(app, items) {
  const events = app.about.preprocessing.kind === "events";
  const stopCamera = setUpCamera(app);
  setUpPad(byId("pad", HTMLCanvasElement), byId("clear", HTMLButtonElement), (canvas) => {
    const pixels = drawn(canvas, canvas.width, canvas.height);
    app.attempt(() => app.show(pictureSample(app.engine, pixels, app.about.preprocessing, "a drawing")));
  });
  const radios = [...byId("sources", HTMLElement).querySelectorAll("input")];
  for (const radio of radios) {
    const absent = (events && radio.value !== "gallery" && radio.value !== "file") || (radio.value === "gallery" && !items.length);
    if (absent) radio.closest("label")?.setAttribute("hidden", "");
    radio.addEventListener("change", () => {
      openSource(radio.value);
      if (radio.value !== "camera") stopCamera();
    });
  }
  setUpGallery(app, items);
  setUpFiles(app, events);
  setUpPatches(app);
  openSource(items.length ? "gallery" : events ? "file" : "draw");
}

/** @param {string} name */
function openSource(name) {
  for (const part of document.querySelectorAll("[data-source]")) {
    if (part instanceof HTMLElement) part.hidden = part.dataset.source !== name;
  }
  const radio = document.querySelector(`input[name="source"][value="${CSS.escape(name)}"]`);
  if (radio instanceof HTMLInputElement) radio.checked = true;
}

/**
 * @param {App} app
 * @param {GalleryItem[]} items
 */
function setUpGallery(app, items) {
  const buttons = items.map((item, index) => {
    const canvas = make("canvas");
    const label = make("span", { text: item.label });
    const button = toggle(`${item.label}, ${item.name}`, () => app.attempt(async () => app.show(await itemSample(item), index)), [canvas, label]);
    void itemSample(item).then((sample) => {
      const frames = framesOf(sample, 1, app.about);
      const paint = () => paintFrame(canvas, frames[0], app.about.preprocessing, colours());
      paint();
      app.onChange(paint);
    });
    return button;
  });
  byId("gallery", HTMLElement).replaceChildren(...buttons);
  app.onChange(() => buttons.forEach((button, index) => press(button, app.item === index)));
}

/**
 * @param {App} app
 * @param {boolean} events
 */
function setUpFiles(app, events) {
  const input = byId("file", HTMLInputElement);
  input.accept = events ? ".npz,.aedat,.bin" : "image/*";
  byId("accepts", HTMLElement).textContent = events ? "recordings: .npz, .aedat or .bin" : "a picture: PNG, JPEG, WebP, GIF or BMP";
  input.addEventListener("change", () => {
    if (input.files?.[0]) void open(app, input.files[0], events);
    input.value = "";
  });
  const mark = (/** @type {boolean} */ on) => document.body.classList.toggle("dropping", on);
  document.addEventListener("dragover", (event) => {
    event.preventDefault();
    mark(true);
  });
  document.addEventListener("dragleave", () => mark(false));
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    mark(false);
    const file = event.dataTransfer?.files[0];
    if (file) void open(app, file, events);
  });
}

/**
 * @param {App} app
 * @param {File} file
 * @param {boolean} events
 */
async function open(app, file, events) {
  await app.attempt(async () => {
    if (file.size > LARGEST_FILE) throw new FileProblem(`The file has ${Math.ceil(file.size / 2 ** 20)} MB; at most ${LARGEST_FILE >> 20} are read.`);
    const bytes = new Uint8Array(await file.arrayBuffer()), name = file.name.slice(0, 80);
    if (events) {
      app.show({ kind: "recording", recording: await readRecording(bytes, file.name), name, label: null });
    } else {
      if (!isPicture(bytes)) throw new FileProblem(`${name} is no picture that is known here; expected PNG, JPEG, WebP, GIF or BMP.`);
      app.show(pictureSample(app.engine, await decode(bytes), app.about.preprocessing, name));
    }
    app.report(`${name} is shown.`);
  });
}

/** @param {App} app */
function setUpPatches(app) {
  const { about } = app, { rows, columns } = patchGrid(about.preprocessing, about.patchSize);
  const canvas = byId("seen", HTMLCanvasElement), grid = byId("patches", HTMLElement);
  canvas.style.aspectRatio = `${about.preprocessing.size[1]} / ${about.preprocessing.size[0]}`;
  grid.style.gridTemplateColumns = `repeat(${columns}, 1fr)`;
  grid.style.gridTemplateRows = `repeat(${rows}, 1fr)`;
  const buttons = Array.from({ length: rows * columns }, (_, patch) =>
    toggle(`Hide the patch in row ${Math.floor(patch / columns) + 1}, column ${(patch % columns) + 1}`, () => {
      const { occluded } = app.state.changes;
      app.change({ occluded: occluded.includes(patch) ? occluded.filter((each) => each !== patch) : [...occluded, patch] });
    }),
  );
  rove(grid, buttons, columns);
  const uncover = byId("uncover", HTMLButtonElement);
  uncover.addEventListener("click", () => app.change({ occluded: [] }));
  app.onChange(() => {
    const { thought, state } = app;
    if (thought) paintFrame(canvas, thought.frames[state.step], about.preprocessing, colours());
    buttons.forEach((button, patch) => press(button, state.changes.occluded.includes(patch)));
    uncover.disabled = !state.changes.occluded.length;
  });
}

/**
 * One stop of the tab key for a grid of buttons; arrow keys move within it.
 * @param {HTMLElement} grid
 * @param {HTMLButtonElement[]} buttons
 * @param {number} columns
 */
function rove(grid, buttons, columns) {
  const moves = new Map([["ArrowLeft", -1], ["ArrowRight", 1], ["ArrowUp", -columns], ["ArrowDown", columns]]);
  buttons.forEach((button, index) => (button.tabIndex = index ? -1 : 0));
  grid.replaceChildren(...buttons);
  grid.addEventListener("keydown", (event) => {
    const from = buttons.findIndex((button) => button === document.activeElement), move = moves.get(event.key);
    const to = buttons[from + (move ?? NaN)];
    if (move === undefined) return;
    event.preventDefault();
    if (!to) return;
    buttons[from].tabIndex = -1;
    to.tabIndex = 0;
    to.focus();
  });
}
