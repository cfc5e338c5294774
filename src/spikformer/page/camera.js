// The camera: frames go through the network as fast as it answers, and nowhere else.

import { FileProblem } from "./events.js";
import { drawn, pictureSample } from "./picture.js";
import { byId } from "./ui.js";

/** @typedef {import("./app.js").App} App */

/**
 * @param {App} app
 * @returns {() => void} stops it
 */
export function setUpCamera(app) {
  const video = byId("video", HTMLVideoElement), button = byId("camera", HTMLButtonElement), rate = byId("rate", HTMLElement);
  /** @type {MediaStream | null} */
  let stream = null;
  let last = 0, smooth = 0;
  const stop = () => {
    stream?.getTracks().forEach((track) => track.stop());
    stream = null;
    video.srcObject = null;
    button.textContent = "Start the camera";
    rate.textContent = "";
  };
  const look = (/** @type {number} */ now) => {
    if (!stream) return;
    if (video.videoWidth) {
      const side = Math.min(video.videoWidth, video.videoHeight), pixels = squareOf(video, side);
      void app.attempt(() => app.show(pictureSample(app.engine, pixels, app.about.preprocessing, "the camera")));
      smooth = last ? 0.9 * smooth + 0.1 * (now - last) : 0;
      last = now;
      if (smooth) rate.textContent = `${(1000 / smooth).toFixed(0)} pictures a second`;
    }
    requestAnimationFrame(look);
  };
  const start = async () => {
    if (!navigator.mediaDevices?.getUserMedia) throw new FileProblem("This browser gives a page from disk no camera.");
    try {
      stream = await navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment" }, audio: false });
    } catch {
      throw new FileProblem("There is no camera, or it is not allowed here.");
    }
    video.srcObject = stream;
    await video.play();
    button.textContent = "Stop the camera";
    requestAnimationFrame(look);
  };
  button.addEventListener("click", () => (stream ? stop() : void app.attempt(start)));
  return stop;
}

/**
 * The middle square of the camera's picture.
 * @param {HTMLVideoElement} video
 * @param {number} side
 */
function squareOf(video, side) {
  const kept = Math.min(side, 512), canvas = document.createElement("canvas");
  Object.assign(canvas, { width: kept, height: kept });
  const left = (video.videoWidth - side) / 2, top = (video.videoHeight - side) / 2;
  canvas.getContext("2d")?.drawImage(video, left, top, side, side, 0, 0, kept, kept);
  return drawn(canvas, kept, kept);
}
