"""A visit to a page: opening it, waiting for it, keys, dropped files, and what it shows."""

import time
from base64 import b64encode
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from tests.browser import Browser

NUMBERS = """
const app = window.spikformer, { thought } = app;
return { readouts: thought.readouts.map(each => [...each]), shares: thought.shares.map(each => [...each]),
  state: JSON.parse(JSON.stringify(app.state)), sample: { name: app.sample.name, label: app.sample.label },
  bytes: app.sample.values ? [...app.sample.values] : null, spikes: thought.cost.spikes, steps: thought.steps };
"""
DROP = """
const [name, content] = arguments, bytes = Uint8Array.from(atob(content), letter => letter.charCodeAt(0));
const carried = new DataTransfer();
carried.items.add(new File([bytes], name));
document.dispatchEvent(new DragEvent("drop", { dataTransfer: carried, bubbles: true, cancelable: true }));
"""


def opened(browser: Browser, page: Path, *, link: str = "", width: int = 1200, scheme: Any = "light") -> Browser:
    browser.open("about:blank")
    browser.open(page.absolute().as_uri() + link, width=width, scheme=scheme)
    wait(browser, "return document.documentElement.dataset.ready === 'yes'")
    return browser


def wait(browser: Browser, condition: str, seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not browser.run(condition):
        assert time.monotonic() < end, (condition, browser.run("return document.getElementById('alert').textContent"))
        time.sleep(0.05)


def text(browser: Browser, name: str) -> str:
    return browser.run("return document.getElementById(arguments[0]).textContent", name)


def press(browser: Browser, key: str, times: int = 1) -> None:
    codes = {"ArrowRight": 39, "ArrowLeft": 37, "ArrowUp": 38, "ArrowDown": 40, " ": 32, "Tab": 9, "Enter": 13}
    for _ in range(times):
        for kind in ("rawKeyDown", "keyUp"):
            code = {" ": "Space"}.get(key, key)
            browser.send_command(
                "Input.dispatchKeyEvent", type=kind, key=key, code=code, windowsVirtualKeyCode=codes[key]
            )


def drop(browser: Browser, name: str, content: bytes) -> None:
    browser.run(DROP, name, b64encode(content).decode())


def png(array: np.ndarray) -> bytes:
    file = BytesIO()
    Image.fromarray(array).save(file, "PNG")
    return file.getvalue()
