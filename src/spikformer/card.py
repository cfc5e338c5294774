"""ModelCard: what a weights or engine file says about its network.

Everything is checked when a card is made, from Python or from a file: types, lengths and ranges, so that whoever holds
one can rely on it. Memory is in proportion to the file's header.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

from spikformer.config import NetworkShape
from spikformer.errors import FieldError, shown
from spikformer.preprocessing import Preprocessing
from spikformer.validation import check_mapping, check_number, check_probability, check_text, plain_json

_MOST_CLASSES = 1_000_000
_MOST_RESULTS = 1000


@dataclass(frozen=True, kw_only=True)
class Result:
    """A number that was measured, when, and the command that measures it again."""

    metric: str
    split: str
    value: float
    date: str
    """As 2026-11-17."""
    command: str
    machine: str | None = None
    """The processor's name, where the number depends on it."""

    def __post_init__(self) -> None:
        if self.machine is not None:
            check_text("machine", self.machine, 200)
        for name, longest in (("metric", 100), ("split", 100), ("date", 10), ("command", 4000)):
            check_text(name, getattr(self, name), longest)
        object.__setattr__(self, "value", check_number("value", self.value, -1e300, 1e300))
        try:
            date.fromisoformat(self.date)
        except ValueError:
            raise FieldError("date", f"date must be a day such as 2026-11-17, got {shown(self.date)}.") from None

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))


@dataclass(frozen=True, kw_only=True)
class ModelCard:
    """Of a new network only the architecture is known; training adds the rest."""

    architecture: str
    data_set: str | None = None
    class_names: tuple[str, ...] = ()
    """In the order of the outputs; empty if they are not known."""
    preprocessing: Preprocessing | None = None
    recipe: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    """The recipe's settings after overrides, as plain JSON."""
    results: tuple[Result, ...] = ()
    licence: str | None = None
    limits: str | None = None
    """What the network is not for."""
    confidence: float | None = None
    """Anytime inference: an answer may end at the first step at which its likeliest class has this probability, by the
    softmax of the mean readout so far. None: none was chosen, take all steps."""

    def __post_init__(self) -> None:
        check_text("architecture", self.architecture, 100)
        for name, longest in (("data_set", 100), ("recipe", 1000), ("licence", 1000), ("limits", 4000)):
            if getattr(self, name) is not None:
                check_text(name, getattr(self, name), longest)
        if self.confidence is not None:
            self._set("confidence", check_probability("confidence", self.confidence))
        names: Any = self.class_names
        if not isinstance(names, list | tuple) or len(names) > _MOST_CLASSES:
            raise FieldError(
                "class_names", f"class_names must be a list of at most {_MOST_CLASSES:,} names, got {shown(names)}."
            )
        self._set("class_names", tuple(check_text("a class name", name, 1000) for name in names))
        if self.preprocessing is not None and not isinstance(self.preprocessing, Preprocessing):
            raise FieldError(
                "preprocessing", f"preprocessing must be a Preprocessing, got {shown(self.preprocessing)}."
            )
        if not isinstance(self.settings, Mapping):
            raise FieldError("settings", f"settings must be an object, got {shown(self.settings)}.")
        self._set("settings", plain_json("settings", self.settings))
        results: Any = self.results
        if not isinstance(results, list | tuple) or not all(isinstance(result, Result) for result in results):
            raise FieldError("results", f"results must be a list of Result, got {shown(results)}.")
        if len(results) > _MOST_RESULTS:
            raise FieldError("results", f"A card may hold {_MOST_RESULTS:,} results, got {len(results):,}.")
        self._set("results", tuple(results))

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    @property
    def known_preprocessing(self) -> Preprocessing:
        """The preprocessing; a ValueError where the card has none, so that a file cannot be shown to the network."""
        if self.preprocessing is None:
            raise FieldError(
                "preprocessing",
                "The card does not say how its inputs are made; save the network with a card that does.",
            )
        return self.preprocessing

    @property
    def known_confidence(self) -> float:
        """The confidence at which an answer may end; a ValueError where the card has none."""
        if self.confidence is None:
            raise FieldError(
                "confidence",
                "The card stores no confidence; give a number, or choose one by `spikformer anytime WEIGHTS --store`.",
            )
        return self.confidence

    def check_fits(self, network: NetworkShape) -> None:
        """Raise unless classes, channels and size are those of a network, which can take such a sample."""
        named, answered = len(self.class_names), network.num_classes
        if named not in (0, answered):
            raise FieldError("class_names", f"The card names {named} classes, and the network has {answered} outputs.")
        seen = self.preprocessing
        if seen is not None and seen.channels != network.in_channels:
            raise FieldError(
                "channels", f"The card has inputs of {seen.channels} channels, and the network {network.in_channels}."
            )
        if seen is not None and network.image_size not in (None, seen.size):
            raise FieldError("size", f"The card has inputs of size {seen.size}, and the network {network.image_size}.")
        if seen is not None:
            network.check_sample(seen.size, seen.time_steps or network.time_steps)

    def with_time_steps(self, time_steps: int) -> ModelCard:
        """Of a network that sees events, the card for another number of frames; of any other, this one."""
        seen = self.preprocessing
        if seen is None or not seen.events:
            return self
        return replace(self, preprocessing=replace(seen, time_steps=time_steps))

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON; the same card gives the same text."""
        return {
            "architecture": self.architecture,
            "data_set": self.data_set,
            "class_names": list(self.class_names),
            "preprocessing": None if self.preprocessing is None else self.preprocessing.to_dict(),
            "recipe": self.recipe,
            "settings": plain_json("settings", self.settings),
            "results": [result.to_dict() for result in self.results],
            "licence": self.licence,
            "limits": self.limits,
            "confidence": self.confidence,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> ModelCard:
        """What `to_dict` was called on; anything else raises a ValueError. Only `architecture` is required."""
        check_mapping(cls, values, required=("architecture",))
        preprocessing, results = values.get("preprocessing"), values.get("results", [])
        if not isinstance(results, list) or len(results) > _MOST_RESULTS:
            raise FieldError("results", f"results must be a list of at most {_MOST_RESULTS:,}, got {shown(results)}.")
        for result in results:
            check_mapping(Result, result, required=("metric", "split", "value", "date", "command"))
        given: dict[str, Any] = dict(values)
        given["preprocessing"] = None if preprocessing is None else Preprocessing.from_dict(preprocessing)
        given["results"] = tuple(Result(**result) for result in results)
        return cls(**given)


def read_card(metadata: Mapping[str, str], network: NetworkShape) -> ModelCard:
    """The card in a file's metadata, checked against its network. Files of earlier versions have `about` instead."""
    key = "card" if "card" in metadata else "about"
    try:
        values = json.loads(metadata.get(key, "{}"))
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise FieldError(key, f"It holds no readable {key}.")
    card = ModelCard.from_dict(values) if key == "card" else _from_about(values, network)
    card.check_fits(network)
    return card


