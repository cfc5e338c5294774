"""An ablation's cells side by side: as plain data, as a CSV file with a row for each, and as a picture."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from spikformer.analysis.ablation import CellResult, Grid, Line, Variant, summarise
from spikformer.io import write_atomically
from spikformer.runs.cells import AblationFolder
from spikformer.visualise.accuracy import ablation_figure
from spikformer.visualise.style import save_figure

_COSTS = ("parameters", "operations", "energy_mj", "attention_operations", "attention_energy_mj")


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
        """The split of the accuracies: test, or validation where there is none."""
        names = {name for cell in self.cells for name in cell.figures}
        return "validation" if "last_validation_accuracy" in names and "last_test_accuracy" not in names else "test"

    @property
    def files(self) -> dict[str, Path]:
        return {ending: self.output / f"ablation.{ending}" for ending in ("csv", "png", "svg")}

    def write(self) -> None:
        """Write the table of cells and the picture."""
        write_atomically(self.files["csv"], self._as_csv().encode())
        figure = ablation_figure(
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
            "paper": paper and asdict(paper),
            "cells": [vars(cell) for cell in line.cells],
            **{
                name: spread and {"mean": spread.mean, "std": spread.std, "values": spread.values}
                for name, spread in found.items()
            },
        }
