"""The page and what strangers may give it: bad files, names that are markup, a damaged network."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.browser import Browser
from tests.page.visit import NUMBERS, drop, opened, png, text, wait

import spikformer as sf
from spikformer.analysis.specimens import specimen
from spikformer.data import open_dataset
from spikformer.engine.file import write_compiled
from spikformer.engine.lowering import from_model
from spikformer.presets import get_preset

EVIL = '<script>window.hacked = 1</script><img src=x onerror="window.hacked = 1">'


def test_bad_files_are_said_and_the_page_goes_on(browser: Browser, digits_page: Path) -> None:
    opened(browser, digits_page)
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


def test_a_damaged_network_is_said(browser: Browser, digits_page: Path, tmp_path: Path) -> None:
    content = digits_page.read_text(encoding="utf-8")
    start = content.index('id="engine-data">') + len('id="engine-data">')
    path = tmp_path / "damaged.html"
    path.write_text(content[: start + 4000] + "AAAA" * 30 + content[start + 4120 :], encoding="utf-8")
    browser.open(path)
    wait(browser, "return !document.getElementById('alert').hidden")
    assert browser.run("return document.documentElement.dataset.ready") is None
