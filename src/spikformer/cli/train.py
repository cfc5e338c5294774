"""Train a model by a recipe. Any setting can be overridden; --help after a recipe's name shows its own defaults.

Example: spikformer train
Example: spikformer train spikformer_4_384_cifar10 --data DIR --epochs 100 --model.time-steps 2
Example: spikformer train --resume --output runs/spikformer_tiny_digits
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any

import torch
import tyro
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from spikformer.cli.console import Terminal, cell, one_line, parse_options, plain_table, print_table, say
from spikformer.errors import SILENT, FieldError
from spikformer.runs.folder import Run
from spikformer.runs.process import keep_freed_memory, resident_bytes, stop_on_signal
from spikformer.runs.progress import Event, Finished, Started, describe_event, event_to_dict
from spikformer.runs.train import train
from spikformer.training import DivergedError, Epoch, Iteration
from spikformer.training.recipe import Recipe, check_settings
from spikformer.training.recipes import DEFAULT, get_recipe
from spikformer.validation import Accelerator


@dataclass(frozen=True)
class Options:
    recipe: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="[RECIPE]")] = DEFAULT
    """A recipe; most are named after their model."""
    data: Path | None = None
    """Folder or archive with the data set's files; not needed for embedded sets."""
    output: Path | None = None
    """Run folder; runs/RECIPE by default."""
    from_weights: Annotated[str | None, tyro.conf.arg(name="from")] = None
    """Start from these weights, as far as they fit."""
    teacher: str | None = None
    """Weights, or a run folder, to learn from beside the labels; --distillation weighs it, 0.5 by default."""
    resume: bool = False
    """Continue the run in --output, with its settings; --epochs may be more than they were."""
    overwrite: bool = False
    """Replace the run in --output."""
    workers: int = 0
    """Processes that read ahead, for each device; 0 reads in the training process."""
    strict: bool = False
    """Stop at a file that cannot be read, instead of skipping it."""
    accelerator: Accelerator = "auto"
    """Where to train; auto uses GPUs if there are any."""
    devices: int | None = None
    """Processes on this machine, one for each GPU; all GPUs by default, one process on a CPU."""
    nodes: int = 1
    """Machines; start the command on each, or use torchrun."""
    save_minutes: float = 10.0
    """Save the state this often, besides after every epoch."""
    threads: int | None = None
    """Of PyTorch, in each process; by default one for each core. On a busy machine 1 may be fastest."""
    json: bool = False
    """Print a JSON object for every epoch and other event, and the results last, one to a line."""
    settings: Annotated[Recipe, tyro.conf.arg(name="")] = field(default_factory=Recipe)


@dataclass(frozen=True)
class Command:
    """Options as they were parsed, and what of the settings differs from the recipe's, or from the resumed run's."""

    options: Options
    recipe: str | None
    """None if it was not named."""
    changes: dict[str, Any]


def parse(arguments: list[str]) -> Command:
    """The recipe's name comes first, so that its settings are the defaults of the rest; of a resumed run, its own."""
    name = arguments[0] if arguments and not arguments[0].startswith("-") else None
    default = get_recipe(name or DEFAULT)
    options = _parsed(arguments, name or DEFAULT, default)
    if options.recipe != (name or DEFAULT):
        raise ValueError(f"The recipe's name comes first: spikformer train {options.recipe} …, then its options.")
    if options.resume:
        run = Run(options.output or Path("runs") / options.recipe)
        run.check_saved()
        default = run.recipe
        options = _parsed(arguments, name or DEFAULT, default)
    return Command(options, name, options.settings.changes_from(default))


def _parsed(arguments: list[str], name: str, settings: Recipe) -> Options:
    check_settings("model", _given(arguments, "--model."), settings.model)
    arguments = _with_both_sides(arguments)
    default = Options(recipe=name, settings=settings)
    options: Options = parse_options(Options, "train", __doc__, arguments, default=default)
    return options


def _given(arguments: list[str], prefix: str) -> Iterator[str]:
    """Names of the settings under a prefix that are given; of `--model.no-detach-reset`, detach_reset."""
    for word in arguments:
        if word.startswith(prefix):
            name = word.removeprefix(prefix).split("=")[0].replace("-", "_")
            yield name.removeprefix("no_")


