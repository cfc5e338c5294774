"""A card holds what it was given, and takes nothing that a hostile file could put into it."""

import json
import math
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.mistakes import field_error, mistake

from spikformer.card import ModelCard, Result, read_card
from spikformer.config import ModelConfig
from spikformer.errors import FieldError
from spikformer.preprocessing import Preprocessing

pytestmark = pytest.mark.core

IMAGES = Preprocessing(kind="image", size=(32, 32), channels=3, crop_ratio=0.875, mean=(0.5,), std=(0.25,))
EVENTS = Preprocessing(kind="events", size=(32, 32), channels=2, time_steps=4, sensor=(34, 34), swap_axes=True)
CARD = ModelCard(
    architecture="spikformer",
    data_set="image_folder",
    class_names=("ant", "biene", "猫"),
    preprocessing=IMAGES,
    recipe="spikformer_4_384_cifar10",
    settings={"epochs": 3, "model": {"depth": 2, "pool_stages": [True, False]}, "note": None, "rate": 1e-3},
    results=(Result(metric="top1", split="test", value=0.9, date="2026-11-17", command="spikformer evaluate x"),),
    licence="MIT",
    limits="Pictures of 32×32 pixels alone.",
    confidence=0.9,
)


@pytest.mark.parametrize("card", [CARD, replace(CARD, preprocessing=EVENTS), ModelCard(architecture="a")])
def test_json_and_back(card: ModelCard) -> None:
    text = json.dumps(card.to_dict())
    again = ModelCard.from_dict(json.loads(text))
    assert again == card
    assert json.dumps(again.to_dict()) == text
    assert pickle.loads(pickle.dumps(card)) == card


def test_numbers_of_numpy_become_plain_ones() -> None:
    seen = Preprocessing(kind="image", size=(np.int64(8), 8), channels=np.int32(1), mean=[np.float32(0.5)], std=[1])
    assert seen == Preprocessing(kind="image", size=(8, 8), channels=1, mean=(0.5,), std=(1.0,))
    assert json.dumps(seen.to_dict()) == json.dumps(Preprocessing.from_dict(seen.to_dict()).to_dict())


def test_a_card_of_a_release_without_anytime_inference_is_read() -> None:
    values = CARD.to_dict()
    del values["limits"], values["confidence"], values["results"][0]["machine"]
    card = ModelCard.from_dict(values)
    assert card == replace(CARD, limits=None, confidence=None)
    with field_error("confidence"):
        _ = card.known_confidence
    assert CARD.known_confidence == 0.9


def test_a_result_names_the_machine_that_it_depends_on() -> None:
    timed = replace(CARD.results[0], metric="engine_ms", machine="AMD EPYC 9R14")
    assert ModelCard.from_dict(replace(CARD, results=(timed,)).to_dict()).results == (timed,)


def deep(levels: int) -> dict[str, Any]:
    return {"a": deep(levels - 1)} if levels else {}


def change(**values: Any) -> Callable[[dict[str, Any]], object]:
    return lambda card: card.update(values)


def change_images(**values: Any) -> Callable[[dict[str, Any]], object]:
    return lambda card: card["preprocessing"].update(values)


def change_events(**values: Any) -> Callable[[dict[str, Any]], object]:
    return change(preprocessing=EVENTS.to_dict() | values)


HOSTILE = [
    lambda card: card.pop("architecture"),
    change(architecture=7),
    change(architecture=""),
    change(data_set="x" * 101),
    change(surprise=1),
    change(class_names="abc"),
    change(class_names=[1, 2, 3]),
    change(class_names=["x" * 1001]),
    change(preprocessing=[]),
    change(recipe=[]),
    change(settings=3),
    change(settings=deep(100)),
    change(settings={"values": list(range(10_001))}),
    change(settings={"rate": math.nan}),
    change(settings={"rate": 10**400}),
    change(settings={"text": "x" * 10_001}),
    change(results={}),
    change(results=[1]),
    change(results=[{}]),
    change(results=[CARD.results[0].to_dict() | {"value": math.inf}]),
    change(results=[CARD.results[0].to_dict() | {"date": "yesterday"}]),
    change(results=[CARD.results[0].to_dict() | {"extra": 1}]),
    change(results=[CARD.results[0].to_dict()] * 1001),
    change(results=[CARD.results[0].to_dict() | {"machine": "x" * 201}]),
    change(licence=False),
    change(limits=""),
    change(limits="x" * 4001),
    change(confidence=0),
    change(confidence=1.01),
    change(confidence=math.nan),
    change(confidence=True),
    change(confidence="0.9"),
    change_images(kind="sound"),
    change_images(size=[8]),
    change_images(size=[8, True]),
    change_images(size=[0, 8]),
    change_images(size=[1 << 20, 1 << 20]),
    change_images(channels=2.0),
    change_images(crop_ratio=1e-6),
    change_images(crop_ratio="0.875"),
    change_images(resampling="lanczos9"),
    change_images(mean=[0.5, 0.5]),
    change_images(mean=None),
    change_images(std=[0.0]),
    change_images(std=[math.nan]),
    change_images(time_steps=4),
    change_images(swap_axes=True),
    change_images(surprise=1),
    change_events(time_steps=None),
    change_events(time_steps=1 << 30),
    change_events(time_steps=1_000_000, size=[4096, 4096]),
    change_events(sensor=[0, 3]),
    change_events(sensor=[1 << 20, 3]),
    change_events(channels=3),
    change_events(swap_axes=1),
    change_events(slicing="both"),
    change_events(mean=[0.5], std=[0.5]),
]


