"""An ablation's cells side by side: as a table, as JSON, as a CSV file with a row for each, and as a picture."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from spikformer.analysis.ablation import CellResult, Grid, Line, Variant, summarise
from spikformer.cli.terminal import print_table, say

_COSTS = ("parameters", "operations", "energy_mj", "attention_operations", "attention_energy_mj")
_NOTHING = "–"


@dataclass(frozen=True)
class Comparison:
    """Where an ablation stands."""

    grid: Grid
    recipe: str
    data_set: str
    output: Path
    variants: Sequence[Variant]
    cells: Sequence[CellResult]

    @property
    def lines(self) -> list[Line]:
        """Of variants that were run."""
        return [line for line in summarise(self.variants, self.cells) if line.cells]

    @property
    def split(self) -> str:
        """What accuracies are of: the test split, or validation where there is none."""
        names = {name for cell in self.cells for name in cell.figures}
        return "validation" if "last_validation_accuracy" in names and "last_test_accuracy" not in names else "test"

    @property
    def files(self) -> dict[str, Path]:
        return {ending: self.output / f"ablation.{ending}" for ending in ("csv", "png", "svg")}

    def write(self) -> None:
        """The table of cells and the picture, replaced by whole ones."""
        from spikformer.disk import write_atomically
        from spikformer.visualise.ablation import ablation_figure
        from spikformer.visualise.style import save_figure

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

    def show(self) -> None:
        """The table, and where the rest is."""
        lines = self.lines
        table = Table(box=None, header_style="bold", padding=(0, 1, 0, 0))
        table.add_column(self.grid.replace("_", " ").capitalize(), no_wrap=True)
        columns = {title: [cell(line) for line in lines] for title, cell in self._columns(lines).items()}
        columns = {title: cells for title, cells in columns.items() if set(cells) != {_NOTHING}}
        for title in columns:
            table.add_column(title, justify="right")
        for line, *cells in zip(lines, *columns.values(), strict=True):
            table.add_row(line.variant.name, *cells)
        print_table(table)
        for sentence in self._sentences(lines):
            say(sentence)

    def _columns(self, lines: Sequence[Line]) -> dict[str, Callable[[Line], str]]:
        """Titles, and what stands below each; one that is empty is left out."""
        # One unit for a column, and a small network's energy would vanish in millijoules.
        energies = [spread.mean for line in lines if (spread := line.figure("energy_mj"))]
        unit, per_mj = ("mJ", 1.0) if max(energies, default=0.0) >= 1 else ("µJ", 1e3)
        columns: dict[str, Callable[[Line], str]] = {
            "\nRuns": _runs,
            "Last\n%": lambda line: self._accuracy(line, "last"),
            "Best\n%": lambda line: self._accuracy(line, "best"),
            "Params\nM": _mean("parameters", 1e-6),
            "OPs\nM": _mean("operations", 1e-6),
            f"Energy\n{unit}": _mean("energy_mj", per_mj),
        }
        if self.grid == "attention":
            columns |= {"QKV\nM": _mean("attention_operations", 1e-6), "QKV\nµJ": _mean("attention_energy_mj", 1e3)}
        columns["Paper\n%"] = _printed_accuracy
        columns |= {"Paper\nM": _printed("operations_millions"), f"Paper\n{unit}": _printed("energy_uj", per_mj / 1e3)}
        if self.grid == "attention":
            columns["Paper\nQKV M"] = _printed("attention_operations_millions")
            columns["Paper\nQKV µJ"] = _printed("attention_energy_uj")
        return columns

    def _accuracy(self, line: Line, which: str) -> str:
        """Mean ± deviation of the runs that have one."""
        spread = line.figure(f"{which}_{self.split}_accuracy")
        if spread is None:
            return "✗" if line.count("diverged") == len(line.cells) else _NOTHING
        return f"{100 * spread.mean:.2f}" + ("" if spread.std is None else f" ± {100 * spread.std:.2f}")

    def _sentences(self, lines: Sequence[Line]) -> list[str]:
        seeds = {cell.seed for line in lines for cell in line.cells}
        over = f"mean ± standard deviation over {len(seeds)} seeds" if len(seeds) > 1 else "with one seed"
        said = [
            f"Shares of the {self.split} split of {self.data_set} that are answered right, {over}; operations and "
            "energy of one sample, as the paper counts."
        ]
        if self.grid == "attention":
            said.append("QKV: the product of Q, K and V in one block.")
        models = {line.variant.paper.model for line in lines if line.variant.paper}
        if len(models) == 1:  # a size has its own
            said.append(f"The paper's figures are of {models.pop()}.")
        return [*said, f"table, picture: {self.files['csv']}, {self.files['png']}"]


def _runs(line: Line) -> str:
    """How many finished; ✗ for those that did not converge, as in the paper."""
    counts = {"": line.count("finished"), " ✗": line.count("diverged"), " failed": line.count("failed")}
    return ", ".join(f"{count}{word}" for word, count in counts.items() if count)


def _mean(name: str, scale: float) -> Callable[[Line], str]:
    def cell(line: Line) -> str:
        spread = line.figure(name)
        return _NOTHING if spread is None else _number(spread.mean * scale)

    return cell


def _printed(name: str, scale: float = 1.0) -> Callable[[Line], str]:
    def cell(line: Line) -> str:
        value = getattr(line.variant.paper, name, None)
        return _NOTHING if value is None else _number(value * scale)

    return cell


def _printed_accuracy(line: Line) -> str:
    paper = line.variant.paper
    if paper is None:
        return _NOTHING
    return "✗" if paper.accuracy_percent is None else f"{paper.accuracy_percent:.2f}"


def _number(value: float) -> str:
    """Three digits that count, or all of a larger number."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