# What earlier versions knew by the name of the data set.
_CROPPED = ("imagenet", "image_folder")
_SENSORS = {"cifar10dvs": (128, 128), "dvs128": (128, 128), "n_mnist": (34, 34), "digits_dvs": (16, 16)}


def _from_about(about: Mapping[str, Any], network: NetworkShape) -> ModelCard:
    """A card of what version 0.1 stored: {"data": {name, class_names, events, mean, std}, "recipe": {name, …}}."""
    data, recipe = about.get("data"), about.get("recipe")
    recipe = recipe if isinstance(recipe, dict) else {}
    settings = {name: value for name, value in recipe.items() if name != "name"}
    card = ModelCard(architecture="spikformer", recipe=recipe.get("name"), settings=settings)
    if not isinstance(data, dict) or not {"name", "class_names", "events", "mean", "std"} <= data.keys():
        return card
    card = replace(card, data_set=data["name"], class_names=data["class_names"])
    if network.image_size is None:
        return card
    form: dict[str, Any] = {"size": network.image_size, "channels": network.in_channels}
    if data["events"] is True:
        sensor, swapped = _SENSORS.get(data["name"]), data["name"] == "cifar10dvs"
        form |= {"kind": "events", "time_steps": network.time_steps, "sensor": sensor, "swap_axes": swapped}
    else:
        ratio = 0.875 if data["name"] in _CROPPED else 1.0
        form |= {"kind": "image", "crop_ratio": ratio, "mean": data["mean"], "std": data["std"]}
    return replace(card, preprocessing=Preprocessing(**form))
