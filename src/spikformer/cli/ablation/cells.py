"""Cells of an ablation: a run folder each, with the settings it must have, and its result once it has ended."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from spikformer.analysis.ablation import CellResult, Outcome
from spikformer.cli.ablation.one_cell import RESULT
from spikformer.training.bounded import read_json
from spikformer.training.recipe import Recipe
from spikformer.training.recipes import get_recipe
from spikformer.training.run_folder import RunFolder

_DECIDED_BY_DATA = ("model.num_classes", "model.in_channels")


@dataclass(frozen=True)
class Cell:
    """A variant with a seed: a run folder, and the settings that it is to have."""

    variant: str
    seed: int
    folder: Path
    recipe: str
    settings: Recipe

    def __str__(self) -> str:
        return f"{self.variant}, seed {self.seed}"

    def result(self) -> CellResult | None:
        """What came out, if it has ended."""
        found = self._read_result()
        return None if found is None else CellResult(self.variant, self.seed, found["outcome"], found["figures"])

    def check_settings(self) -> None:
        """Refuse a run there, finished or not, that was asked for with other settings."""
        began = self._read_result()
        run = RunFolder(self.folder)
        if began is None and run.state.exists():
            began = run.read_description()
        if began is None:
            return
        if began["recipe"] != self.recipe:
            raise ValueError(
                f"{self.folder} is a run of {began['recipe']}, not of {self.recipe}; choose another --output."
            )
        ours, theirs = flat(json.loads(json.dumps(self.settings.to_dict()))), flat(began["settings"])
        changed = [name for name in ours | theirs if ours.get(name) != theirs.get(name)]
        if changed := [name for name in changed if name not in _DECIDED_BY_DATA]:
            began_with = ", ".join(f"{name} {theirs.get(name)}" for name in changed)
            raise ValueError(
                f"{self.folder} was started with {began_with}; ask for the same, or choose another --output."
            )

    def _read_result(self) -> dict[str, Any] | None:
        path = self.folder / RESULT
        if not path.exists():
            return None
        try:
            found = read_json(path)
            kinds = {"recipe": str, "settings": dict, "outcome": str, "figures": dict}
            if not all(isinstance(found[name], kind) for name, kind in kinds.items()):
                raise TypeError
            if found["outcome"] not in get_args(Outcome) or not all(map(_is_number, found["figures"].values())):
                raise TypeError
        except (OSError, KeyError, TypeError, ValueError):
            raise ValueError(f"{path} is damaged; remove it, and the cell resumes from what it saved.") from None
        return {name: found[name] for name in kinds}

    def command(self, options: Sequence[str], first_options: Sequence[str]) -> list[str]:
        """The process that trains it from its start, with `first_options`, or on from where it was."""
        words = [sys.executable, "-m", "spikformer.cli.ablation.one_cell", str(self.folder), self.recipe, *options]
        if RunFolder(self.folder).state.exists():
            return [*words, "--resume"]
        return [*words, *first_options, *as_words(self.settings, get_recipe(self.recipe))]


def _is_number(value: object) -> bool:
    return isinstance(value, float) or (isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63)


def flat(settings: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Settings by the names they have on the command line, with underscores."""
    found: dict[str, Any] = {}
    for name, value in settings.items():
        found |= flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return found


def as_words(settings: Recipe, published: Recipe) -> list[str]:
    """What to add to `train RECIPE`, so that it has these settings."""
    words: list[str] = []
    before = flat(published.to_dict())
    for name, value in flat(settings.to_dict()).items():
        if value == before[name]:
            continue
        room, _, last = name.replace("_", "-").rpartition(".")
        dot = "." if room else ""
        if isinstance(value, bool):
            words.append(f"--{room}{dot}{last}" if value else f"--{room}{dot}no-{last}")
        else:
            words += [f"--{room}{dot}{last}", *map(str, value if isinstance(value, tuple) else (value,))]
    return words
