"""The page's own script in Node: samples in, what it computes out."""

from __future__ import annotations

import json
import shutil
import subprocess
from base64 import b64encode
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spikformer.card import ModelCard
from spikformer.engine.file import write_compiled
from spikformer.engine.lowering import from_model
from spikformer.engine.program import Compiled
from spikformer.models import SpikingNetwork
from spikformer.page.about import describe
from spikformer.page.bundle import FOLDER
from spikformer.preprocessing import Preprocessing

HERE = Path(__file__).parent
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")


def think(folder: Path, compiled: Compiled, samples: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the page would show of samples, each {"kind", "bytes"} and perhaps "steps", "changes", "query"."""
    write_compiled(compiled, folder / "page.engine")
    (folder / "about.json").write_text(json.dumps(describe(compiled)))
    encoded = [sample | {"bytes": b64encode(sample["bytes"]).decode()} for sample in samples]
    (folder / "samples.json").write_text(json.dumps(encoded))
    command = ["node", str(HERE / "think.mjs"), str(FOLDER / "engine.wasm"), str(folder)]
    run = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert run.returncode == 0, run.stderr
    return [json.loads(line) for line in run.stdout.splitlines()]


def compiled_specimen(model: SpikingNetwork) -> Compiled:
    """A network that learnt nothing, with a card as if it had."""
    config = model.config
    size = config.image_size or (config.patch_size * 2, config.patch_size * 2)
    events = config.in_channels == 2
    form: dict[str, Any] = {"time_steps": config.time_steps} if events else {}
    seen = Preprocessing(kind="events" if events else "image", size=size, channels=config.in_channels, **form)
    names = tuple(f"class {index}" for index in range(config.num_classes))
    card = ModelCard(architecture=model.card.architecture, class_names=names, preprocessing=seen)
    return replace(from_model(model), card=card)


def random_sample(seen: Preprocessing, seed: int = 0) -> tuple[dict[str, Any], np.ndarray]:
    """A sample for `think`, and the same as the input of a batch of one."""
    random = np.random.default_rng(seed)
    array = random.integers(0, 3 if seen.events else 256, seen.sample_shape, dtype=np.uint8)
    return {"kind": "frames" if seen.events else "picture", "bytes": array.tobytes()}, seen.to_inputs(array[None])
