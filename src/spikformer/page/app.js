// The state of the page and the run that it shows. Panels change the state here, and are notified of a new run.

import { FileProblem } from "./events.js";
import { initialState, isChanged } from "./state.js";
import { think } from "./think.js";
import { byId } from "./ui.js";

/** @typedef {import("./types.js").About} About */
/** @typedef {import("./types.js").State} State */
/** @typedef {import("./types.js").Sample} Sample */
/** @typedef {import("./types.js").Thought} Thought */

export class App {
  /**
   * @param {About} about
   * @param {import("./types.js").Engine} engine
   */
  constructor(about, engine) {
    this.about = about;
    this.engine = engine;
    /** @type {State} */
    this.state = initialState(about);
    /** @type {Sample | null} */
    this.sample = null;
    /** @type {number | null} the sample's place in the gallery */
    this.item = null;
    /** @type {Thought | null} */
    this.thought = null;
    /** @type {Thought | null} of the same sample as trained; the same run where nothing is changed */
    this.before = null;
    /** @type {(() => void)[]} */
    this.panels = [];
  }

  /** @param {() => void} draw called after every change */
  onChange(draw) {
    this.panels.push(draw);
  }

  /**
   * Look at another sample.
   * @param {Sample} sample
   * @param {number | null} item
   */
  show(sample, item = null) {
    this.sample = sample;
    this.item = item;
    this.before = null;
    this.rerun();
  }

  /**
   * Change some of the state; what the network computes is computed again where it depends on that.
   * @param {Partial<State>} patch
   */
  set(patch) {
    const rerun = "steps" in patch || "changes" in patch || ("layer" in patch && patch.layer !== this.state.layer);
    Object.assign(this.state, patch);
    this.state.step = Math.min(this.state.step, this.state.steps - 1);
    if (rerun) this.rerun();
    else this.draw();
  }

  /** @param {Partial<import("./types.js").Changes>} patch */
  change(patch) {
    this.set({ changes: { ...this.state.changes, ...patch } });
  }

  rerun() {
    if (!this.sample) return;
    const { about, engine, sample, state } = this;
    this.attempt(() => {
      const changed = isChanged(state, about);
      this.thought = think(engine, about, sample, state.steps, state.changes, [state.layer]);
      if (!changed) this.before = this.thought;
      else this.before ??= think(engine, about, sample, about.timeSteps, initialState(about).changes, []);
      this.draw();
    });
  }

  draw() {
    if (this.thought) this.panels.forEach((panel) => panel());
  }

  /**
   * Do something that a file or a network can make fail, and say so.
   * @param {() => void | Promise<void>} action
   */
  async attempt(action) {
    try {
      this.say("");
      await action();
    } catch (error) {
      const known = error instanceof FileProblem || (error instanceof Error && "code" in error);
      this.say(known ? error.message : `Something went wrong: ${error instanceof Error ? error.message : error}`);
    }
  }

  /** @param {string} problem shown until the next action; empty for none */
  say(problem) {
    const alert = byId("alert", HTMLElement);
    alert.textContent = problem.slice(0, 500);
    alert.hidden = !problem;
  }

  /** @param {string} news for screen readers and those who look */
  report(news) {
    byId("status", HTMLElement).textContent = news;
  }
}
