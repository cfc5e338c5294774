"""The page without a pointer: every control has a name and is reached by keys."""

import time
from pathlib import Path

import numpy as np
import pytest
from tests.browser import Browser
from tests.page.visit import NUMBERS, opened, press, wait


@pytest.mark.slow
def test_drawing_with_keys(browser: Browser, digits_page: Path) -> None:
    opened(browser, digits_page)
    browser.run("document.querySelector('input[value=draw]').click(); pad.focus()")
    press(browser, "ArrowUp", 6)
    press(browser, " ")
    press(browser, "ArrowDown", 12)
    wait(browser, "return window.spikformer.sample.name === 'a drawing'")
    time.sleep(0.2)
    assert np.array(browser.run(NUMBERS)["bytes"]).reshape(8, 8)[:, 3:5].mean() > 60


def test_every_control_has_a_name_and_can_be_reached_by_keys(browser: Browser, digits_page: Path) -> None:
    opened(browser, digits_page)
    browser.send_command("Accessibility.enable")
    nodes = browser.send_command("Accessibility.getFullAXTree")["nodes"]
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
def test_patches_and_choices_work_by_keys_alone(browser: Browser, digits_page: Path) -> None:
    opened(browser, digits_page)
    browser.run("document.querySelector('#patches button').focus()")
    press(browser, "ArrowRight")
    press(browser, "ArrowDown")
    press(browser, " ")
    wait(browser, "return window.spikformer.state.changes.occluded.join() === '5'")
    browser.run("document.querySelector('input[value=paper]').focus()")
    press(browser, "ArrowRight")
    assert browser.run("return window.spikformer.state.convention") == "strict"
