// Sharing: a link to the state, a picture of any panel, and the numbers as JSON. Nothing leaves the page by itself.

import { exitStep, likeliest } from "./anytime.js";
import { CONVENTIONS, spent } from "./cost.js";
import { toLink } from "./state.js";
import { byId } from "./ui.js";

/** @typedef {import("./app.js").App} App */

/** @param {App} app */
export function setUpSharing(app) {
  const copy = byId("copy", HTMLButtonElement);
  copy.addEventListener("click", () => app.attempt(async () => {
    const { sample, item } = app, bytes = sample?.values instanceof Uint8Array && sample.kind === "picture" ? sample.values : null;
    location.hash = toLink(app.state, { item, bytes });
    const copied = await navigator.clipboard?.writeText(location.href).then(() => true, () => false);
    app.report(copied ? "The link is copied." : "The link is in the address bar.");
    copy.textContent = copied ? "Link copied" : "Link is in the address bar";
    window.setTimeout(() => (copy.textContent = "Copy link"), 2000);
  }));
  byId("export", HTMLButtonElement).addEventListener("click", () => {
    const numbers = JSON.stringify(numbersOf(app), null, 1);
    offer(new Blob([numbers], { type: "application/json" }), "spikformer-numbers.json");
  });
  for (const button of document.querySelectorAll("button.save")) {
    if (!(button instanceof HTMLButtonElement)) continue;
    const name = button.dataset.panel ?? "";
    button.addEventListener("click", () => {
      panelPicture(byId(name, HTMLElement)).toBlob((blob) => blob && offer(blob, `spikformer-${name}.png`));
    });
  }
}

/**
 * What the page shows, as plain data.
 * @param {App} app
 */
export function numbersOf({ about, state, sample, thought }) {
  if (!thought) return null;
  return {
    network: about.name,
    version: about.version,
    input: { name: sample?.name, label: sample?.label },
    state,
    classes: about.classes,
    answer: about.classes[likeliest(thought.shares[thought.steps - 1])],
    silent: thought.quiet,
    logits: [...thought.logits],
    readouts: thought.readouts.map((readout) => [...readout]),
    probabilities: thought.shares.map((shares) => [...shares]),
    exit_after_step: (exitStep(thought.shares, state.confidence) ?? thought.steps - 1) + 1,
    spikes: thought.cost.spikesByStep,
    cost: Object.fromEntries(CONVENTIONS.map((name) => [name, spent(thought.cost, name, thought.steps, about.energy)])),
    twin: { macs: about.energy.twinMacs, picojoules: about.energy.twinMacs * about.energy.macPj },
    layers: thought.cost.layers.map(({ name, density, steps }) => ({ name, density, operations: steps })),
    milliseconds: thought.milliseconds,
  };
}

/**
 * Let the visitor save something.
 * @param {Blob} blob
 * @param {string} name
 */
function offer(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  window.setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/**
 * A panel as it is on the screen, painted anew: backgrounds, borders, drawings, text and the values of controls.
 * @param {HTMLElement} panel
 * @returns {HTMLCanvasElement}
 */
export function panelPicture(panel) {
  const box = panel.getBoundingClientRect(), canvas = document.createElement("canvas"), ratio = Math.max(2, window.devicePixelRatio);
  canvas.width = Math.round(box.width * ratio);
  canvas.height = Math.round(box.height * ratio);
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.scale(ratio, ratio);
  context.translate(-box.left, -box.top);
  context.imageSmoothingEnabled = false;
  paintElement(context, panel);
  return canvas;
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {HTMLElement} element
 */
function paintElement(context, element) {
  const style = getComputedStyle(element), box = element.getBoundingClientRect();
  if (style.display === "none" || style.visibility === "hidden" || element.matches(".save, .unseen, legend, input[type=file], input[type=radio]")) return;
  if (element instanceof HTMLInputElement || element instanceof HTMLSelectElement) {
    paintControl(context, element, box, style);
    return;
  }
  const hidden = box.width < 1 || box.height < 1;
  if (!hidden) {
    context.save();
    context.beginPath();
    context.roundRect(box.left, box.top, box.width, box.height, parseFloat(style.borderTopLeftRadius) || 0);
    context.fillStyle = style.backgroundColor;
    context.fill();
    context.strokeStyle = style.borderTopColor;
    if (parseFloat(style.borderTopWidth) && !parseFloat(style.borderLeftWidth)) context.strokeRect(box.left, box.top, box.width, 0);
    else if (parseFloat(style.borderTopWidth)) context.stroke();
    if (style.overflow === "hidden" || element instanceof HTMLCanvasElement) context.clip();
    if (element instanceof HTMLCanvasElement) context.drawImage(element, box.left, box.top, box.width, box.height);
  }
  for (const child of element.childNodes) {
    if (child instanceof HTMLElement) paintElement(context, child);
    else if (child instanceof Text) paintText(context, child, style);
  }
  if (!hidden) context.restore();
}

/**
 * A slider as a line with a knob, a box with its tick, or the text of a choice or number in its frame.
 * @param {CanvasRenderingContext2D} context
 * @param {HTMLInputElement | HTMLSelectElement} control
 * @param {DOMRect} box
 * @param {CSSStyleDeclaration} style
 */
function paintControl(context, control, box, style) {
  const middle = box.top + box.height / 2, slider = control instanceof HTMLInputElement && control.type === "range";
  context.save();
  context.fillStyle = context.strokeStyle = style.color;
  context.globalAlpha = slider ? 0.6 : 1;
  context.lineWidth = slider ? 2 : 1;
  if (slider) {
    const share = (control.valueAsNumber - Number(control.min)) / (Number(control.max) - Number(control.min) || 1);
    context.strokeRect(box.left, middle, box.width, 0);
    context.beginPath();
    context.arc(box.left + 7 + share * (box.width - 14), middle, 6, 0, 2 * Math.PI);
    context.fill();
  } else {
    context.globalAlpha = 0.25;
    context.strokeRect(box.left, box.top, box.width, box.height);
    context.globalAlpha = 1;
    const ticked = control instanceof HTMLInputElement && control.type === "checkbox";
    const text = ticked ? (control.checked ? "✓" : "") : control instanceof HTMLSelectElement ? control.selectedOptions[0]?.text ?? "" : control.value;
    context.font = `${style.fontSize} ${style.fontFamily}`;
    context.textBaseline = "middle";
    context.fillText(text.slice(0, 60), box.left + (ticked ? 3 : 10), middle, box.width - 12);
  }
  context.restore();
}

/**
 * A text in the lines that the browser broke it into.
 * @param {CanvasRenderingContext2D} context
 * @param {Text} text
 * @param {CSSStyleDeclaration} style
 */
function paintText(context, text, style) {
  const content = text.data.slice(0, 2000), range = document.createRange();
  if (!content.trim()) return;
  context.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
  context.fillStyle = style.color;
  context.textBaseline = "middle";
  let line = "", at = /** @type {DOMRect | null} */ (null);
  const flush = () => at && line.trim() && context.fillText(line, at.left, at.top + at.height / 2);
  for (let index = 0; index < content.length; index++) {
    range.setStart(text, index);
    range.setEnd(text, index + 1);
    const place = range.getBoundingClientRect();
    if (at && place.width && place.top > at.top + at.height / 2) {
      flush();
      line = "";
      at = null;
    }
    at ??= place.width ? place : null;
    line += content[index];
  }
  flush();
}
