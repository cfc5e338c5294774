"""Say what pictures or recordings show, by trained weights.

Example: spikformer predict runs/photos/best.safetensors cat.jpg dog.png
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from rich.markup import escape
from rich.table import Table

from spikformer.cli.terminal import print_table, say
from spikformer.vocabulary import SILENT

if TYPE_CHECKING:
    from spikformer.engine import Engine
    from spikformer.models import Spikformer


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
    from spikformer.runs.trained import load_answering

    if not options.files:
        raise ValueError("predict needs at least one file after the weights.")
    if options.top < 1:
        raise ValueError(f"--top must be at least 1, got {options.top}.")
    model, about = load_answering(options.weights)
    answers = [_answer(model, about, path, options.top) for path in options.files]
    if options.json:
        print(json.dumps(answers))
    else:
        _show(answers, options.top)
    return 1 if any("error" in answer for answer in answers) else 0


def _answer(model: Spikformer | Engine, about: dict[str, Any], path: Path, top: int) -> dict[str, Any]:
    """The likeliest classes of a file, none if no spike reaches the head, or why the file cannot be read."""
    import torch

    from spikformer.data import read_sample
    from spikformer.data.dataset import prepare
    from spikformer.engine import Engine
    from spikformer.training import is_silent

    if path.is_dir():
        return {"file": str(path), "error": f"{path} is a folder; give the files in it, such as {path}/*.png."}
    try:
        sample = read_sample(path, model.config, about)
    except (ValueError, OSError) as error:
        return {"file": str(path), "error": str(error)}
    inputs = prepare(sample[None], events=about["events"], mean=about["mean"], std=about["std"])
    with torch.no_grad():
        taken = inputs if isinstance(model, Engine) else inputs.to(model.head.weight.dtype)
        readouts = torch.as_tensor(model.forward_steps(taken))
    if is_silent(readouts, torch.as_tensor(model.resting_readout())):
        return {"file": str(path), "silent": True, "classes": []}
    shares = readouts.mean(0)[0].softmax(0)
    likeliest = shares.topk(min(top, len(shares)))
    classes = [
        {"class": about["class_names"][index], "probability": share}
        for share, index in zip(likeliest.values.tolist(), likeliest.indices.tolist(), strict=True)
    ]
    return {"file": str(path), "classes": classes}


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
