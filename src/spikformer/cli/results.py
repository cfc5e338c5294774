"""A training run that has ended: how right its last and its best epoch are, as figures, a table and curves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.table import Table

from spikformer.cli.terminal import print_table, say
from spikformer.vocabulary import SILENT

if TYPE_CHECKING:
    from spikformer.training import RunFolder, Trainer


def measure_results(trainer: Trainer, folder: RunFolder) -> dict[str, Any]:
    """The last epoch, and the one that validation chose, both on the test split."""
    from spikformer.models import load

    progress = trainer.progress
    results: dict[str, Any] = {
        "run": str(folder.path),
        "seconds": progress.seconds,
        "unreadable": progress.unreadable,
        "last": {"weights": str(folder.last), "epoch": progress.epoch, **_figures(progress.history[-1])},
    }
    results["silent"] = trainer.silent
    trainer.fabric.barrier()
    if trainer.data.test is not None:
        found = trainer.evaluate("test")
        results["last"]["test_accuracy"], results["silent"] = found.top1, found.silent
    if progress.best_epoch is not None:
        chosen = progress.history[progress.best_epoch - 1]
        results["best"] = {"weights": str(folder.best), "epoch": progress.best_epoch, **_figures(chosen)}
        if trainer.data.test is not None:
            best = load(folder.best).to(trainer.fabric.device)
            results["best"]["test_accuracy"] = trainer.evaluate("test", best).top1
    return results


def _figures(row: dict[str, float]) -> dict[str, float]:
    names = ("train_loss", "train_accuracy", "validation_accuracy")
    return {name: row[name] for name in names if name in row}


def draw_progress(trainer: Trainer, folder: RunFolder) -> None:
    """The curves so far, if an epoch has ended."""
    from spikformer.visualise.accuracy import draw_curves

    if trainer.fabric.is_global_zero and trainer.progress.history:
        draw_curves({folder.path.name: trainer.progress.history}, folder.curves)


def show_results(results: dict[str, Any]) -> None:
    """Last and best epoch side by side."""
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    for title in ("", "Epoch", "Train loss", "Validation", "Test", "Weights"):
        table.add_column(title, justify="left" if title in ("", "Weights") else "right")
    for which in ("last", "best"):
        if which in results:
            row = results[which]
            shares = (row.get(name) for name in ("validation_accuracy", "test_accuracy"))
            shown = ["–" if share is None else f"{share:.2%}" for share in shares]
            table.add_row(which, str(row["epoch"]), f"{row['train_loss']:.3f}", *shown, escape(row["weights"]))
    print_table(table)
    if results["silent"]:
        say(SILENT)
    if results["unreadable"]:
        count = results["unreadable"]
        reads = f"{count} {'read' if count == 1 else 'reads'} of samples failed and used another sample instead"
        say(f"{reads}; `spikformer data check` lists the files.")
    say(f"{results['seconds']:.0f} s of training in {results['run']}")
