"""The text of the page: summaries of runs, and rows of its tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, get_args

from spikformer.analysis.conventions import ORDER_FORMULAS, Convention, Order
from spikformer.messages import SILENT
from spikformer.visualise.report.content import Report, Run
from spikformer.visualise.report.numbers import count, duration, energy, energy_in, energy_unit, percent, setting

Bar = tuple[str, float, str]
"""A row of a bar list: its name, its share, and a remark."""

CONVENTIONS: tuple[Convention, ...] = get_args(Convention)

_PJ_IN_MJ = 1e9
_NAMED_RUNS = 3  # in a title


def title(report: Report) -> str:
    names = [run.name for run in report.runs]
    return " · ".join(names) if len(names) <= _NAMED_RUNS else f"{len(names)} runs"


def overview(report: Report) -> str:
    """A summary of several runs; only runs on the same samples are ranked."""
    runs = report.runs
    if len({(run.data, run.split, run.evaluation.num_samples) for run in runs}) > 1:
        return f"{len(runs)} runs, not all on the same data: side by side, then each in turn."
    right = max(runs, key=lambda run: run.shown.accuracy)
    frugal = min(runs, key=lambda run: run.energy.energy_mj("paper"))
    return (
        f"{len(runs)} runs on {right.data}: {right.name} is the most accurate, {percent(right.shown.accuracy)} of "
        f"{right.evaluation.num_samples:,} {right.split} samples, and {frugal.name} takes the least energy by the "
        f"paper's count, {energy(frugal.energy.energy_mj('paper'))} per inference."
    )


def summary(run: Run) -> str:
    """A summary of the run."""
    by_paper, twin = run.energy.energy_mj("paper"), run.energy.twin_energy_mj
    steps = "one time step" if run.time_steps == 1 else f"{run.time_steps} time steps"
    trained = f", after {duration(run.seconds)} of training" if run.seconds is not None else ""
    spends = (
        f"One inference costs {energy(by_paper)} by the paper's count, and {energy(twin)} in its ANN twin."
        if run.spikes
        else f"It does not spike; one inference costs {energy(by_paper)}."
    )
    return (
        f"{run.recipe} on {run.data} classifies {percent(run.shown.accuracy)} of {run.evaluation.num_samples:,} "
        f"{run.split} samples correctly{_other(run)}, in {steps} with {count(run.num_parameters)} parameters{trained}. "
        f"{spends}"
    )


def _other(run: Run) -> str:
    if run.best is None:
        return " after its last epoch"
    if run.best.epoch == run.last.epoch:
        return " after its last epoch, which is also best on validation"
    return f" in the epoch that was best on validation, and on {percent(run.last.accuracy)} after the last"


def warning(run: Run) -> str | None:
    """What the reader must know before anything else: a silent network."""
    return SILENT if run.evaluation.silent else None


def progress(run: Run) -> str | None:
    """A note on a run that has not finished."""
    if run.finished:
        return None
    return (
        f"This run has finished {len(run.history)} of {run.planned_epochs} epochs: it is still training, or was "
        "stopped. All figures are of its latest weights."
    )


def confusions(run: Run, most: int = 3) -> list[tuple[str, str, int]]:
    """The most frequent confusions: class, answer, number of samples."""
    names = run.class_names
    wrong = [
        (number, label, answer)
        for label, row in enumerate(run.evaluation.confusion)
        for answer, number in enumerate(row)
        if number and answer != label
    ]
    wrong.sort(key=lambda each: (-each[0], each[1], each[2]))
    return [(names[label], names[answer], number) for number, label, answer in wrong[:most]]


def class_bars(run: Run) -> list[Bar]:
    """Every class that has samples, in order."""
    rows = zip(run.class_names, run.evaluation.by_class, run.evaluation.confusion, strict=True)
    return [
        (name, share, f"{row[label]:,} of {sum(row):,}")
        for label, (name, share, row) in enumerate(rows)
        if share is not None
    ]


def extremes(run: Run, most: int = 3) -> str:
    """The best and the worst classes."""
    bars = class_bars(run)
    shares = [share for _, share, _ in bars]

    def named(wanted: float) -> str:
        names = [name for name, share, _ in bars if share == wanted]
        more = f" and {len(names) - most} more" if len(names) > most else ""
        return f"{', '.join(names[:most])}{more} ({percent(wanted)})"

    if len(set(shares)) < 2:
        return "All classes have the same accuracy."
    return f"Best: {named(max(shares))}. Worst: {named(min(shares))}."


def step_bars(run: Run) -> list[Bar]:
    """Every time step, and in percentage points what it adds to the one before."""
    shares = run.evaluation.after_steps
    gains = ["", *(f"{100 * (later - sooner):+.2f}" for sooner, later in pairwise(shares))]
    return [(f"step {step}", share, gain) for step, (share, gain) in enumerate(zip(shares, gains, strict=True), 1)]


def configuration(run: Run) -> list[tuple[str, Mapping[str, Any]]]:
    """Tables of settings, by their titles."""
    settings = dict(run.settings)
    inner = {name: settings.pop(name, {}) for name in ("model", "augmentation")}
    environment = {name: value for name, value in run.environment.items() if name != "command"}
    return [
        ("Recipe", {"recipe": run.recipe, **settings}),
        ("Model", inner["model"]),
        ("Augmentation", inner["augmentation"]),
        ("Environment", environment),
    ]


def differences(report: Report) -> list[tuple[str, list[str]]]:
    """Settings that are not the same in all runs, each with a value for every run."""
    flat = [_flat(run.settings) for run in report.runs]
    names = dict.fromkeys(name for settings in flat for name in settings)
    rows = [(name, [settings.get(name, "–") for settings in flat]) for name in names]
    return [(name, values) for name, values in rows if len(set(values)) > 1]


def _flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Settings as they are written, with those inside others under both names: "model, depth"."""
    flat: dict[str, str] = {}
    for name, value in settings.items():
        flat |= _flat(value, f"{name}, ") if isinstance(value, Mapping) else {prefix + name: setting(value)}
    return flat


def table_energy(run: Run) -> Callable[[float], str]:
    """How to write the energies of a run's tables, which are to be compared."""
    spent = [run.energy.energy_mj(convention) for convention in CONVENTIONS]
    return energy_in(max(*spent, run.energy.twin_energy_mj))


def layer_unit(run: Run) -> tuple[str, float]:
    """A unit for the energy of layers, and its picojoules: small enough that frugal layers have digits, too."""
    audit = run.energy
    spent = [audit.energy_pj(layer.operations(kind)) for layer in audit.layers for kind in CONVENTIONS]
    unit, size = energy_unit(max(spent) / 100 / _PJ_IN_MJ)
    return unit, size * _PJ_IN_MJ


def order_title(order: Order) -> str:
    return ORDER_FORMULAS[order]
