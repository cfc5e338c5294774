"""What an ablation is to consist of, and what of it is in its folder already.

ablation.json            what all cells share, besides the settings that each keeps
ablation.csv png svg     how it stands, written anew after every cell
VARIANT/seed_N/          a cell: the folder of a run, with log.txt and, once it has ended, result.json
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from spikformer.analysis.ablation import CellResult, Grid, Variant
from spikformer.cli.ablation.cells import Cell
from spikformer.disk import write_atomically
from spikformer.training.bounded import read_json
from spikformer.training.recipe import Recipe
from spikformer.vocabulary import did_you_mean


@dataclass(frozen=True)
class Plan:
    """A grid over a recipe, in a folder. Seeds may be added, whatever else was decided stays."""

    output: Path
    grid: Grid
    variants: Sequence[Variant]
    recipe: str
    settings: Recipe
    from_weights: Path | None

    def choose(self, seeds: Sequence[int], only: Sequence[str]) -> list[Cell]:
        """The cells of these seeds, one seed after the other, so that a first table comes early."""
        names = [variant.name for variant in self.variants]
        for word in only:
            if word not in names:
                hint = did_you_mean(word, names, f"choose from {', '.join(names)}.")
                raise ValueError(f"There is no variant {word!r} of {self.grid}; {hint}")
        rows = [variant for variant in self.variants if not only or variant.name in only]
        return [self._cell(row, seed) for seed in dict.fromkeys(seeds) for row in rows]

    def _cell(self, variant: Variant, seed: int) -> Cell:
        wanted = replace(self.settings, model=self.settings.model.override(**variant.overrides), seed=seed)
        return Cell(variant.name, seed, self.output / variant.name / f"seed_{seed}", self.recipe, wanted)

    def _there(self) -> list[Cell]:
        """Cells that have a folder, from this command or an earlier one."""
        found = [(row, path) for row in self.variants for path in (self.output / row.name).glob("seed_*")]
        seeds = [(row, path.name.removeprefix("seed_")) for row, path in found]
        return [self._cell(row, int(seed)) for row, seed in seeds if seed.isdecimal()]

    def check(self) -> None:
        """Refuse a folder whose cells would not be comparable with these."""
        path = self.output / "ablation.json"
        if path.exists():
            try:
                began = dict(read_json(path))
            except (OSError, TypeError, ValueError):
                raise ValueError(f"{path} is damaged; remove it, or choose another --output.") from None
            for name, value in self._common().items():
                if began.get(name) != value:
                    raise ValueError(
                        f"{self.output} was started with {name} {began.get(name)!r}, not {value!r}; "
                        "choose another --output."
                    )
        for cell in self._there():
            cell.check_settings()

    def begin(self) -> dict[Path, CellResult]:
        """Note what was decided, and read what has come out of it so far, by folder."""
        self.check()
        content = json.dumps(self._common(), indent=2) + "\n"
        write_atomically(self.output / "ablation.json", content.encode())
        return {cell.folder: result for cell in self._there() if (result := cell.result())}

    def _common(self) -> dict[str, Any]:
        start = None if self.from_weights is None else str(self.from_weights.absolute())
        return {"grid": self.grid, "recipe": self.recipe, "from": start}
