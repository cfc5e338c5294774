"""Say what pictures or recordings show, by trained weights.

Example: spikformer predict runs/photos/best.safetensors cat.jpg dog.png
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from rich.markup import escape
from rich.table import Table

from spikformer.cli.terminal import print_table, say
from spikformer.vocabulary import SILENT

if TYPE_CHECKING:
    import numpy as np

    from spikformer.engine import Engine
    from spikformer.models import SpikingNetwork


@dataclass(frozen=True)
class Options:
    weights: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="WEIGHTS")]
    """A .safetensors file written by train, or an .engine file written by compile."""
    files: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="FILE…")]
    """Pictures, or recordings for a model of events."""
    top: int = 3
    """How many classes to name, the likeliest first."""
    json: bool = False
    """Print JSON instead of a table."""


def run(options: Options) -> int:
    from spikformer.cli.weights import load_answering

    if not options.files:
        raise ValueError("predict needs at least one file after the weights.")
    if options.top < 1:
        raise ValueError(f"--top must be at least 1, got {options.top}.")
    model = load_answering(options.weights)
    answers = [_answer(model, path, options.top) for path in options.files]
    if options.json:
        print(json.dumps(answers))
    else:
        _show(answers, options.top)
    return 1 if any("error" in answer for answer in answers) else 0


def _answer(model: SpikingNetwork | Engine, path: Path, top: int) -> dict[str, Any]:
    """The likeliest classes of a file, none if no spike reaches the head, or why the file cannot be read."""
    from spikformer.engine import Engine
    from spikformer.engine.predict import predict

    if path.is_dir():
        return {"file": str(path), "error": f"{path} is a folder; give the files in it, such as {path}/*.png."}
    try:
        if isinstance(model, Engine):
            (found,) = model.predict(path)
        else:
            (found,) = predict(partial(_forward_steps, model), _resting(model), model.card, path)
    except (ValueError, OSError) as error:
        return {"file": str(path), "error": str(error)}
    if found.silent:
        return {"file": str(path), "silent": True, "classes": []}
    classes = [{"class": name, "probability": share} for name, share in found.top(top)]
    return {"file": str(path), "classes": classes}


def _forward_steps(model: SpikingNetwork, inputs: np.ndarray) -> np.ndarray:
    import torch

    with torch.no_grad():
        return model.forward_steps(torch.from_numpy(inputs).to(model.like.dtype)).double().numpy()


def _resting(model: SpikingNetwork) -> np.ndarray:
    return model.resting_readout().detach().double().numpy()


def _show(answers: list[dict[str, Any]], top: int) -> None:
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("File")
    most = max((max(1, len(answer["classes"])) for answer in answers if "classes" in answer), default=0)
    for number in range(1, min(top, most) + 1):
        table.add_column(f"{number}.")
    for answer in answers:
        if "error" not in answer:
            named = [f"{row['class']} {row['probability']:.1%}" for row in answer["classes"]] or ["no answer"]
            table.add_row(*map(escape, (answer["file"], *named)))
    if table.row_count:
        print_table(table)
    for answer in answers:
        if "error" in answer:
            say(answer["error"], stderr=True)
    if any("silent" in answer for answer in answers):
        say(SILENT)
