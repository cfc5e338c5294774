// Attention over the picture: of every block and head at the step that is shown, and one of them large.

import { attentionMaps, meanMap } from "./attention.js";
import { paintAttention } from "./picture.js";
import { colours } from "./plots.js";
import { byId, fillSelect, make, press, toggle } from "./ui.js";

/** @typedef {import("./app.js").App} App */

const MOST_TOKENS = 1024; // in the list of tokens to look from

/** @param {string} block */
export function blockTitle(block) {
  const number = /(\d+)$/.exec(block)?.[1];
  return number === undefined ? block : block.startsWith("blocks.") ? `block ${Number(number) + 1}` : block.replaceAll(".", " ");
}

/** @param {App} app */
export function setUpAttention(app) {
  const { attention, ops, preprocessing } = app.about;
  const panel = byId("attention", HTMLElement);
  panel.hidden = !attention.length;
  if (!attention.length) return;
  const [block, head, query] = ["block", "head", "query"].map((id) => byId(id, HTMLSelectElement));
  fillSelect(block, attention.map((each, index) => [String(index), blockTitle(each.block)]));
  block.addEventListener("change", () => app.set({ attention: Number(block.value), head: -1, query: -1 }));
  head.addEventListener("change", () => app.set({ head: Number(head.value) }));
  query.addEventListener("change", () => app.set({ query: Number(query.value) }));
  const large = byId("look", HTMLCanvasElement), caption = byId("look-c", HTMLElement);
  large.addEventListener("click", (event) => {
    const { height, width } = ops[attention[app.state.attention].number - 1];
    const token = Math.floor((event.offsetY / large.clientHeight) * height) * width + Math.floor((event.offsetX / large.clientWidth) * width);
    if (attention[app.state.attention].form === "product") app.set({ query: token === app.state.query ? -1 : token });
  });
  const rows = attention.map((each, index) => {
    const cells = Array.from({ length: each.heads }, (_, number) => {
      const canvas = make("canvas"), label = `${blockTitle(each.block)}, head ${number + 1}`;
      return { canvas, button: toggle(label, () => app.set({ attention: index, head: number, query: -1 }), [canvas]) };
    });
    return { cells, line: make("div", { className: "line" }, [make("span", { text: blockTitle(each.block) }), ...cells.map((cell) => cell.button)]) };
  });
  byId("maps", HTMLElement).replaceChildren(...rows.map((row) => row.line));
  let listed = -1;
  app.onChange(() => {
    const { thought, state } = app, palette = colours();
    if (!thought) return;
    const chosen = attention[state.attention], grid = ops[chosen.number - 1];
    if (listed !== state.attention) {
      listed = state.attention;
      fillSelect(head, [["-1", "all"], ...Array.from({ length: chosen.heads }, (_, index) => /** @type {[string, string]} */ ([String(index), String(index + 1)]))]);
      const tokens = chosen.form === "product" ? Math.min(MOST_TOKENS, grid.height * grid.width) : 0;
      fillSelect(query, [["-1", "all tokens"], ...Array.from({ length: tokens }, (_, token) => /** @type {[string, string]} */ ([String(token), `row ${Math.floor(token / grid.width) + 1}, column ${(token % grid.width) + 1}`]))]);
    }
    block.value = String(state.attention);
    head.value = String(state.head);
    query.value = String(state.query);
    query.disabled = chosen.form !== "product";
    const frame = thought.frames[state.step];
    rows.forEach(({ cells }, index) => {
      const maps = attentionMaps(ops, attention[index], thought.buffers, state.step, -1);
      if (!maps) return;
      const most = Math.max(...maps.heads.map((map) => Math.max(...map)));
      cells.forEach(({ canvas, button }, number) => {
        paintAttention(canvas, frame, { ...maps, values: maps.heads[number], most }, preprocessing, palette);
        press(button, state.attention === index && state.head === number);
      });
    });
    const maps = attentionMaps(ops, chosen, thought.buffers, state.step, state.query);
    if (!maps) return;
    const values = state.head < 0 ? meanMap(maps.heads) : maps.heads[state.head], most = Math.max(...values);
    large.style.aspectRatio = `${maps.width} / ${maps.height}`;
    paintAttention(large, frame, { ...maps, values, most }, preprocessing, palette);
    const what = chosen.form === "product" ? `Q Kᵀ · ${grid.scale}` : "share of channels that pass the mask";
    const whence = state.query < 0 ? "" : `, seen from row ${Math.floor(state.query / grid.width) + 1}, column ${(state.query % grid.width) + 1}`;
    caption.textContent = `${what} at step ${state.step + 1}, ${state.head < 0 ? "mean of all heads" : `head ${state.head + 1}`}${whence}; at most ${most.toFixed(3)}.`;
    large.setAttribute("aria-label", `Attention over the picture. ${caption.textContent}`);
  });
}
