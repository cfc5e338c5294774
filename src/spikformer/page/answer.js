// The answer: the likeliest class at the step that is shown, all probabilities, their course, and where it may end.

import { exitStep, likeliest } from "./anytime.js";
import { colours, lines } from "./plots.js";
import { isChanged } from "./state.js";
import { byId, make, percent } from "./ui.js";

/** @typedef {import("./app.js").App} App */

const MOST_BARS = 10;
const MOST_CURVES = 4;
const LONG_WORD = 3;

/** @param {App} app */
export function setUpAnswer(app) {
  const word = byId("word", HTMLElement), sure = byId("sure", HTMLElement), bars = byId("bars", HTMLElement);
  const chart = byId("chart", HTMLCanvasElement), note = byId("exit", HTMLElement);
  const short = app.about.classes.every((name) => name.length <= LONG_WORD);
  bars.classList.toggle("short", short);
  app.onChange(() => {
    const { about, state, thought, before, sample } = app;
    if (!thought) return;
    const shares = thought.shares[state.step], best = likeliest(shares), changed = isChanged(state, about) && before;
    word.textContent = thought.quiet ? "?" : about.classes[best].slice(0, 200);
    word.classList.toggle("long", word.textContent.length > 8);
    const truth = sample?.label ? `, labelled ${sample.label.slice(0, 100)}` : "";
    sure.textContent = thought.quiet ? "no spike reached the head" : `${percent(shares[best])} sure after step ${state.step + 1}${truth}`;
    const order = [...shares.keys()].sort((one, other) => shares[other] - shares[one]);
    const shown = short ? [...shares.keys()].slice(0, MOST_BARS) : order.slice(0, MOST_BARS);
    const earlier = changed ? before.shares[before.steps - 1] : null;
    bars.replaceChildren(...shown.map((index) => bar(about.classes[index], shares[index], earlier?.[index] ?? null, index === best)));
    bars.setAttribute("aria-label", shown.map((index) => `${about.classes[index].slice(0, 40)} ${percent(shares[index])}`).join(", "));
    drawChart(app, chart, order.slice(0, MOST_CURVES));
    note.textContent = exitText(thought.shares, state.confidence, thought.steps, about);
  });
}

/**
 * @param {string} name
 * @param {number} share
 * @param {number | null} earlier
 * @param {boolean} best
 */
function bar(name, share, earlier, best) {
  const fill = make("div", { className: "fill" }), trough = make("div", { className: "trough" }, [fill]);
  fill.style.width = `${100 * share}%`;
  if (earlier !== null) {
    const mark = make("div", { className: "before" });
    mark.style.left = `calc(${(100 * earlier).toFixed(2)}% - 1px)`;
    trough.append(mark);
  }
  const text = name.slice(0, 200);
  return make("div", { className: best ? "bar best" : "bar" }, [make("span", { text }), trough, make("span", { text: percent(share) })]);
}

/**
 * @param {App} app
 * @param {HTMLCanvasElement} canvas
 * @param {number[]} classes
 */
function drawChart({ about, state, thought, before }, canvas, classes) {
  if (!thought) return;
  const palette = colours(), [best] = classes, changed = isChanged(state, about) && before;
  const kept = new Set(classes.filter((index) => index === best || thought.shares.some((shares) => shares[index] > 0.02)));
  const curves = [...kept].reverse().map((index) => ({
    values: thought.shares.map((shares) => shares[index]),
    colour: index === best ? palette.spike : palette.quiet,
    width: index === best ? 2.5 : 1.5,
    text: about.classes[index].slice(0, 24),
  }));
  const exit = exitStep(thought.shares, state.confidence);
  const ghost = changed ? [{ values: before.shares.slice(0, thought.steps).map((shares) => shares[best]), colour: palette.soft, dashed: true }] : [];
  lines(canvas, [...ghost, ...curves], {
    steps: thought.steps, low: 0, high: 1, step: state.step, format: (value) => `${100 * value}%`,
    levels: [{ value: state.confidence, text: `exit at ${percent(state.confidence)}`, colour: palette.good }],
    marks: exit === null ? [] : [{ step: exit, value: Math.max(...thought.shares[exit]), colour: palette.good }],
  }, palette);
}

/**
 * @param {Float64Array[]} shares
 * @param {number} confidence
 * @param {number} steps
 * @param {import("./types.js").About} about
 */
function exitText(shares, confidence, steps, about) {
  const exit = exitStep(shares, confidence), wanted = percent(confidence);
  if (exit === null) return `Anytime inference would take all ${steps} steps: no class reaches ${wanted}.`;
  const early = about.classes[likeliest(shares[exit])], late = about.classes[likeliest(shares[steps - 1])];
  const same = early === late ? "with the same answer" : `answering ${early.slice(0, 60)} instead of ${late.slice(0, 60)}`;
  if (exit === steps - 1) return `Anytime inference would exit after step ${exit + 1}, the last.`;
  return `Anytime inference would exit after step ${exit + 1} of ${steps}, ${same}.`;
}
