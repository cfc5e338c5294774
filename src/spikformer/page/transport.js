// Time: the scrubber, play and pause. Playing stops at the last step; a recording is played as a stream, frame by frame.

import { exitStep } from "./anytime.js";
import { byId, make } from "./ui.js";

/** @typedef {import("./app.js").App} App */

const STEP_MS = 650;

/** @param {App} app */
export function setUpTransport(app) {
  const play = byId("play", HTMLButtonElement), slider = byId("step", HTMLInputElement), now = byId("now", HTMLElement), ticks = byId("ticks", HTMLElement);
  let timer = 0;
  const stop = () => {
    window.clearInterval(timer);
    timer = 0;
    play.textContent = "▶";
    play.setAttribute("aria-label", "Play");
  };
  const start = () => {
    if (app.state.step >= app.state.steps - 1) app.set({ step: 0 });
    play.textContent = "❚❚";
    play.setAttribute("aria-label", "Pause");
    timer = window.setInterval(() => {
      if (app.state.step >= app.state.steps - 1) stop();
      else app.set({ step: app.state.step + 1 });
    }, STEP_MS);
  };
  play.addEventListener("click", () => (timer ? stop() : start()));
  slider.addEventListener("input", () => {
    if (timer) stop();
    app.set({ step: Number(slider.value) - 1 });
  });
  app.onChange(() => {
    const { state, thought } = app;
    if (!thought) return;
    slider.max = String(state.steps);
    slider.value = String(state.step + 1);
    slider.disabled = play.disabled = state.steps < 2;
    slider.setAttribute("aria-valuetext", `step ${state.step + 1} of ${state.steps}`);
    now.textContent = `step ${state.step + 1} of ${state.steps}`;
    const exit = exitStep(thought.shares, state.confidence);
    ticks.replaceChildren(...Array.from({ length: state.steps }, (_, step) => {
      const tick = make("span", { text: step === exit ? "exit" : String(step + 1), className: step === exit ? "exit" : "" });
      tick.style.left = `${state.steps > 1 ? (100 * step) / (state.steps - 1) : 50}%`;
      return tick;
    }).filter((_, step) => state.steps <= 20 || step === exit || step % 4 === 3));
  });
}
