// A drawing pad: bright strokes on black, by pointer or by keys.

import { context2d } from "./plots.js";

const STROKE = 0.105; // of the pad's side: as wide as the pen of the digits
const KEY_STEP = 1 / 20;

/**
 * @param {HTMLCanvasElement} canvas
 * @param {HTMLButtonElement} clear
 * @param {(canvas: HTMLCanvasElement) => void} onDraw
 */
export function setUpPad(canvas, clear, onDraw) {
  const ink = document.createElement("canvas"), side = canvas.width;
  Object.assign(ink, { width: side, height: side });
  const context = context2d(ink), shown = context2d(canvas);
  let pen = { x: side / 2, y: side / 2 }, keyboard = false, waiting = false;
  const wipe = () => {
    context.fillStyle = "#000";
    context.fillRect(0, 0, side, side);
    Object.assign(context, { lineCap: "round", lineJoin: "round", lineWidth: STROKE * side, strokeStyle: "#fff" });
  };
  const refresh = () => {
    shown.drawImage(ink, 0, 0);
    if (!keyboard) return;
    shown.strokeStyle = "#f5a623";
    shown.lineWidth = 2;
    shown.strokeRect(pen.x - 8, pen.y - 8, 16, 16);
  };
  const notify = () => {
    if (waiting) return;
    waiting = true; // once a frame, however fast the pointer is
    requestAnimationFrame(() => {
      waiting = false;
      onDraw(ink);
    });
  };
  const to = (/** @type {number} */ x, /** @type {number} */ y, /** @type {boolean} */ draw) => {
    if (draw) {
      context.beginPath();
      context.moveTo(pen.x, pen.y);
      context.lineTo(x, y);
      context.stroke();
      notify();
    }
    pen = { x, y };
    refresh();
  };
  const place = (/** @type {PointerEvent} */ event) => {
    const box = canvas.getBoundingClientRect();
    return /** @type {const} */ ([((event.clientX - box.left) * side) / box.width, ((event.clientY - box.top) * side) / box.height]);
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    keyboard = false;
    to(...place(event), false);
    to(...place(event), true);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (event.buttons & 1) event.getCoalescedEvents?.().forEach((each) => to(...place(each), true)) ?? to(...place(event), true);
  });
  let down = false;
  const moves = new Map([["ArrowLeft", [-1, 0]], ["ArrowRight", [1, 0]], ["ArrowUp", [0, -1]], ["ArrowDown", [0, 1]]]);
  canvas.addEventListener("keydown", (event) => {
    const move = moves.get(event.key);
    if (!move && event.key !== " ") return;
    event.preventDefault();
    keyboard = true;
    if (event.key === " ") {
      down = event.repeat ? down : !down; // a press lowers the pen, the next one lifts it
      to(pen.x, pen.y, down);
      return;
    }
    const [right, below] = /** @type {number[]} */ (move);
    const inside = (/** @type {number} */ value) => Math.min(side, Math.max(0, value));
    to(inside(pen.x + right * KEY_STEP * side), inside(pen.y + below * KEY_STEP * side), down);
  });
  canvas.addEventListener("blur", () => {
    keyboard = down = false;
    refresh();
  });
  clear.addEventListener("click", () => {
    wipe();
    refresh();
    notify();
  });
  wipe();
  refresh();
}
