"""The text of the page: summaries of runs, rows of its tables, and how numbers and settings are written."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from spikformer.analysis.energy import CONVENTIONS
from spikformer.analysis.operations import ORDER_FORMULAS, Order
from spikformer.errors import SILENT
from spikformer.visualise.report.content import Report, ReportedRun

Bar = tuple[str, float, str]
"""A row of a bar list: its name, its share, and a remark."""


_ENERGY_UNITS = (("J", 1e3), ("mJ", 1.0), ("µJ", 1e-3), ("nJ", 1e-6), ("pJ", 1e-9))  # in millijoules
_COUNT_UNITS = (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3))
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


def run_summary(run: ReportedRun) -> str:
    """A summary of the run."""
    by_paper, twin = run.energy.energy_mj("paper"), run.energy.twin_energy_mj
    steps = "one time step" if run.time_steps == 1 else f"{run.time_steps} time steps"
    trained = f", after {duration(run.seconds)} of training" if run.seconds is not None else ""
    spends = (
        f"One inference costs {energy(by_paper)} by the paper's count, and {energy(twin)} in its ANN twin."
        if run.spikes
        else f"It does not spike; one inference costs {energy(by_paper)}."
    )
    named = f"{run.network}, by {run.recipe}" if run.network else run.recipe
    return (
        f"{named} on {run.data} classifies {percent(run.shown.accuracy)} of {run.evaluation.num_samples:,} "
        f"{run.split} samples correctly{_other(run)}, in {steps} with {large_number(run.num_parameters)} "
        f"parameters{trained}. {spends}"
    )


def _other(run: ReportedRun) -> str:
    if run.best is None:
        return " after its last epoch"
    if run.best.epoch == run.last.epoch:
        return " after its last epoch, which is also best on validation"
    return f" in the epoch that was best on validation, and on {percent(run.last.accuracy)} after the last"


def warning(run: ReportedRun) -> str | None:
    """What the reader must know before anything else: a silent network."""
    return SILENT if run.evaluation.silent else None


def progress(run: ReportedRun) -> str | None:
    """A note on a run that has not finished."""
    if run.finished:
        return None
    return (
        f"This run has finished {len(run.history)} of {run.planned_epochs} epochs: it is still training, or was "
        "stopped. All figures are of its latest weights."
    )


def confusions(run: ReportedRun, most: int = 3) -> list[tuple[str, str, int]]:
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


def class_bars(run: ReportedRun) -> list[Bar]:
    """Every class that has samples, in order."""
    rows = zip(run.class_names, run.evaluation.by_class, run.evaluation.confusion, strict=True)
    return [
        (name, share, f"{row[label]:,} of {sum(row):,}")
        for label, (name, share, row) in enumerate(rows)
        if share is not None
    ]


def extremes(run: ReportedRun, most: int = 3) -> str:
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


def step_bars(run: ReportedRun) -> list[Bar]:
    """Every time step, and in percentage points what it adds to the one before."""
    shares = run.evaluation.after_steps
    gains = ["", *(f"{100 * (later - sooner):+.2f}" for sooner, later in pairwise(shares))]
    return [(f"step {step}", share, gain) for step, (share, gain) in enumerate(zip(shares, gains, strict=True), 1)]


def map_legend(run: ReportedRun) -> str:
    """What is bright in the maps of a run's samples, block by block."""
    kinds = {block.shown for sample in run.samples for block in sample.attention}
    sentences = ["Means over heads, each map scaled to its own maximum."]
    if "attention" in kinds:
        sentences.append("Attention: bright where other tokens look at a token, black where none does.")
    if "mask" in kinds:
        sentences.append("Mask: bright where the spikes of a mask over tokens let a token pass, black where none does.")
    for operand in sorted(kinds - {"attention", "mask"}):
        channels = f"the share of a token's channels that fire in {operand[-1]} and pass a mask over channels"
        sentences.append(f"M{operand[1:]}: {channels}.")
    return " ".join(sentences)


def configuration(run: ReportedRun) -> list[tuple[str, Mapping[str, Any]]]:
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


def table_energy(run: ReportedRun) -> Callable[[float], str]:
    """How to write the energies of a run's tables, which are to be compared."""
    spent = [run.energy.energy_mj(convention) for convention in CONVENTIONS]
    return energy_in(max(*spent, run.energy.twin_energy_mj))


def layer_unit(run: ReportedRun) -> tuple[str, float]:
    """A unit for the energy of layers, and its picojoules: small enough that frugal layers have digits, too."""
    audit = run.energy
    spent = [audit.energy_pj(layer.operations(kind)) for layer in audit.layers for kind in CONVENTIONS]
    unit, size = energy_unit(max(spent) / 100 / _PJ_IN_MJ)
    return unit, size * _PJ_IN_MJ


def order_title(order: Order) -> str:
    return ORDER_FORMULAS[order]


def percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.2%}"


def large_number(number: float) -> str:
    """A count with three digits and a unit: 9.32 M."""
    for unit, size in _COUNT_UNITS:
        if number >= 0.9995 * size:
            return f"{three_digits(number / size)} {unit}"
    return f"{number:.0f}"


def energy(millijoules: float) -> str:
    return energy_in(millijoules)(millijoules)


def energy_in(largest_millijoules: float) -> Callable[[float], str]:
    """How to write energies of a table, all in the unit that suits the largest of them."""
    unit, size = energy_unit(largest_millijoules)
    return lambda millijoules: f"{three_digits(millijoules / size)} {unit}"


def energy_unit(millijoules: float) -> tuple[str, float]:
    """The unit that suits an energy, and its millijoules."""
    fitting = (each for each in _ENERGY_UNITS if millijoules >= 0.9995 * each[1])
    return next(fitting, _ENERGY_UNITS[-1])


def duration(seconds: float | None) -> str:
    if seconds is None:
        return "–"
    whole = round(seconds)
    hours, minutes = whole // 3600, whole // 60 % 60
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {whole % 60} s" if minutes else f"{whole} s"


def times(ratio: float) -> str:
    """How many times less, or more."""
    return f"{three_digits(ratio)}× less" if ratio >= 1 else f"{three_digits(1 / ratio)}× more" if ratio > 0 else "–"


def setting(value: Any) -> str:
    """A value of a recipe or an environment, as people write it."""
    match value:
        case None:
            return "none"
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:g}"
        case str():
            return value
        case Mapping():
            return ", ".join(f"{name} {setting(inner)}" for name, inner in value.items()) or "none"
        case Sequence():
            return ", ".join(map(setting, value)) or "none"
    return str(value)


def command(words: Any) -> str:
    """What was typed, so that it can be typed again."""
    return shlex.join(map(str, words)) if isinstance(words, Sequence) and not isinstance(words, str) else str(words)


def three_digits(number: float) -> str:
    if number == 0:
        return "0"
    if abs(number) >= 99.95:
        return f"{number:,.0f}"
    return f"{number:.1f}" if abs(number) >= 9.995 else f"{number:.2f}"
