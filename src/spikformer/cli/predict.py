"""Class names of pictures or recordings, by trained weights.

Example: spikformer predict runs/photos cat.jpg dog.png
Example: spikformer predict net.engine holiday/ --csv holiday.csv
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro
from rich.table import Table

from spikformer.cli.console import cell, print_table, say
from spikformer.validation import SILENT

if TYPE_CHECKING:
    from spikformer.engine import Engine
    from spikformer.models import SpikingNetwork


@dataclass(frozen=True)
class Options:
    weights: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="WEIGHTS")]
    """A run folder, a .safetensors file of it, an .engine file of `compile`, or a shipped name (`models --weights`)."""
    files: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="FILE…")]
    """Pictures, or recordings for a model of event data; of a folder, all its files."""
    top: int = 3
    """How many classes to name, the likeliest first."""
    confidence: Annotated[float | Literal["card"] | None, tyro.conf.arg(metavar="FLOAT|card")] = None
    """Stop at the first time step at which the likeliest class has this probability; `card` takes the one that the
    weights' card stores (see anytime --store). By default, take all steps."""
    csv: Path | None = None
    """Write a row for each file to this CSV file, besides."""
    json: bool = False
    """Print JSON instead of a table."""


def run(options: Options) -> int:
    from spikformer.engine.anytime import wanted_confidence
    from spikformer.runs.trained import load_answering

    if not options.files:
        raise ValueError("predict needs at least one file or folder after the weights.")
    if options.top < 1:
        raise ValueError(f"--top must be at least 1, got {options.top}.")
    if options.csv is not None and not options.csv.parent.is_dir():  # before anything is answered
        raise FileNotFoundError(f"There is no folder {options.csv.parent} to write {options.csv.name} into.")
    if isinstance(options.confidence, float) and not 0 < options.confidence <= 1:
        raise ValueError(f"--confidence must be a probability above 0 and at most 1, got {options.confidence:g}.")
    model = load_answering(options.weights, prefer_engine=True)
    confidence = wanted_confidence(options.confidence, model.card)
    answers = [_answer(model, path, options.top, confidence) for path in _all_files(options.files)]
    if options.json:
        print(json.dumps(answers))
    else:
        _show(answers, options.top)
    if options.csv is not None:  # last, so that a file that cannot be written costs no answer
        _write_csv(answers, options.csv, options.top)
    return 1 if any("error" in answer for answer in answers) else 0


def _all_files(given: Sequence[Path]) -> list[Path]:
    from spikformer.runs.predict import list_files

    return [file for path in given for file in (list_files(path) if path.is_dir() else [path])]


def _answer(model: SpikingNetwork | Engine, path: Path, top: int, confidence: float | None) -> dict[str, Any]:
    """The likeliest classes of a file, none if no spike reaches the head, or why the file cannot be read."""
    from spikformer.runs.predict import predict

    try:
        (found,) = predict(model, path, confidence=confidence)
    except (ValueError, OSError) as error:
        return {"file": str(path), "error": str(error)}
    if found.silent:
        return {"file": str(path), "silent": True, "classes": []}
    classes = [{"class": name, "probability": share} for name, share in found.top(top)]
    steps = {} if confidence is None else {"steps": found.num_steps}
    return {"file": str(path), "classes": classes} | steps


def _write_csv(answers: list[dict[str, Any]], path: Path, top: int) -> None:
    """A row for each file: its classes and their probabilities, the likeliest first, and its error."""
    from spikformer.io import write_atomically

    columns = [name for number in range(1, top + 1) for name in (f"class_{number}", f"probability_{number}")]
    text = io.StringIO()
    writer = csv.DictWriter(text, ["file", *columns, "error"], restval="", lineterminator="\n")
    writer.writeheader()
    for answer in answers:
        row = {"file": answer["file"], "error": answer.get("error", "")}
        for number, each in enumerate(answer.get("classes", []), 1):
            row |= {f"class_{number}": each["class"], f"probability_{number}": f"{each['probability']:.6g}"}
        writer.writerow(row)
    # A file's name can be bytes that no encoding has; the other answers are worth keeping.
    write_atomically(path, text.getvalue().encode(errors="backslashreplace"))


def _show(answers: list[dict[str, Any]], top: int) -> None:
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("File")
    most = max((max(1, len(answer["classes"])) for answer in answers if "classes" in answer), default=0)
    for number in range(1, min(top, most) + 1):
        table.add_column(f"{number}.")
    anytime = any("steps" in answer for answer in answers)
    if anytime:
        table.add_column("Steps", justify="right")
    for answer in answers:
        if "error" not in answer:
            named = [f"{row['class']} {row['probability']:.1%}" for row in answer["classes"]] or ["no answer"]
            named += [""] * (min(top, most) - len(named)) if anytime else []
            steps = [str(answer.get("steps", "–"))] if anytime else []
            table.add_row(*map(cell, (answer["file"], *named, *steps)))
    if table.row_count:
        print_table(table)
    for answer in answers:
        if "error" in answer:
            say(answer["error"], stderr=True)
    silent, answered = (sum(word in answer for answer in answers) for word in ("silent", "classes"))
    if silent and silent == answered:
        say(SILENT)
    elif silent:
        say(f"{silent} of {answered} files have no answer: no spike reaches the head.")
