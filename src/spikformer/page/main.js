// The page: the engine and its network out of the file itself, the panels around them, and the first sample.

import { App } from "./app.js";
import { setUpAnswer } from "./answer.js";
import { setUpChanges } from "./changes.js";
import { setUpCosts } from "./costs.js";
import { compileCore } from "./engine.js";
import { itemSample, setUpInput } from "./input.js";
import { setUpLayers } from "./layers.js";
import { setUpAttention } from "./looking.js";
import { fromBase64 } from "./sample.js";
import { setUpSharing } from "./share.js";
import { fromLink } from "./state.js";
import { setUpTransport } from "./transport.js";
import { amount, byId, percent } from "./ui.js";

/** @typedef {import("./types.js").About} About */
/** @typedef {import("./types.js").GalleryItem} GalleryItem */

/**
 * What an element of the page holds, which is dropped: a network has megabytes.
 * @param {string} id
 */
function take(id) {
  const element = byId(id, HTMLElement), text = element.textContent ?? "";
  element.remove();
  return text;
}

/** @param {About} about */
function introduce(about) {
  const { card, preprocessing: seen } = about, accuracy = card.results.find((each) => each.metric === "accuracy" && each.split === "test");
  const facts = [
    about.title,
    `${seen.size.join("×")} ${seen.kind === "events" ? "event frames" : "pictures"}`,
    `T = ${about.timeSteps}`,
    `${amount(about.parameters)} parameters`,
    ...(accuracy ? [`${percent(accuracy.value)} on test`] : []),
  ];
  byId("title", HTMLElement).textContent = about.name.slice(0, 100);
  byId("lead", HTMLElement).textContent = facts.join(" · ");
  document.title = `${about.name.slice(0, 100)}: a spiking network, live`;
  const notes = [card.limits, card.licence && `Licence: ${card.licence}`].filter(Boolean);
  const privacy = "Everything runs in this page; nothing is sent anywhere";
  const sentences = [...notes, privacy, `Written by spikformer ${about.version}`];
  byId("foot", HTMLElement).textContent = sentences.map((each) => `${each}`.replace(/\.?$/, ".")).join(" ");
}

async function start() {
  const about = /** @type {About} */ (JSON.parse(take("about-data")));
  const items = /** @type {GalleryItem[]} */ (JSON.parse(take("samples-data")));
  introduce(about);
  await new Promise((resolve) => requestAnimationFrame(() => window.setTimeout(resolve))); // the page is there before the engine
  const core = await compileCore(/** @type {Uint8Array<ArrayBuffer>} */ (fromBase64(take("wasm-data"))));
  const engine = core.load(fromBase64(take("engine-data")), { mode: "events" }); // the same bits in every browser
  const app = new App(about, engine);
  setUpInput(app, items);
  [setUpAnswer, setUpLayers, setUpAttention, setUpCosts, setUpChanges, setUpTransport, setUpSharing].forEach((panel) => panel(app));
  const open = async () => {
    const { state, source } = fromLink(location.hash, about, items.length);
    app.state = state;
    const item = source.item ?? (items.length ? 0 : null);
    if (source.bytes) app.show({ kind: "picture", values: source.bytes, name: "a shared picture", label: null });
    else if (item !== null) app.show(await itemSample(items[item]), item);
    else app.show(blank(about));
  };
  window.addEventListener("hashchange", () => app.attempt(open));
  window.addEventListener("resize", () => app.draw());
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => app.draw());
  await open();
  byId("main", HTMLElement).setAttribute("aria-busy", "false");
  document.documentElement.dataset.ready = "yes";
  Object.assign(window, { spikformer: app }); // for the browser's console
}

/**
 * Nothing to look at yet: a black picture, or frames without events.
 * @param {About} about
 * @returns {import("./types.js").Sample}
 */
function blank({ preprocessing: { kind, channels, size }, timeSteps }) {
  const count = channels * size[0] * size[1] * (kind === "events" ? timeSteps : 1);
  return { kind: kind === "events" ? "frames" : "picture", values: new Uint8Array(count), name: "nothing", label: null };
}

start().catch((error) => {
  const alert = byId("alert", HTMLElement);
  alert.textContent = `The network cannot be started: ${error instanceof Error ? error.message : error}`.slice(0, 500);
  alert.hidden = false;
});
