// Elements by name, numbers as people read them, and the names of layers. Texts are only ever set as text.

/**
 * @template {HTMLElement} T
 * @param {string} id
 * @param {new () => T} kind
 * @returns {T}
 */
export function byId(id, kind) {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) throw new Error(`There is no ${kind.name} with the id ${id}.`);
  return found;
}

/**
 * A new element with a class, a text and children.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {{className?: string, text?: string, label?: string}} [options]
 * @param {Node[]} [children]
 * @returns {HTMLElementTagNameMap[K]}
 */
export function make(tag, { className, text, label } = {}, children = []) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  if (label !== undefined) element.setAttribute("aria-label", label);
  element.append(...children);
  return element;
}

/**
 * A button that is pressed or not.
 * @param {string} label
 * @param {() => void} onPress
 * @param {Node[]} [children]
 */
export function toggle(label, onPress, children = []) {
  const button = make("button", { label }, children);
  button.type = "button";
  button.setAttribute("aria-pressed", "false");
  button.addEventListener("click", onPress);
  return button;
}

/**
 * @param {HTMLElement} button
 * @param {boolean} pressed
 */
export function press(button, pressed) {
  button.setAttribute("aria-pressed", String(pressed));
}

/**
 * Choices of a select, by value and text.
 * @param {HTMLSelectElement} select
 * @param {[string, string][]} choices
 */
export function fillSelect(select, choices) {
  select.replaceChildren(...choices.map(([value, text]) => new Option(text, value)));
}

/** @param {number} share */
export function percent(share) {
  return `${(100 * share).toFixed(share > 0.9995 || share < 0.0005 ? 0 : 1)} %`;
}

/**
 * Three digits and the prefix of a unit; nothing is rounded to 0.
 * @param {number} value
 * @param {string} [unit]
 */
export function amount(value, unit = "") {
  const prefixes = ["p", "n", "µ", "m", "", "k", "M", "G", "T"];
  let index = 4, scaled = value;
  if (scaled === 0) return `0${unit && ` ${unit}`}`;
  for (; Math.abs(scaled) >= 999.5 && index < 8; index++) scaled /= 1000;
  for (; unit && Math.abs(scaled) < 0.9995 && index > 0; index--) scaled *= 1000;
  const text = scaled >= 99.5 || (index === 4 && Number.isInteger(scaled)) ? scaled.toFixed(0) : scaled.toPrecision(3);
  const suffix = `${prefixes[index]}${unit}`;
  return suffix ? `${text} ${suffix}` : text;
}

/**
 * blocks.0.attention.query.neuron as "block 1 · attention query"; a name of another form stays as it is.
 * @param {string} name
 */
export function layerTitle(name) {
  const words = name.replace(/\.neuron$/, "").split(".");
  const titled = words.map((word, index) => (/^\d+$/.test(word) ? String(Number(word) + 1) : word === "blocks" ? "block" : words[index]));
  return titled.join(" ").replaceAll("_", " ").replace(/^(stem) stages /, "$1 ").replace(/^(block \d+) /, "$1 · ").replace(/^stages (\d+) /, "stage $1 · ");
}