def _with_both_sides(arguments: list[str]) -> list[str]:
    """`--model.image-size 32` as 32 32, which its type cannot say."""
    option = "--model.image-size"
    arguments = [part for each in arguments for part in (each.split("=") if each.startswith(f"{option}=") else [each])]
    if option not in arguments:
        return arguments
    start = arguments.index(option) + 1
    end = next((place for place in range(start, len(arguments)) if arguments[place].startswith("--")), len(arguments))
    sides = arguments[start:end]
    if sides != ["None"] and not (len(sides) in (1, 2) and all(side.isdecimal() for side in sides)):
        raise FieldError(
            "image_size", f"{option} must be an integer, two (height and width) or None, got {' '.join(sides)!r}."
        )
    return [*arguments[:start], *(sides * 2 if sides != ["None"] and len(sides) == 1 else sides), *arguments[end:]]


def run(command: Command) -> int:
    options = command.options
    keep_freed_memory()
    reported: list[Event] = []

    def report(event: Event) -> None:
        """Called on rank 0 alone."""
        if isinstance(event, Started | Finished):
            reported.append(event)
        if line is not None:
            line.show(event)
        elif not isinstance(event, Iteration):
            print(json.dumps(event_to_dict(event)), flush=True)

    try:
        with stop_on_signal() as stop, nullcontext() if options.json else LiveLine() as line:
            finished = train(
                command.recipe,
                data=options.data,
                output=options.output,
                from_weights=options.from_weights,
                teacher=options.teacher,
                resume=options.resume,
                overwrite=options.overwrite,
                workers=options.workers,
                strict=options.strict,
                accelerator=options.accelerator,
                devices=options.devices,
                nodes=options.nodes,
                save_minutes=options.save_minutes,
                threads=options.threads,
                on_event=report,
                stop=stop,
                **command.changes,
            )
    except DivergedError as error:
        if reported:
            say(str(error), stderr=True)
        return 1
    end = reported[-1] if reported else None
    if isinstance(end, Finished) and not options.json:
        _print_results(finished, end)
    return 0 if finished.results is not None else 1


def _print_results(run: Run, end: Finished) -> None:
    """Last and best epoch side by side."""
    results = end.results
    table = plain_table()
    for title in ("", "Epoch", "Train loss", "Validation", "Test", "Weights"):
        table.add_column(title, justify="left" if title in ("", "Weights") else "right")
    for which, kept, path in (("last", results.last, run.last), ("best", results.best, run.best)):
        if kept is not None:
            shares = (kept.validation_accuracy, kept.test_accuracy)
            shown = ["–" if share is None else f"{share:.2%}" for share in shares]
            table.add_row(which, str(kept.epoch), f"{kept.train_loss:.3f}", *shown, cell(str(path)))
    print_table(table)
    if results.silent:
        say(SILENT)
    if count := results.unreadable:
        reads = f"{count} {'read' if count == 1 else 'reads'} of samples failed and used another sample instead"
        say(f"{reads}; `spikformer data check` lists the files.")
    say(f"{results.seconds:.0f} s of training in {run.path}")


class LiveLine:
    """Epoch, loss, accuracy, samples a second, time to go and memory, in one line; on stderr."""

    def __init__(self) -> None:
        self._console = Terminal(stderr=True)
        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[figures]}"),
            TimeRemainingColumn(),
        )
        live = self._console.is_terminal
        self._bars = Progress(*columns, console=self._console, transient=True, disable=not live)
        self._task = self._bars.add_task("Training", total=None, figures="")
        self._total_epochs = 0
        self._device = "cpu"

    def __enter__(self) -> LiveLine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def show(self, event: Event) -> None:
        """Draw an iteration; write everything else down, but epochs only where nothing can be redrawn."""
        if isinstance(event, Iteration):
            figures = (
                f"loss {event.mean_loss:.3f}  accuracy {event.mean_accuracy:.1%}  "
                f"{event.samples_per_second:.0f} samples/s  {_memory(self._device)}"
            )
            title = f"Epoch {event.epoch} of {self._total_epochs}"
            self._bars.update(self._task, completed=event.number, description=title, figures=figures)
        elif not isinstance(event, Epoch) or not self._console.is_terminal:
            for line in describe_event(event):
                self._console.print(one_line(line), highlight=False, soft_wrap=True, markup=False)
        if isinstance(event, Started):
            self._total_epochs, self._device = event.total_epochs, event.device
            total = event.total_epochs * event.iterations_per_epoch
            self._bars.update(self._task, total=total, completed=event.iteration)
            self._bars.start()


def _memory(device: str) -> str:
    used = torch.cuda.max_memory_allocated() if device == "cuda" else resident_bytes()
    return f"{used / 1e9:.1f} GB"
