// Changing the network: time steps, the confidence to exit, silent neurons, noise, heads; figures before and after.

import { exitStep, likeliest } from "./anytime.js";
import { spent } from "./cost.js";
import { chooseLayer } from "./layers.js";
import { blockTitle } from "./looking.js";
import { initialState, isChanged } from "./state.js";
import { amount, byId, fillSelect, layerTitle, make, percent, press, toggle } from "./ui.js";

/** @typedef {import("./app.js").App} App */
/** @typedef {import("./types.js").Thought} Thought */

/** @param {App} app */
export function setUpChanges(app) {
  const { about } = app;
  const [steps, confidence, noise] = ["steps", "confidence", "noise"].map((id) => byId(id, HTMLInputElement));
  const [stepsOut, confidenceOut, noiseOut] = ["steps-out", "confidence-out", "noise-out"].map((id) => byId(id, HTMLOutputElement));
  const changed = byId("changed", HTMLSelectElement), silence = byId("silence", HTMLInputElement), reset = byId("reset", HTMLButtonElement);
  steps.max = String(about.mostSteps);
  fillSelect(changed, about.ops.filter((op) => op.op === "fire").map((op) => [op.name, layerTitle(op.name)]));
  steps.addEventListener("input", () => app.set({ steps: Number(steps.value), step: Number(steps.value) - 1 }));
  confidence.addEventListener("input", () => app.set({ confidence: Number(confidence.value) }));
  changed.addEventListener("change", () => chooseLayer(app, changed.value));
  silence.addEventListener("change", () => {
    const { layer, changes } = app.state;
    app.change({ silent: silence.checked ? [...changes.silent, layer] : changes.silent.filter((name) => name !== layer) });
  });
  noise.addEventListener("input", () => {
    const { [app.state.layer]: _, ...others } = app.state.changes.noise, share = Number(noise.value);
    app.change({ noise: share ? { ...others, [app.state.layer]: share } : others });
  });
  reset.addEventListener("click", () => {
    const { steps: own, step, changes } = initialState(about);
    app.set({ steps: own, step, changes });
    app.report("The network is as trained.");
  });
  const heads = setUpHeads(app), body = byId("compare", HTMLTableElement).tBodies[0];
  app.onChange(() => {
    const { state, thought, before } = app, { changes } = state;
    if (!thought || !before) return;
    steps.value = String(state.steps);
    stepsOut.value = `${state.steps}${state.steps === about.timeSteps ? "" : ` instead of ${about.timeSteps}`}`;
    confidence.value = String(state.confidence);
    confidenceOut.value = percent(state.confidence);
    changed.value = state.layer;
    silence.checked = changes.silent.includes(state.layer);
    noise.value = String(changes.noise[state.layer] ?? 0);
    noiseOut.value = percent(changes.noise[state.layer] ?? 0);
    heads.forEach(({ name, button }) => press(button, changes.heads.includes(name)));
    reset.disabled = !isChanged(state, about);
    const [first, second] = [before, thought].map((each) => figuresOf(each, app));
    body.replaceChildren(...first.map(([name, value], index) => {
      const other = second[index][1], heading = make("th", { text: name });
      heading.scope = "row";
      return make("tr", {}, [heading, make("td", { text: value }), make("td", { text: other, className: value === other ? "" : "moved" })]);
    }));
  });
}

/** @param {App} app */
function setUpHeads(app) {
  const { attention } = app.about;
  /** @type {{name: string, button: HTMLButtonElement}[]} */
  const all = [];
  const rows = attention.flatMap((each, block) => {
    if (each.neuron === null || each.heads < 2) return [];
    const buttons = Array.from({ length: each.heads }, (_, head) => {
      const name = `${block}:${head}`;
      const button = toggle(`Switch off ${blockTitle(each.block)}, head ${head + 1}`, () => {
        const { heads } = app.state.changes;
        app.change({ heads: heads.includes(name) ? heads.filter((other) => other !== name) : [...heads, name] });
      }, [document.createTextNode(String(head + 1))]);
      all.push({ name, button });
      return button;
    });
    return [make("div", { className: "line" }, [make("span", { text: blockTitle(each.block) }), ...buttons])];
  });
  byId("heads-box", HTMLElement).hidden = !rows.length;
  byId("heads", HTMLElement).replaceChildren(...rows);
  return all;
}

/**
 * @param {Thought} thought
 * @param {App} app
 * @returns {[string, string][]}
 */
function figuresOf(thought, { about, state }) {
  const last = thought.shares[thought.steps - 1], best = likeliest(last), exit = exitStep(thought.shares, state.confidence);
  const all = spent(thought.cost, state.convention, thought.steps, about.energy);
  return [
    ["Answer", thought.quiet ? "none" : about.classes[best].slice(0, 60)],
    ["Probability", thought.quiet ? "–" : percent(last[best])],
    ["Exit after", exit === null ? `all ${thought.steps} steps` : `step ${exit + 1} of ${thought.steps}`],
    ["Spikes", amount(thought.cost.spikes)],
    ["Operations", amount(all.macs + all.acs)],
    ["Energy", amount(all.picojoules / 1e12, "J")],
  ];
}
