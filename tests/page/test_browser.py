"""The page in a real browser: everything that a person can do with it, and what strangers may try."""

import json
import time
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from tests.browser import Browser, open_browser
from tests.data.conftest import nmnist

import spikformer as sf
from spikformer.analysis.specimens import specimen
from spikformer.data import open_dataset
from spikformer.engine import Engine
from spikformer.engine.file import write_compiled
from spikformer.engine.lowering import from_model, from_weights
from spikformer.presets import get_preset

EVIL = '<script>window.hacked = 1</script><img src=x onerror="window.hacked = 1">'
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


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser("--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream") as browser:
        yield browser


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "page.html"
    sf.write_page("digits", path)
    return path


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network for event cameras that learnt nothing, but fires."""
    folder = tmp_path_factory.mktemp("events")
    model = specimen(get_preset("spikformer_tiny_digits_dvs").config, torch.float32)
    sf.save(model, folder / "net.safetensors", card=open_dataset("digits_dvs").card("spikformer"))
    return sf.write_page(folder / "net.safetensors", folder / "page.html", num_samples=3).path


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
            browser.tell("Input.dispatchKeyEvent", type=kind, key=key, code=code, windowsVirtualKeyCode=codes[key])


def drop(browser: Browser, name: str, content: bytes) -> None:
    browser.run(DROP, name, b64encode(content).decode())


def png(array: np.ndarray) -> bytes:
    file = BytesIO()
    Image.fromarray(array).save(file, "PNG")
    return file.getvalue()


@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        (380, "light"),
        *(pytest.param(*each, marks=pytest.mark.slow) for each in ((380, "dark"), (1920, "light"), (1920, "dark"))),
    ],
)
def test_it_is_quiet_asks_for_nothing_and_fits(browser: Browser, digits: Path, width: int, scheme: str) -> None:
    opened(browser, digits, width=width, scheme=scheme)
    assert browser.complaints == []
    assert browser.requests == []
    assert browser.run("return document.documentElement.scrollWidth") <= width
    outside = (
        "return [...document.querySelectorAll('main *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1)"
    )
    assert browser.run(outside + ".filter(e => !e.closest('.unseen')).map(e => e.id || e.tagName)") == []
    assert browser.news() == ([], [])


def test_a_sample_of_the_gallery_is_answered_as_in_python(browser: Browser, digits: Path) -> None:
    opened(browser, digits)
    browser.run("document.querySelectorAll('#gallery button')[7].click()")
    wait(browser, "return window.spikformer.item === 7")
    found = browser.run(NUMBERS)
    data, compiled = open_dataset("digits"), from_weights("digits")
    place = int(found["sample"]["name"].split()[-1])
    sample = data.split("test")[place]
    assert found["bytes"] == sample.ravel().tolist()
    engine = Engine(compiled, 1, instructions="scalar")
    engine.mode = "events"
    wanted = engine.forward_steps(compiled.card.known_preprocessing.to_inputs(sample[None]))[:, 0]
    assert np.array_equal(np.array(found["readouts"], np.float32), wanted)
    assert text(browser, "word") == str(wanted.mean(0).argmax()) == found["sample"]["label"]


def test_drawing_with_a_pointer_and_clearing(browser: Browser, digits: Path) -> None:
    opened(browser, digits)
    browser.run("document.querySelector('input[value=draw]').click()")
    box = browser.run("const b = pad.getBoundingClientRect(); return [b.left, b.top, b.width]")
    left, top, side = box
    at = lambda x, y: {"x": left + x * side, "y": top + y * side, "button": "left", "buttons": 1, "clickCount": 1}  # noqa: E731
    browser.tell("Input.dispatchMouseEvent", type="mousePressed", **at(0.5, 0.15))
    for step in range(1, 15):
        browser.tell("Input.dispatchMouseEvent", type="mouseMoved", **at(0.5, 0.15 + 0.05 * step))
    browser.tell("Input.dispatchMouseEvent", type="mouseReleased", **at(0.5, 0.85))
    wait(browser, "return window.spikformer.sample.name === 'a drawing'")
    time.sleep(0.2)
    drawn = np.array(browser.run(NUMBERS)["bytes"]).reshape(8, 8)
    assert drawn[:, 3:5].mean() > 60  # a stroke down the middle
    assert drawn[:, [0, 1, 6, 7]].max() < 40
    assert text(browser, "word") == "1"
    browser.run("document.getElementById('clear').click()")
    wait(browser, "return Math.max(...window.spikformer.sample.values) === 0")


@pytest.mark.slow
def test_drawing_with_keys(browser: Browser, digits: Path) -> None:
    opened(browser, digits)
    browser.run("document.querySelector('input[value=draw]').click(); pad.focus()")
    press(browser, "ArrowUp", 6)
    press(browser, " ")
    press(browser, "ArrowDown", 12)
    wait(browser, "return window.spikformer.sample.name === 'a drawing'")
    time.sleep(0.2)
    assert np.array(browser.run(NUMBERS)["bytes"]).reshape(8, 8)[:, 3:5].mean() > 60


def test_a_dropped_picture_is_prepared_as_in_python(browser: Browser, digits: Path) -> None:
    opened(browser, digits)
    picture = np.random.default_rng(0).integers(0, 256, (40, 60, 3), dtype=np.uint8)
    drop(browser, "a <b>name</b>.png", png(picture))
    wait(browser, "return window.spikformer.sample.name.startsWith('a <b>')")
    wanted = from_weights("digits").card.known_preprocessing.to_sample(picture.transpose(2, 0, 1))
    assert browser.run(NUMBERS)["bytes"] == wanted.ravel().tolist()
    assert browser.run("return document.querySelectorAll('main b[class]').length") == 0
    assert "<b>name</b>" in text(browser, "status")


def test_bad_files_are_said_and_the_page_goes_on(browser: Browser, digits: Path) -> None:
    opened(browser, digits)
    before = browser.run(NUMBERS)["readouts"]
    bad = {
        "empty.png": b"",
        "text.png": b"hello",
        "vector.svg": b"<svg onload='window.hacked = 1'></svg>",
        "cut.png": png(np.zeros((8, 8), np.uint8))[:40],
        "huge.png": png(np.zeros((1, 9000), np.uint8)),
        '"' * 200 + ".png": b'"' * 1_000_000,
    }
    for name, content in bad.items():
        browser.run("window.spikformer.say('')")
        drop(browser, name, content)
        wait(browser, "return !document.getElementById('alert').hidden")
        assert 0 < len(text(browser, "alert")) <= 500
    assert browser.run(NUMBERS)["readouts"] == before
    assert browser.run("return window.hacked") is None
    drop(browser, "good.png", png(np.zeros((8, 8), np.uint8)))
    wait(browser, "return window.spikformer.sample.name === 'good.png' && document.getElementById('alert').hidden")


def test_scrubbing_playing_and_exits(browser: Browser, digits: Path) -> None:
    opened(browser, digits)
    browser.run("document.getElementById('step').focus()")
    press(browser, "ArrowLeft", 2)
    assert browser.run("return window.spikformer.state.step") == 1
    assert text(browser, "now") == "step 2 of 4"
    shares = browser.run(NUMBERS)["shares"]
    assert f"{100 * max(shares[1]):.1f} %" in text(browser, "sure")
    browser.run("document.getElementById('play').click()")
    wait(browser, "return window.spikformer.state.step === 3")
    wait(browser, "return document.getElementById('play').getAttribute('aria-label') === 'Play'")
    for confidence in ("0.5", "0.9", "1"):
        browser.run("confidence.value = arguments[0]; confidence.dispatchEvent(new Event('input'))", confidence)
        sure = [step for step, each in enumerate(shares, 1) if max(each) >= float(confidence)]
        wanted = f"step {sure[0]} of 4" if sure else "all 4 steps"
        assert wanted in text(browser, "compare")
        assert browser.run("return document.querySelectorAll('#ticks .exit').length") == bool(sure)


@pytest.mark.slow
def test_changes_are_shown_before_and_after_and_undone(browser: Browser, digits: Path) -> None:
    opened(browser, digits)
    trained = browser.run(NUMBERS)
    choose = "changed.value = arguments[0]; changed.dispatchEvent(new Event('change')); silence.click()"
    browser.run(choose, "stem.stages.0.neuron")
    silenced = browser.run(NUMBERS)
    assert silenced["state"]["changes"]["silent"] == ["stem.stages.0.neuron"]
    assert browser.run("return Math.max(...spikformer.thought.spikes.get('stem.stages.0.neuron'))") == 0
    assert silenced["readouts"] != trained["readouts"]
    assert browser.run("return document.querySelectorAll('#compare .moved').length") >= 3
    assert browser.run("return document.querySelectorAll('#bars .before').length") == 10
    browser.run("document.getElementById('reset').click()")
    assert browser.run(NUMBERS)["readouts"] == trained["readouts"]
    for action in (
        "document.querySelector('#heads button').click()",
        "noise.value = 0.3; noise.dispatchEvent(new Event('input'))",
        "steps.value = 9; steps.dispatchEvent(new Event('input'))",
        "document.querySelectorAll('#patches button')[5].click()",
    ):
        browser.run(action)
        assert browser.run(NUMBERS)["readouts"] != trained["readouts"]
        browser.run("document.getElementById('reset').click()")
        assert browser.run(NUMBERS)["readouts"] == trained["readouts"]


@pytest.mark.slow
def test_a_link_brings_the_same_state_back(browser: Browser, digits: Path) -> None:
    opened(browser, digits)
    drop(browser, "noise.png", png(np.random.default_rng(1).integers(0, 256, (8, 8), dtype=np.uint8)))
    wait(browser, "return window.spikformer.sample.name === 'noise.png'")
    browser.run("document.querySelector('#heads button').click(); document.querySelector('#patches button').click()")
    browser.run("window.spikformer.set({ step: 1, convention: 'strict' }); copy.click()")
    wait(browser, "return location.hash.length > 20")
    wanted, link = browser.run(NUMBERS), browser.run("return location.hash")
    opened(browser, digits, link=link)
    found = browser.run(NUMBERS)
    assert found["state"] == wanted["state"]
    assert found["readouts"] == wanted["readouts"]
    assert found["bytes"] == wanted["bytes"]
    opened(browser, digits, link="#layer=%3Cscript%3E&steps=999&sample=1e9&picture=%00")
    assert text(browser, "alert") == ""
    assert browser.run("return window.spikformer.item") == 0


@pytest.mark.slow
def test_pictures_of_panels_and_the_numbers_can_be_saved(browser: Browser, digits: Path, tmp_path: Path) -> None:
    opened(browser, digits)
    browser.tell("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    names = browser.run("return [...document.querySelectorAll('button.save')].map(each => each.dataset.panel)")
    assert names == browser.run("return [...document.querySelectorAll('main section')].map(each => each.id)")
    for name in names:
        browser.run("document.querySelector(`[data-panel=${arguments[0]}]`).click()", name)
        path = _downloaded(tmp_path / f"spikformer-{name}.png")
        picture = np.asarray(Image.open(path).convert("RGB"))
        box = browser.run("return document.getElementById(arguments[0]).getBoundingClientRect().width", name)
        assert picture.shape[1] == pytest.approx(2 * box, abs=2)
        assert len(np.unique(picture @ np.array([65536, 256, 1]))) > 20
    browser.run("document.getElementById('export').click()")
    numbers = json.loads(_downloaded(tmp_path / "spikformer-numbers.json").read_text())
    assert numbers["readouts"] == browser.run(NUMBERS)["readouts"]
    assert {"paper", "strict", "entrywise"} == numbers["cost"].keys()


def _downloaded(path: Path) -> Path:
    end = time.monotonic() + 20
    while not path.exists():
        assert time.monotonic() < end, path
        time.sleep(0.05)
    time.sleep(0.1)
    return path


def test_every_control_has_a_name_and_can_be_reached_by_keys(browser: Browser, digits: Path) -> None:
    opened(browser, digits)
    browser.tell("Accessibility.enable")
    nodes = browser.tell("Accessibility.getFullAXTree")["nodes"]
    roles = {
        "button",
        "slider",
        "checkbox",
        "radio",
        "combobox",
        "spinbutton",
        "textbox",
        "image",
        "application",
        "link",
    }
    controls = [node for node in nodes if not node["ignored"] and node["role"]["value"] in roles]
    assert len(controls) > 60
    nameless = [node for node in controls if not node.get("name", {}).get("value", "").strip()]
    assert nameless == []
    browser.run("document.activeElement.blur(); window.scrollTo(0, 0)")
    reached = []
    for _ in range(90):
        press(browser, "Tab")
        reached.append(
            browser.run("const e = document.activeElement; return e.id || e.dataset.panel || e.value || e.textContent")
        )
    wanted = {
        "copy",
        "export",
        "gallery",
        "steps",
        "confidence",
        "changed",
        "silence",
        "noise",
        "layer",
        "row",
        "channel",
    }
    wanted |= {"block", "head", "query", "paper", "play", "step"}
    assert wanted - set(reached) == set()


@pytest.mark.slow
def test_patches_and_choices_work_by_keys_alone(browser: Browser, digits: Path) -> None:
    opened(browser, digits)
    browser.run("document.querySelector('#patches button').focus()")
    press(browser, "ArrowRight")
    press(browser, "ArrowDown")
    press(browser, " ")
    wait(browser, "return window.spikformer.state.changes.occluded.join() === '5'")
    browser.run("document.querySelector('input[value=paper]').focus()")
    press(browser, "ArrowRight")
    assert browser.run("return window.spikformer.state.convention") == "strict"


@pytest.mark.slow
def test_the_camera_is_looked_through_and_stopped(browser: Browser, digits: Path) -> None:
    opened(browser, digits)
    browser.run("document.querySelector('input[value=camera]').click(); document.getElementById('camera').click()")
    wait(browser, "return window.spikformer.sample.name === 'the camera'")
    assert text(browser, "camera") == "Stop the camera"
    browser.run("document.querySelector('input[value=gallery]').click()")
    assert browser.run("return document.getElementById('video').srcObject") is None


def test_recordings_are_played_frame_by_frame(browser: Browser, events: Path, tmp_path: Path) -> None:
    opened(browser, events)
    assert browser.complaints == []
    assert browser.run("return window.spikformer.thought.frames.length") == 8
    browser.run("window.spikformer.set({ step: 0 })")
    first = browser.run("return document.getElementById('seen').toDataURL()")
    press_play = "document.getElementById('play').click()"
    browser.run(press_play)
    wait(browser, "return window.spikformer.state.step === 2")
    assert browser.run("return document.getElementById('seen').toDataURL()") != first
    browser.run(press_play)
    rows = [(20 * index, index % 16, (index * 5) % 16, index % 2) for index in range(400)]
    drop(browser, "mine.bin", nmnist(rows))
    wait(browser, "return window.spikformer.sample.name === 'mine.bin'")
    assert browser.run("return window.spikformer.thought.frames.flatMap(f => [...f]).reduce((a, b) => a + b)") == 400
    drop(browser, "cut.bin", nmnist(rows)[:-2])
    wait(browser, "return !document.getElementById('alert').hidden")
    assert browser.run("return window.spikformer.sample.name") == "mine.bin"


@pytest.mark.slow
def test_wicked_names_stay_text(browser: Browser, tmp_path: Path) -> None:
    compiled = from_model(specimen(get_preset("spikformer_tiny_digits").config, torch.float32))
    card = open_dataset("digits").card("spikformer")
    names = (EVIL, '"' * 999, "'" * 999, *(f"</textarea>{EVIL}{index}" for index in range(7)))
    card = replace(card, class_names=names, limits=EVIL, licence=EVIL, data_set=None)
    write_compiled(replace(compiled, card=card), tmp_path / "net.engine")
    page = sf.write_page(tmp_path / "net.engine", tmp_path / "page.html").path
    opened(browser, page, width=380)
    assert browser.complaints == []
    assert browser.run("return window.hacked") is None
    assert browser.run("return document.querySelectorAll('img, textarea').length") == 0
    assert browser.run("return document.documentElement.scrollWidth") <= 380
    assert EVIL in browser.run("return document.body.textContent")


def test_a_damaged_network_is_said(browser: Browser, digits: Path, tmp_path: Path) -> None:
    content = digits.read_text(encoding="utf-8")
    start = content.index('id="engine-data">') + len('id="engine-data">')
    path = tmp_path / "damaged.html"
    path.write_text(content[: start + 4000] + "AAAA" * 30 + content[start + 4120 :], encoding="utf-8")
    browser.open(path)
    wait(browser, "return !document.getElementById('alert').hidden")
    assert browser.run("return document.documentElement.dataset.ready") is None
