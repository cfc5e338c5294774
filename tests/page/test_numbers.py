"""What the page computes is what the package computes: answers to the bit, exits, costs, attention, frames."""

from base64 import b64decode
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.engine.test_architectures import MARKED, NETWORKS
from tests.page.harness import compiled_specimen, needs_node, random_sample, think

import spikformer as sf
from spikformer.analysis.energy import audit
from spikformer.analysis.firing import measure_firing
from spikformer.analysis.operations import count_operations
from spikformer.analysis.specimens import shrunk, specimen
from spikformer.data import open_dataset
from spikformer.data.embedded import recorded_digits
from spikformer.engine import Engine
from spikformer.engine.lowering import from_model, from_weights
from spikformer.engine.program import Compiled
from spikformer.models import SpikingNetwork
from spikformer.page.about import describe
from spikformer.page.gallery import gallery
from spikformer.presets import get_preset

pytestmark = needs_node


def scalar(compiled: Compiled) -> Engine:
    engine = Engine(compiled, 1, instructions="scalar")
    engine.mode = "events"
    return engine


@pytest.mark.parametrize("name", MARKED)
def test_answers_costs_and_maps_of_every_architecture(name: str, tmp_path: Path) -> None:
    preset, overrides = NETWORKS[name]
    model = specimen(shrunk(preset, **{"time_steps": 3} | overrides), torch.float32)
    compiled = compiled_specimen(model)
    sample, x = random_sample(compiled.card.known_preprocessing)
    (found,) = think(tmp_path, compiled, [sample])
    engine = scalar(compiled)
    assert np.array_equal(np.array(found["readouts"], np.float32), engine.forward_steps(x)[:, 0])
    assert np.array_equal(np.array(found["logits"], np.float32), engine(x)[0])
    spikes = engine.spikes(x)
    assert found["spikes"] == sum(int(each.sum()) for each in spikes.values())
    for layer, fired in spikes.items():
        assert found["sums"][layer] == fired.sum()
    report = _audit_of(model, x, spikes)
    assert describe(compiled)["energy"]["twinMacs"] == report.twin_macs
    counted = {layer.name.removesuffix(".conv").removesuffix(".linear"): layer for layer in report.layers}
    assert {layer["name"] for layer in found["layers"]} == set(counted)
    reads_membranes = compiled.program.values(*compiled.card.known_preprocessing.size)[-2].kind == "floats"
    for layer in found["layers"]:
        for convention in ("paper", "strict", "entrywise"):
            given = tuple(sum(step[kind] for step in layer["steps"][convention]) for kind in ("macs", "acs"))
            wanted = tuple(counted[layer["name"]].operations(convention))
            if layer["name"] == "head" and reads_membranes:  # which no spikes tell: all are multiplied
                wanted = (counted["head"].macs * report.time_steps, 0.0)
            assert given == pytest.approx(wanted, rel=1e-5)


def _audit_of(model: SpikingNetwork, x: np.ndarray, spikes: dict[str, np.ndarray]) -> Any:
    """Measured by PyTorch; a specimen's neurons must fire as the engine's, which rounds differently."""
    batch = torch.from_numpy(x)
    with sf.record(model) as seen, torch.no_grad():
        model(batch)
    assert sum(int(each.sum()) for each in seen.spikes.values()) == sum(int(each.sum()) for each in spikes.values())
    return audit(model, measure_firing(model, [batch]))


@pytest.fixture(scope="module")
def digits() -> Compiled:
    return from_weights("digits")


def test_shipped_digits_answer_as_in_python_at_every_confidence(digits: Compiled, tmp_path: Path) -> None:
    data, engine = open_dataset("digits"), scalar(digits)
    samples = [data.split("test")[place] for place in range(40)]
    x = digits.card.known_preprocessing.to_inputs(np.stack(samples))
    readouts = engine.forward_steps(x).swapaxes(0, 1)
    levels = (0.5, 0.9, 0.97)
    shown = [{"kind": "picture", "bytes": each.tobytes(), "confidence": level} for level in levels for each in samples]
    found = iter(think(tmp_path, digits, shown))
    for confidence in levels:
        part = [next(found) for _ in samples]
        exits = [4 if each["exit"] is None else each["exit"] + 1 for each in part]
        assert exits == engine.answer_anytime(x, confidence).num_steps.tolist()
        assert np.array_equal(np.array([each["readouts"] for each in part], np.float32), readouts)


