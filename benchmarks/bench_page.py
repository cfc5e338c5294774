"""Images a second in Chromium, by the page's engine, beside the native engine on one thread, in one run.

python benchmarks/bench_page.py [--model NAME] [--weights RUN [--data DIR]] [--images 60] [--rounds 3]

Both run the same images one by one, in turn, round after round; the median round counts. With data, they are the first
test pictures, otherwise noise. Without weights the network has learnt nothing and fires far more than a trained one.
Also measured: the first paint of the page, from disk.
"""

from __future__ import annotations

import argparse
import base64
import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np
import torch

from contenders import load_images

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.browser import Browser, open_browser

from spikformer.analysis.specimens import specimen
from spikformer.engine import Engine
from spikformer.engine.file import write_compiled
from spikformer.engine.lowering import from_model, from_weights
from spikformer.io import processor_name
from spikformer.page import write_page
from spikformer.preprocessing import Preprocessing
from spikformer.presets import get_preset
from spikformer.runs.trained import weights_path

_RUN = """
const [count, size] = arguments, engine = window.spikformer.engine, inputs = window.benchInputs;
const start = performance.now();
for (let index = 0; index < count; index++) engine.run(inputs.subarray(index * size, (index + 1) * size), {});
return (performance.now() - start) / count;
"""
_PUT = """
const [length, base64] = arguments, bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
const numbers = new Float32Array(bytes.buffer);
window.benchInputs = Float32Array.from({ length }, (_, index) => numbers[index % numbers.length]);
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="spikformer_small_cifar10")
    parser.add_argument("--weights", help="a run folder or weights to take instead of a preset")
    parser.add_argument("--data", type=Path, help="the data set whose test pictures the weights see instead of noise")
    parser.add_argument("--images", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if options.data is not None and options.weights is None:
        parser.error("--data needs --weights: a preset has no preprocessing")
    torch.set_num_threads(1)
    if options.weights is None:
        compiled = from_model(specimen(get_preset(options.model).config, torch.float32))
    else:
        compiled, options.model = from_weights(weights_path(options.weights)), options.weights
    config = compiled.config
    assert config is not None
    size = config.image_size
    assert size is not None, "the network leaves its image size open"
    seen = Preprocessing(kind="image", size=size, channels=config.in_channels)
    compiled = replace(compiled, card=replace(compiled.card, preprocessing=seen))
    count = config.in_channels * size[0] * size[1]
    if options.data is None:
        numbers = np.random.default_rng(0).random(1009).astype(np.float32)  # prime, so that no two images are alike
    else:
        numbers = load_images(weights_path(options.weights), options.data, 32)[1].numpy().astype(np.float32)
    images = np.resize(numbers, (options.images, 1, config.in_channels, *size))
    native = Engine(compiled, 1)
    native.mode = "events"
    with TemporaryDirectory() as folder, open_browser() as browser:
        write_compiled(compiled, Path(folder, "net.engine"))
        page = write_page(Path(folder, "net.engine"), Path(folder, "page.html"))
        paint_ms = _open(browser, page.path)
        browser.run(_PUT, options.images * count, base64.b64encode(numbers.tobytes()).decode())
        browser.run(_RUN, 3, count)
        rounds = [
            (_time_native(native, images), browser.run(_RUN, options.images, count)) for _ in range(options.rounds)
        ]
    native_ms, page_ms = (median(each) for each in zip(*rounds, strict=True))
    print(f"{options.model}, T = {config.time_steps}, one thread, one image at a time, {processor_name()}")
    print(f"{'':24}{'ms an image':>14}{'images/s':>12}")
    for name, ms in ((f"native, {native.instructions}", native_ms), ("page, Chromium", page_ms)):
        print(f"{name:24}{ms:14.2f}{1000 / ms:12.1f}")
    print(f"first paint of a page of {page.num_bytes / 1e6:.1f} MB after {paint_ms:.0f} ms")
    found = {"native_ms": native_ms, "page_ms": page_ms, "first_paint_ms": paint_ms, "page_bytes": page.num_bytes}
    print(
        json.dumps({"model": options.model, "instructions": native.instructions, "machine": processor_name()} | found)
    )


def _open(browser: Browser, path: Path) -> float:
    """Open the page and wait until its engine answers; milliseconds to the first paint."""
    browser.open(path)
    while browser.run("return document.documentElement.dataset.ready") != "yes":
        time.sleep(0.05)
    return browser.run("return performance.getEntriesByName('first-contentful-paint')[0].startTime")


def _time_native(engine: Engine, images: np.ndarray) -> float:
    start = time.perf_counter()
    for image in images:
        engine(image)
    return (time.perf_counter() - start) / len(images) * 1e3


if __name__ == "__main__":
    main()
