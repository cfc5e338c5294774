// What a visitor has chosen, and the same as the fragment of a link. Anybody can write a link: every field is checked.

import { CONVENTIONS } from "./cost.js";
import { fromBase64, patchGrid, toBase64 } from "./sample.js";

/** @typedef {import("./types.js").About} About */
/** @typedef {import("./types.js").State} State */
/** @typedef {{item: number | null, bytes: Uint8Array | null}} Source what is shown: of the gallery, or a picture */

const LARGEST_PICTURE = 4096;
const LONGEST_LINK = 20000;
export const DEFAULT_CONFIDENCE = 0.9;

/**
 * @param {About} about
 * @returns {State}
 */
export function initialState(about) {
  const fires = about.ops.filter((op) => op.op === "fire");
  return {
    steps: about.timeSteps,
    step: about.timeSteps - 1,
    confidence: about.card.confidence ?? DEFAULT_CONFIDENCE,
    layer: fires[Math.min(1, fires.length - 1)].name,
    position: 0,
    channel: 0,
    attention: 0,
    head: -1,
    query: -1,
    convention: "paper",
    changes: { silent: [], heads: [], noise: {}, occluded: [] },
  };
}

/**
 * Whether anything is not as trained.
 * @param {State} state
 * @param {About} about
 */
export function isChanged({ steps, changes }, about) {
  const { silent, heads, noise, occluded } = changes;
  return steps !== about.timeSteps || !!(silent.length + heads.length + occluded.length + Object.keys(noise).length);
}

/**
 * @param {State} state
 * @param {Source} source
 * @returns {string} without #
 */
export function toLink(state, source) {
  const { changes } = state, link = new URLSearchParams();
  if (source.item !== null) link.set("sample", String(source.item));
  else if (source.bytes && source.bytes.length <= LARGEST_PICTURE) link.set("picture", toBase64(source.bytes));
  for (const name of /** @type {const} */ (["steps", "step", "confidence", "layer", "position", "channel", "attention", "head", "query", "convention"])) {
    link.set(name, String(state[name]));
  }
  changes.silent.forEach((name) => link.append("silent", name));
  changes.heads.forEach((name) => link.append("off", name));
  Object.entries(changes.noise).forEach(([name, share]) => link.append("noise", `${share}:${name}`));
  if (changes.occluded.length) link.set("hidden", changes.occluded.join("."));
  return link.toString();
}

/**
 * The state and source of a link; what does not fit this network is left at its default.
 * @param {string} text
 * @param {About} about
 * @param {number} numSamples
 * @returns {{state: State, source: Source}}
 */
export function fromLink(text, about, numSamples) {
  const state = initialState(about), link = new URLSearchParams(text.length > LONGEST_LINK ? "" : text.replace(/^#/, ""));
  /** @type {(name: string, least: number, most: number, otherwise: number) => number} */
  const count = (name, least, most, otherwise) => {
    const value = Number(link.get(name) ?? NaN);
    return Number.isInteger(value) && value >= least && value <= most ? value : otherwise;
  };
  const names = new Set(about.ops.filter((op) => op.op === "fire").map((op) => op.name));
  const layer = link.get("layer") ?? "";
  if (names.has(layer)) state.layer = layer;
  const op = /** @type {import("./types.js").Op} */ (about.ops.find((each) => each.name === state.layer));
  state.steps = count("steps", 1, about.mostSteps, state.steps);
  state.step = count("step", 0, state.steps - 1, state.steps - 1);
  state.position = count("position", 0, op.height * op.width - 1, 0);
  state.channel = count("channel", 0, op.channels - 1, 0);
  state.attention = count("attention", 0, about.attention.length - 1, 0);
  const attention = about.attention[state.attention], grid = attention && about.ops[attention.number - 1];
  state.head = count("head", -1, (attention?.heads ?? 0) - 1, -1);
  state.query = count("query", -1, grid ? grid.height * grid.width - 1 : -1, -1);
  const confidence = Number(link.get("confidence") ?? NaN);
  if (confidence >= 0.5 && confidence <= 1) state.confidence = confidence;
  state.convention = CONVENTIONS.find((each) => each === link.get("convention")) ?? state.convention;
  state.changes = changesOf(link, about, names);
  return { state, source: sourceOf(link, about, count("sample", 0, numSamples - 1, -1)) };
}

/**
 * @param {URLSearchParams} link
 * @param {About} about
 * @param {Set<string>} names
 * @returns {import("./types.js").Changes}
 */
function changesOf(link, about, names) {
  /** @type {Record<string, number>} */
  const noise = {};
  for (const each of link.getAll("noise")) {
    const colon = each.indexOf(":"), share = Number(each.slice(0, colon)), name = each.slice(colon + 1);
    if (names.has(name) && share > 0 && share <= 0.5) noise[name] = share;
  }
  const heads = link.getAll("off").filter((each) => {
    const [block, head] = each.split(":").map(Number);
    return head < (about.attention[block]?.heads ?? 0) && head >= 0 && each === `${block}:${head}`;
  });
  const { rows, columns } = patchGrid(about.preprocessing, about.patchSize);
  const hidden = (link.get("hidden") ?? "").split(".").filter(Boolean).map(Number);
  return {
    silent: [...new Set(link.getAll("silent"))].filter((name) => names.has(name)),
    heads: [...new Set(heads)],
    noise,
    occluded: [...new Set(hidden)].filter((patch) => Number.isInteger(patch) && patch >= 0 && patch < rows * columns),
  };
}

/**
 * @param {URLSearchParams} link
 * @param {About} about
 * @param {number} item
 * @returns {Source}
 */
function sourceOf(link, about, item) {
  if (item >= 0) return { item, bytes: null };
  const { kind, channels, size } = about.preprocessing, text = link.get("picture");
  if (kind !== "image" || !text) return { item: null, bytes: null };
  try {
    const bytes = fromBase64(text);
    return { item: null, bytes: bytes.length === channels * size[0] * size[1] ? bytes : null };
  } catch {
    return { item: null, bytes: null };
  }
}
