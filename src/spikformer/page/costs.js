// The cost: spikes, operations and energy by a convention, beside the ANN twin; milliseconds; density by layer.

import { exitStep } from "./anytime.js";
import { spent } from "./cost.js";
import { amount, byId, layerTitle, make, percent } from "./ui.js";

/** @typedef {import("./app.js").App} App */
/** @typedef {import("./types.js").Convention} Convention */

/** @type {Record<Convention, string>} */
const COUNTED = {
  paper: "As the paper counts: an input x costs x accumulates; the first convolution is multiply-accumulates.",
  strict: "Strictly: a product whose input is not binary throughout is multiply-accumulates, all of it.",
  entrywise: "Entry by entry: 0 costs nothing, 1 an accumulate, anything else a multiply-accumulate.",
};

/** @param {App} app */
export function setUpCosts(app) {
  const { energy } = app.about;
  const radios = [...byId("conventions", HTMLElement).querySelectorAll("input")];
  for (const radio of radios) {
    radio.addEventListener("change", () => app.set({ convention: /** @type {Convention} */ (radio.value) }));
  }
  const versus = byId("versus", HTMLElement), figures = byId("figures", HTMLElement), note = byId("counting", HTMLElement);
  const body = byId("by-layer", HTMLTableElement).tBodies[0];
  const twin = (energy.twinMacs * energy.macPj) / 1e12;
  app.onChange(() => {
    const { thought, state } = app;
    if (!thought) return;
    radios.forEach((radio) => (radio.checked = radio.value === state.convention));
    const all = spent(thought.cost, state.convention, thought.steps, energy), joules = all.picojoules / 1e12;
    const exit = exitStep(thought.shares, state.confidence);
    const most = Math.max(joules, twin), rows = [comparison("This network", joules, most, true)];
    if (exit !== null && exit + 1 < thought.steps) {
      const early = spent(thought.cost, state.convention, exit + 1, energy).picojoules / 1e12;
      rows.push(comparison(`with its exit after step ${exit + 1}`, early, most, true));
    }
    versus.replaceChildren(...rows, comparison("ANN twin", twin, most, false));
    const ratio = twin / joules;
    const facts = [
      ["Spikes", amount(thought.cost.spikes)],
      ["Operations", amount(all.macs + all.acs)],
      ["of the twin", amount(energy.twinMacs)],
      ["Energy ratio", ratio >= 1 ? `${ratio.toFixed(1)}× less` : `${(1 / ratio).toFixed(1)}× more`],
      ["Run time", `${thought.milliseconds.toFixed(1)} ms`],
      ["Images a second", thought.milliseconds ? amount(1000 / thought.milliseconds) : "–"],
    ];
    figures.replaceChildren(...facts.map(([name, value]) => make("div", {}, [make("dt", { text: name }), make("dd", { text: value })])));
    body.replaceChildren(...thought.cost.layers.map((layer) => {
      const used = layer.steps[state.convention].reduce((sum, each) => sum + each.macs * energy.macPj + each.acs * energy.acPj, 0);
      const fill = make("span", { className: "fill" }), time = thought.times.get(layer.name);
      fill.style.width = `${100 * Math.min(1, layer.density)}%`;
      const heading = make("th", { text: layerTitle(layer.name) });
      heading.scope = "row";
      return make("tr", {}, [
        heading,
        make("td", {}, [make("span", { className: "trough" }, [fill]), make("span", { className: "figure", text: percent(layer.density) })]),
        make("td", { text: percent(used / (all.picojoules || 1)) }),
        make("td", { text: time === undefined ? "–" : time.toFixed(2) }),
      ]);
    }));
    note.textContent = `${COUNTED[state.convention]} ${energy.macPj} pJ a multiply-accumulate, ${energy.acPj} pJ an accumulate, at 45 nm; an estimate by counting, no chip was measured.`;
  });
}

/**
 * @param {string} name
 * @param {number} joules
 * @param {number} most
 * @param {boolean} ours
 */
function comparison(name, joules, most, ours) {
  const fill = make("div", { className: "fill" });
  fill.style.width = `${(100 * joules) / (most || 1)}%`;
  return make("div", { className: ours ? "versus ours" : "versus" }, [
    make("span", { text: name }), make("b", { text: amount(joules, "J") }), make("div", { className: "trough" }, [fill]),
  ]);
}
