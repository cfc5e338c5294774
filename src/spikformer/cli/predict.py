"""Class names of pictures or recordings, by trained weights.

Example: spikformer predict runs/photos cat.jpg dog.png
Example: spikformer predict net.engine holiday/ --csv holiday.csv
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from spikformer.cli.console import bar, cell, check_least, plain_table, print_table, say
from spikformer.errors import SILENT

if TYPE_CHECKING:
    from spikformer.runs.predict import FileAnswer


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
    from spikformer.runs.predict import answer_files, expand_folders, write_csv
    from spikformer.runs.trained import load_answering

    if not options.files:
        raise ValueError("predict needs at least one file or folder after the weights.")
    check_least(options, top=1)
    if options.csv is not None and not options.csv.parent.is_dir():  # before anything is answered
        raise FileNotFoundError(f"There is no folder {options.csv.parent} to write {options.csv.name} into.")
    if isinstance(options.confidence, float) and not 0 < options.confidence <= 1:
        raise ValueError(f"--confidence must be a probability above 0 and at most 1, got {options.confidence:g}.")
    model = load_answering(options.weights, prefer_engine=True)
    confidence = wanted_confidence(options.confidence, model.card)
    files = expand_folders(options.files)
    with bar("Predicting", len(files), enabled=not options.json) as advance:
        answers = answer_files(model, files, options.top, confidence, advance)
    if options.json:
        print(json.dumps([answer.to_dict() for answer in answers]))
    else:
        _show(answers, options.top)
    if options.csv is not None:  # last, so that a file that cannot be written costs no answer
        write_csv(answers, options.csv, options.top)
        if not options.json:
            say(f"Wrote {options.csv}")
    return 1 if any(answer.error for answer in answers) else 0


def _show(answers: list[FileAnswer], top: int) -> None:
    table = plain_table()
    table.add_column("File")
    answered = [answer for answer in answers if answer.error is None]
    num_columns = min(top, max((max(1, len(answer.classes)) for answer in answered), default=0))
    for number in range(1, num_columns + 1):
        table.add_column(f"{number}.")
    anytime = any(answer.num_steps is not None for answer in answered)
    if anytime:
        table.add_column("Steps", justify="right")
    for answer in answered:
        named = [f"{name} {share:.1%}" for name, share in answer.classes] or ["no answer"]
        if anytime:
            named += [""] * (num_columns - len(named)) + [str(answer.num_steps or "–")]
        table.add_row(*map(cell, (str(answer.file), *named)))
    if table.row_count:
        print_table(table)
    for answer in answers:
        if answer.error is not None:
            say(answer.error, stderr=True)
    silent = sum(answer.silent for answer in answered)
    if silent and silent == len(answered):
        say(SILENT)
    elif silent:
        say(f"{silent} of {len(answered)} files have no answer: no spike reaches the head.")