@pytest.mark.parametrize("spoil", HOSTILE)
def test_what_a_hostile_file_can_hold_is_a_short_error(spoil: Callable[[dict[str, Any]], object]) -> None:
    values = CARD.to_dict()
    spoil(values)
    with mistake(FieldError) as caught:
        ModelCard.from_dict(values)
    assert len(str(caught.value)) < 400
    assert str(caught.value).isprintable()


CONFIG = ModelConfig(num_classes=3)


@pytest.mark.parametrize("config", [CONFIG, CONFIG.override(image_size=None)])
def test_a_card_fits_its_network(config: ModelConfig) -> None:
    assert read_card({"card": json.dumps(CARD.to_dict())}, config) == CARD


@pytest.mark.parametrize(
    ("field", "config"),
    [
        ("class_names", CONFIG.override(num_classes=4)),
        ("channels", CONFIG.override(in_channels=1)),
        ("size", CONFIG.override(image_size=(64, 64))),
    ],
)
def test_a_card_of_another_network_does_not_fit(field: str, config: ModelConfig) -> None:
    with field_error(field):
        read_card({"card": json.dumps(CARD.to_dict())}, config)


@pytest.mark.parametrize(
    ("preprocessing", "config"),
    [
        (Preprocessing(kind="events", size=(32, 32), channels=2, time_steps=100_000), {}),
        (Preprocessing(kind="image", size=(4096, 4096), channels=2), {"image_size": None}),
        (Preprocessing(kind="image", size=(33, 32), channels=2), {"image_size": None}),
    ],
)
def test_a_sample_that_its_network_cannot_take_does_not_fit(
    preprocessing: Preprocessing, config: dict[str, Any]
) -> None:
    card = ModelCard(architecture="spikformer", preprocessing=preprocessing)
    with pytest.raises(FieldError):
        card.check_fits(CONFIG.override(in_channels=2, **config))


@pytest.mark.parametrize("text", ["7", "{", "[" * 100_000, "[]", '{"a": 1' + "0" * 5000 + "}"])
def test_metadata_that_is_no_card(text: str) -> None:
    for key in ("card", "about"):
        with field_error(key):
            read_card({key: text}, CONFIG)


def about(name: str, *, events: bool, mean: list[float] | None = None) -> dict[str, str]:
    data = {"name": name, "class_names": ["a", "b", "c"], "events": events, "mean": mean, "std": mean}
    return {"about": json.dumps({"data": data, "recipe": {"name": "r", "epochs": 2}})}


def test_what_version_0_1_stored_is_read_as_a_card() -> None:
    frames = CONFIG.override(in_channels=2, time_steps=5)
    card = read_card(about("cifar10dvs", events=True), frames)
    assert (card.data_set, card.class_names, card.recipe, card.settings) == (
        "cifar10dvs",
        ("a", "b", "c"),
        "r",
        {"epochs": 2},
    )
    assert card.preprocessing == Preprocessing(
        kind="events", size=(32, 32), channels=2, time_steps=5, sensor=(128, 128), swap_axes=True
    )
    card = read_card(about("event_folder", events=True), frames)
    assert card.preprocessing == Preprocessing(kind="events", size=(32, 32), channels=2, time_steps=5)
    card = read_card(about("image_folder", events=False, mean=[0.5, 0.4, 0.3]), CONFIG)
    assert card.preprocessing == replace(IMAGES, mean=(0.5, 0.4, 0.3), std=(0.5, 0.4, 0.3))
    card = read_card(about("cifar10", events=False, mean=[0.5]), CONFIG)
    assert card.known_preprocessing.crop_ratio == 1
    card = read_card(about("cifar10", events=False, mean=[0.5]), CONFIG.override(image_size=None))
    assert (card.data_set, card.preprocessing) == ("cifar10", None)
    for nothing in ({}, {"about": "{}"}, {"about": '{"data": "digits", "recipe": 3}'}):
        assert read_card(nothing, CONFIG) == ModelCard(architecture="spikformer")


def test_it_needs_numpy_alone() -> None:
    code = "import sys, spikformer.card as c; c.Preprocessing; assert not {'torch', 'PIL'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
