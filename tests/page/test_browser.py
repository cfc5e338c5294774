"""The page in a real browser: what a person can do with it."""

import json
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.browser import Browser
from tests.data.conftest import nmnist
from tests.page.visit import NUMBERS, drop, opened, png, press, text, wait

from spikformer.data import open_dataset
from spikformer.engine import Engine
from spikformer.engine.lowering import from_weights


@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        (380, "light"),
        *(pytest.param(*each, marks=pytest.mark.slow) for each in ((380, "dark"), (1920, "light"), (1920, "dark"))),
    ],
)
def test_it_is_quiet_asks_for_nothing_and_fits(browser: Browser, digits_page: Path, width: int, scheme: str) -> None:
    opened(browser, digits_page, width=width, scheme=scheme)
    assert browser.complaints == []
    assert browser.requests == []
    assert browser.run("return document.documentElement.scrollWidth") <= width
    outside = (
        "return [...document.querySelectorAll('main *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1)"
    )
    assert browser.run(outside + ".filter(e => !e.closest('.unseen')).map(e => e.id || e.tagName)") == []
    assert browser.new_messages() == ([], [])


def test_a_sample_of_the_gallery_is_answered_as_in_python(browser: Browser, digits_page: Path) -> None:
    opened(browser, digits_page)
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


def test_drawing_with_a_pointer_and_clearing(browser: Browser, digits_page: Path) -> None:
    opened(browser, digits_page)
    browser.run("document.querySelector('input[value=draw]').click()")
    box = browser.run("const b = pad.getBoundingClientRect(); return [b.left, b.top, b.width]")
    left, top, side = box
    at = lambda x, y: {"x": left + x * side, "y": top + y * side, "button": "left", "buttons": 1, "clickCount": 1}  # noqa: E731
    browser.send_command("Input.dispatchMouseEvent", type="mousePressed", **at(0.5, 0.15))
    for step in range(1, 15):
        browser.send_command("Input.dispatchMouseEvent", type="mouseMoved", **at(0.5, 0.15 + 0.05 * step))
    browser.send_command("Input.dispatchMouseEvent", type="mouseReleased", **at(0.5, 0.85))
    wait(browser, "return window.spikformer.sample.name === 'a drawing'")
    time.sleep(0.2)
    drawn = np.array(browser.run(NUMBERS)["bytes"]).reshape(8, 8)
    assert drawn[:, 3:5].mean() > 60  # a stroke down the middle
    assert drawn[:, [0, 1, 6, 7]].max() < 40
    assert text(browser, "word") == "1"
    browser.run("document.getElementById('clear').click()")
    wait(browser, "return Math.max(...window.spikformer.sample.values) === 0")


def test_a_dropped_picture_is_prepared_as_in_python(browser: Browser, digits_page: Path) -> None:
    opened(browser, digits_page)
    picture = np.random.default_rng(0).integers(0, 256, (40, 60, 3), dtype=np.uint8)
    drop(browser, "a <b>name</b>.png", png(picture))
    wait(browser, "return window.spikformer.sample.name.startsWith('a <b>')")
    wanted = from_weights("digits").card.known_preprocessing.to_sample(picture.transpose(2, 0, 1))
    assert browser.run(NUMBERS)["bytes"] == wanted.ravel().tolist()
    assert browser.run("return document.querySelectorAll('main b[class]').length") == 0
    assert "<b>name</b>" in text(browser, "status")


def test_scrubbing_playing_and_exits(browser: Browser, digits_page: Path) -> None:
    opened(browser, digits_page)
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
def test_changes_are_shown_before_and_after_and_undone(browser: Browser, digits_page: Path) -> None:
    opened(browser, digits_page)
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
def test_a_link_brings_the_same_state_back(browser: Browser, digits_page: Path) -> None:
    opened(browser, digits_page)
    drop(browser, "noise.png", png(np.random.default_rng(1).integers(0, 256, (8, 8), dtype=np.uint8)))
    wait(browser, "return window.spikformer.sample.name === 'noise.png'")
    browser.run("document.querySelector('#heads button').click(); document.querySelector('#patches button').click()")
    browser.run("window.spikformer.set({ step: 1, convention: 'strict' }); copy.click()")
    wait(browser, "return location.hash.length > 20")
    wanted, link = browser.run(NUMBERS), browser.run("return location.hash")
    opened(browser, digits_page, link=link)
    found = browser.run(NUMBERS)
    assert found["state"] == wanted["state"]
    assert found["readouts"] == wanted["readouts"]
    assert found["bytes"] == wanted["bytes"]
    opened(browser, digits_page, link="#layer=%3Cscript%3E&steps=999&sample=1e9&picture=%00")
    assert text(browser, "alert") == ""
    assert browser.run("return window.spikformer.item") == 0


@pytest.mark.slow
def test_pictures_of_panels_and_the_numbers_can_be_saved(browser: Browser, digits_page: Path, tmp_path: Path) -> None:
    opened(browser, digits_page)
    browser.send_command("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
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


@pytest.mark.slow
def test_the_camera_is_looked_through_and_stopped(browser: Browser, digits_page: Path) -> None:
    opened(browser, digits_page)
    browser.run("document.querySelector('input[value=camera]').click(); document.getElementById('camera').click()")
    wait(browser, "return window.spikformer.sample.name === 'the camera'")
    assert text(browser, "camera") == "Stop the camera"
    browser.run("document.querySelector('input[value=gallery]').click()")
    assert browser.run("return document.getElementById('video').srcObject") is None


def test_recordings_are_played_frame_by_frame(browser: Browser, events_page: Path, tmp_path: Path) -> None:
    opened(browser, events_page)
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