def test_other_numbers_of_steps_and_changes_are_those_of_the_engine(digits: Compiled, tmp_path: Path) -> None:
    sample, x = random_sample(digits.card.known_preprocessing)
    neuron, engine = "blocks.0.attention.neuron", scalar(digits)
    changes: list[dict[str, Any]] = [
        {"silent": [neuron]},
        {"heads": ["0:0"]},
        {"noise": {neuron: 0.25}},
        {"occluded": [0, 5]},
    ]
    found = think(tmp_path, digits, [sample | {"steps": 7}, *(sample | {"changes": each} for each in changes)])
    repeated = np.repeat(x[None], 7, axis=0)
    assert np.array_equal(np.array(found[0]["readouts"], np.float32), engine.forward_steps(repeated)[:, 0])
    for row, change in (
        (1, {"silence": range(64)}),
        (2, {"silence": range(16)}),
        (3, {"noise": 0.25, "seed": 0}),
    ):
        with engine.intervene(neuron, **change):  # type: ignore[arg-type]
            wanted = engine.forward_steps(x)[:, 0]
        assert np.array_equal(np.array(found[row]["readouts"], np.float32), wanted)
        assert not np.array_equal(wanted, engine.forward_steps(x)[:, 0])
    black = digits.card.known_preprocessing.to_inputs(np.zeros((1, 1, 8, 8), np.uint8))
    hidden = x.copy()
    for rows, columns in ((slice(0, 2), slice(0, 2)), (slice(2, 4), slice(2, 4))):
        hidden[..., rows, columns] = black[..., rows, columns]
    assert np.array_equal(np.array(found[4]["frames"][0], np.float32), hidden.ravel())
    assert np.array_equal(np.array(found[4]["readouts"], np.float32), engine.forward_steps(hidden)[:, 0])


def test_membranes_and_attention_are_those_that_python_records(digits: Compiled, tmp_path: Path) -> None:
    sample, x = random_sample(digits.card.known_preprocessing)
    (mean, row) = think(tmp_path, digits, [sample, sample | {"query": 5}])
    engine = scalar(digits)
    last = [op.name for _, op in digits.program.state_ops()][-1]
    assert np.array_equal(np.array(mean["membrane"], np.float32), engine.membranes(x, [last])[last].ravel())
    spikes = engine.spikes(x)
    for block in (0, 1):
        query, key = (
            spikes[f"blocks.{block}.attention.{part}.neuron"][-1, 0].reshape(16, 4, 16).swapaxes(0, 1).astype(float)
            for part in ("query", "key")
        )
        products = query @ key.swapaxes(-2, -1) * 0.125
        np.testing.assert_allclose(mean["attention"][block], products.mean(-2), rtol=1e-6)
        np.testing.assert_allclose(row["attention"][block], products[:, 5], rtol=1e-6)


@pytest.mark.slow
def test_recordings_become_the_frames_of_the_data_set(tmp_path: Path) -> None:
    config = get_preset("spikformer_tiny_digits_dvs").config
    data = open_dataset("digits_dvs")
    compiled = from_model(specimen(config, torch.float32))
    compiled = replace(compiled, card=data.card("spikformer"))
    items = gallery(compiled, None, 3)
    assert [item["kind"] for item in items] == ["recording"] * 3
    places = [int(item["name"].split()[-1]) for item in items]
    shown = [{"kind": "recording", "bytes": b64decode(item["bytes"])} for item in items]
    found = think(tmp_path, compiled, [*shown, shown[0] | {"steps": 5}])
    for place, each in zip(places, found, strict=False):
        frames = data.split("test")[place]
        assert np.array_equal(np.array(each["frames"]).reshape(frames.shape), frames)
    other = replace(data.preprocessing, time_steps=5).to_sample(recorded_digits("test")[places[0]])
    assert np.array_equal(np.array(found[3]["frames"]).reshape(other.shape), other)


def test_the_twin_s_operations_are_those_of_the_analysis() -> None:
    model = sf.load("digits")
    assert describe(from_weights("digits"))["energy"]["twinMacs"] == sum(
        layer.twin_macs for layer in count_operations(model)
    )
