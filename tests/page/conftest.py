"""A browser with a camera, and pages of digits and of events."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from tests.browser import Browser, open_browser

import spikformer as sf
from spikformer.analysis.specimens import specimen
from spikformer.data import open_dataset
from spikformer.presets import get_preset


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser("--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream") as browser:
        yield browser


@pytest.fixture(scope="module")
def digits_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "page.html"
    sf.write_page("digits", path)
    return path


@pytest.fixture(scope="module")
def events_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network for event cameras that learnt nothing, but fires."""
    folder = tmp_path_factory.mktemp("events")
    model = specimen(get_preset("spikformer_tiny_digits_dvs").config, torch.float32)
    sf.save(model, folder / "net.safetensors", card=open_dataset("digits_dvs").card("spikformer"))
    return sf.write_page(folder / "net.safetensors", folder / "page.html", num_samples=3).path
