"""List every model, with its size and what the paper reports of it.

Example: spikformer models "*cifar10"
Example: spikformer models --recipes
Example: spikformer models --weights
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Annotated, Any

import tyro

from spikformer.cli.console import plain_table, print_table


@dataclass(frozen=True)
class Options:
    pattern: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="[PATTERN]")] = "*"
    """Shell pattern that names must match."""
    recipes: bool = False
    """List recipes instead: what `train` and `ablate` take."""
    weights: bool = False
    """List trained networks that come with the package instead: every verb takes their names for weights."""
    json: bool = False
    """Print JSON instead of a table."""


def run(options: Options) -> int:
    from spikformer.presets import get_preset, list_models

    if options.recipes and options.weights:
        raise ValueError("--recipes and --weights are two lists; give one of them.")
    if options.recipes:
        return _list_recipes(options)
    if options.weights:
        return _list_weights(options)
    names = list_models(options.pattern)
    if not names:
        raise ValueError(f"No model matches {options.pattern!r}; `spikformer models` lists all.")
    rows: list[dict[str, Any]] = []
    for name in names:
        preset = get_preset(name)
        config, paper = preset.config, preset.paper
        rows.append(
            {
                "name": name,
                "parameters": config.num_parameters,
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
    table = plain_table()
    table.add_column("Model", no_wrap=True)
    for title in ("Params", "Image", "Tokens", "T", "Paper", "Energy"):
        table.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            row["name"],
            f"{row['parameters'] / 1e6:.2f} M" if row["parameters"] else "–",
            "×".join(map(str, row["image_size"] or "–")),
            str(row["num_tokens"] or "–"),
            str(row["time_steps"]),
            f"{row['paper_accuracy_percent']:.2f} %" if row["paper_accuracy_percent"] else "–",
            f"{row['paper_energy_mj']:.3f} mJ" if row["paper_energy_mj"] else "–",
        )
    print_table(table)
    return 0


def _list_recipes(options: Options) -> int:
    from spikformer.training.recipes import get_recipe, list_recipes, recipe_summary

    names = [name for name in list_recipes() if fnmatchcase(name, options.pattern)]
    if not names:
        raise ValueError(f"No recipe matches {options.pattern!r}; `spikformer models --recipes` lists all.")
    rows: list[dict[str, Any]] = []
    for name in names:
        recipe = get_recipe(name)
        sizes = {"epochs": recipe.total_epochs, "batch_size": recipe.batch_size}
        rows.append({"name": name, "data_set": recipe.data_set, **sizes, "summary": recipe_summary(name)})
    if options.json:
        print(json.dumps(rows))
        return 0
    table = plain_table()
    for title in ("Recipe", "Data set", "Epochs", "Batch", "About"):
        table.add_column(title, justify="right" if title in ("Epochs", "Batch") else "left", no_wrap=title != "About")
    for row in rows:
        table.add_row(*(str(value) for value in row.values()))
    print_table(table)
    return 0


def _list_weights(options: Options) -> int:
    from spikformer.runs.shipping import list_shipped

    shipped = list_shipped(options.pattern)
    if not shipped:
        raise ValueError(f"No network that comes with the package matches {options.pattern!r}.")
    if options.json:
        rows = ({"name": each.name, "bytes": each.num_bytes, **each.card.to_dict()} for each in shipped)
        print(json.dumps(list(rows)))
        return 0
    table = plain_table()
    for title in ("Weights", "Architecture", "Data set"):
        table.add_column(title, no_wrap=True)
    for title in ("Params", "T", "Accuracy", "Energy", "Engine", "Size"):
        table.add_column(title, justify="right", no_wrap=True)
    for each in shipped:
        found = {result.metric: result.value for result in each.card.results}
        table.add_row(
            each.name,
            each.card.architecture,
            each.card.data_set or "–",
            f"{(each.config.num_parameters or 0) / 1e6:.2f} M",
            str(each.config.time_steps),
            f"{found['accuracy']:.2%}" if "accuracy" in found else "–",
            f"{1e3 * found['paper_energy_mj']:.3g} µJ" if "paper_energy_mj" in found else "–",
            f"{found['engine_latency_ms']:.2f} ms" if "engine_latency_ms" in found else "–",
            f"{each.num_bytes / 1e6:.2f} MB",
        )
    print_table(table)
    return 0
