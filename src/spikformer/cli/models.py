"""List every model, with its size and what the paper reports of it.

Example: spikformer models "*cifar10"
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.table import Table


@dataclass(frozen=True)
class Options:
    pattern: Annotated[str, tyro.conf.Positional] = "*"
    """Shell pattern that names must match."""
    json: bool = False
    """Print JSON instead of a table."""


def run(options: Options) -> int:
    import torch

    from spikformer.models import Spikformer
    from spikformer.presets import get_preset, list_models

    names = list_models(options.pattern)
    if not names:
        raise ValueError(f"No model matches {options.pattern!r}; `spikformer models` lists all.")
    rows: list[dict[str, Any]] = []
    for name in names:
        preset = get_preset(name)
        config, paper = preset.config, preset.paper
        with torch.device("meta"):
            parameters = sum(parameter.numel() for parameter in Spikformer(config).parameters())
        rows.append(
            {
                "name": name,
                "parameters": parameters,
                "image_size": config.image_size,
                "num_tokens": config.num_tokens,
                "time_steps": config.time_steps,
                "num_classes": config.num_classes,
                "paper_accuracy_percent": paper and paper.accuracy_percent,
                "paper_energy_mj": paper and paper.energy_mj,
            }
        )
    if options.json:
        print(json.dumps(rows))
        return 0
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("Model", no_wrap=True)
    for title in ("Params", "Image", "Tokens", "T", "Paper", "Energy"):
        table.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            row["name"],
            f"{row['parameters'] / 1e6:.2f} M",
            "×".join(map(str, row["image_size"])),
            str(row["num_tokens"]),
            str(row["time_steps"]),
            f"{row['paper_accuracy_percent']:.2f} %" if row["paper_accuracy_percent"] else "–",
            f"{row['paper_energy_mj']:.3f} mJ" if row["paper_energy_mj"] else "–",
        )
    Console().print(table)
    return 0
