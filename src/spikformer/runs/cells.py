"""The folder of an ablation and its cells.

    ablation.json            what all cells share, besides the settings that each keeps
    ablation.csv png svg     how it stands, written after every cell
    VARIANT/seed_N/          a cell: a run folder, with log.txt and, once it has ended, cell.json

A cell is a run folder with the settings it must have.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, get_args

from spikformer.analysis.ablation import CellResult, Grid, Line, Outcome, Variant, summarise
from spikformer.analysis.energy import CONVENTIONS, energy_figure
from spikformer.errors import FileError, UnknownNameError
from spikformer.io import read_json, write_atomically
from spikformer.runs.folder import Run
from spikformer.training.recipe import Recipe
from spikformer.visualise.accuracy import ablation_figure
from spikformer.visualise.costs import cost_figure
from spikformer.visualise.style import save_figure

_RESULT = "cell.json"
_RESULT_TYPES = {"recipe": str, "settings": dict, "outcome": str, "figures": dict}


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

    def keep_result(self, result: CellResult) -> None:
        """Written with the settings, so that a result is never mistaken for that of others."""
        began = Run(self.folder).description
        figures = dict(result.figures)
        content = {"recipe": began.recipe, "settings": began.settings, "outcome": result.outcome, "figures": figures}
        write_atomically(self.folder / _RESULT, (json.dumps(content, indent=2) + "\n").encode())

    def check_settings(self) -> None:
        """Raises if the run there, finished or not, has other settings."""
        if found := self._read_result():
            recipe, settings = found["recipe"], found["settings"]
        elif (run := Run(self.folder)).state.exists():
            recipe, settings = run.description.recipe, run.description.settings
        else:
            return
        if recipe != self.recipe:
            raise FileError(
                self.folder, f"is a run of {recipe}, not of {self.recipe}; choose another --output.", "unfit"
            )
        try:
            began = Recipe.from_dict(settings)  # with the defaults of settings that an earlier version did not have
        except ValueError as error:
            raise FileError(self.folder, f"has settings that this version cannot use: {error}", "unsupported") from None
        if other := began.settings_unlike(self.settings):
            began_with = ", ".join(f"{name} {value}" for name, value in other.items())
            raise FileError(
                self.folder,
                f"was started with {began_with}; use the same settings, or choose another --output.",
                "unfit",
            )

    def _read_result(self) -> dict[str, Any] | None:
        path = self.folder / _RESULT
        if not path.exists():
            return None
        try:
            found = read_json(path)
            if not all(isinstance(found[name], kind) for name, kind in _RESULT_TYPES.items()):
                raise TypeError
            if found["outcome"] not in get_args(Outcome) or not all(map(_is_number, found["figures"].values())):
                raise TypeError
        except (OSError, KeyError, TypeError, ValueError):
            raise FileError(path, "is damaged; remove it, and the cell resumes from its saved state.") from None
        return {name: found[name] for name in _RESULT_TYPES}


def _is_number(value: object) -> bool:
    return isinstance(value, float) or (isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63)


@dataclass(frozen=True)
class AblationFolder:
    """A grid over a recipe, in a folder. Seeds may be added later; everything else stays."""

    path: Path
    grid: Grid
    variants: Sequence[Variant]
    recipe: str
    settings: Recipe
    from_weights: Path | None
    teacher: Path | None = None

    def choose(self, seeds: Sequence[int], only: Sequence[str]) -> list[Cell]:
        """The cells of these seeds, one seed after the other, so that a first table comes early."""
        names = [variant.name for variant in self.variants]
        for word in only:
            if word not in names:
                raise UnknownNameError("variant", word, names)
        rows = [variant for variant in self.variants if not only or variant.name in only]
        return [self._cell(row, seed) for seed in dict.fromkeys(seeds) for row in rows]

    def _cell(self, variant: Variant, seed: int) -> Cell:
        settings = replace(self.settings, model=variant.applied_to(self.settings.model), seed=seed)
        settings = settings.override(**variant.settings)
        return Cell(variant.name, seed, self.path / variant.name / f"seed_{seed}", self.recipe, settings)

    def existing(self) -> list[Cell]:
        """Cells that have a folder, from this command or an earlier one."""
        found = [(row, path) for row in self.variants for path in (self.path / row.name).glob("seed_*")]
        seeds = [(row, path.name.removeprefix("seed_")) for row, path in found]
        return [self._cell(row, int(seed)) for row, seed in seeds if seed.isdecimal()]

    def check(self) -> None:
        """Raises if cells in the folder would not be comparable with these."""
        path = self.path / "ablation.json"
        if path.exists():
            try:
                began = dict(read_json(path))
            except (OSError, TypeError, ValueError):
                raise FileError(path, "is damaged; remove it, or choose another --output.") from None
            for name, value in self._common().items():
                if began.get(name) != value:
                    raise FileError(
                        self.path,
                        f"was started with {name} {began.get(name)!r}, not {value!r}; choose another --output.",
                        "unfit",
                    )
        for cell in self.existing():
            cell.check_settings()

    def begin(self) -> dict[Path, CellResult]:
        """Write what all cells share, and read the results so far, by folder."""
        self.check()
        content = json.dumps(self._common(), indent=2) + "\n"
        write_atomically(self.path / "ablation.json", content.encode())
        return {cell.folder: result for cell in self.existing() if (result := cell.result())}

    def _common(self) -> dict[str, Any]:
        start, taught = (path and str(path.absolute()) for path in (self.from_weights, self.teacher))
        return {"grid": self.grid, "recipe": self.recipe, "from": start, "teacher": taught}


_COSTS = (
    *("parameters", "operations", *map(energy_figure, CONVENTIONS), "engine_ms"),
    *("attention_operations", "attention_energy_mj"),
)


@dataclass(frozen=True)
class Comparison:
    """Where an ablation stands."""

    grid: Grid
    recipe: str
    data_set: str
    output: Path
    variants: Sequence[Variant]
    cells: Sequence[CellResult]
    num_missing: int = 0
    """Cells that were asked for and have no result yet."""

    @classmethod
    def of(cls, folder: AblationFolder, cells: Sequence[CellResult], num_missing: int) -> Comparison:
        data_set = folder.settings.data_set
        return cls(folder.grid, folder.recipe, data_set, folder.path, folder.variants, cells, num_missing)

    @property
    def lines(self) -> list[Line]:
        """One for each variant that was trained."""
        return [line for line in summarise(self.variants, self.cells) if line.cells]

    @property
    def split(self) -> str:
        """The split of the accuracies: test; validation where there is none, and where settings are to be chosen."""
        names = {name for cell in self.cells for name in cell.figures}
        chosen = self.grid == "recipe" or "last_test_accuracy" not in names
        return "validation" if chosen and "last_validation_accuracy" in names else "test"

    @property
    def files(self) -> dict[str, Path]:
        return {ending: self.output / f"ablation.{ending}" for ending in ("csv", "png", "svg")}

    def write(self) -> None:
        """Write the table of cells and the picture."""
        write_atomically(self.files["csv"], self._as_csv().encode())
        draw = cost_figure if self.grid == "architecture" else ablation_figure
        figure = draw(
            self.lines,
            f"last_{self.split}_accuracy",
            title=f"{self.grid.replace('_', ' ')}: {self.recipe}",
            label=f"{self.split} accuracy after the last epoch, %",
        )
        for ending in ("png", "svg"):
            save_figure(figure, self.files[ending])

    def _as_csv(self) -> str:
        accuracies = (f"last_{self.split}_accuracy", f"best_{self.split}_accuracy")
        names = ["variant", "seed", "outcome", *accuracies, *_COSTS, "seconds"]
        text = io.StringIO()
        writer = csv.DictWriter(text, names, restval="", extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        for line in self.lines:
            writer.writerows({**vars(cell), **cell.figures} for cell in line.cells)
        return text.getvalue()

    def to_dict(self) -> dict[str, Any]:
        """Plain data; accuracies are shares, of which the paper prints percents."""
        return {
            "grid": self.grid,
            "recipe": self.recipe,
            "data_set": self.data_set,
            "split": self.split,
            "variants": [self._line_to_dict(line) for line in self.lines],
            "files": {ending: str(path) for ending, path in self.files.items()},
        }

    def _line_to_dict(self, line: Line) -> dict[str, Any]:
        names = {"last_accuracy": f"last_{self.split}_accuracy", "best_accuracy": f"best_{self.split}_accuracy"}
        found = {name: line.figure(key) for name, key in (names | dict(zip(_COSTS, _COSTS, strict=True))).items()}
        paper = line.variant.paper
        return {
            "name": line.variant.name,
            "overrides": line.variant.overrides,
            "settings": dict(line.variant.settings),
            "model": line.variant.config and line.variant.config.to_dict(),
            "paper": paper and asdict(paper),
            "cells": [vars(cell) for cell in line.cells],
            **{
                name: spread and {"mean": spread.mean, "std": spread.std, "values": spread.values}
                for name, spread in found.items()
            },
        }
