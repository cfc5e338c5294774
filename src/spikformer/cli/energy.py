"""What one inference costs, layer by layer, by every convention in use, beside the ANN twin.

An estimate by operation counts on real samples, as all published figures are; docs/energy.md explains the conventions.

Example: spikformer energy runs/spikformer_tiny_digits
Example: spikformer energy best.safetensors --data DIR --memory
Example: spikformer energy --published
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from rich.table import Table

from spikformer.cli.console import Measured, bar, plain_table, print_table, say
from spikformer.paper import AC_PJ, MAC_PJ

if TYPE_CHECKING:
    from spikformer.analysis.energy import EnergyReport, FirstConv

_FIRST_CONV: dict[FirstConv, str] = {"every_step": "at every step", "once": "once"}


@dataclass(frozen=True)
class Options(Measured):
    weights: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="[WEIGHTS]")] = None
    """A run folder, weights of it, such as runs/NAME/best.safetensors, or a shipped name (`models --weights`)."""
    mac_pj: float = MAC_PJ
    """Picojoules of a multiply-accumulate, by default in 32-bit floats at 45 nm."""
    ac_pj: float = AC_PJ
    """Picojoules of an accumulate."""
    memory: bool = False
    """Add what moving weights and membranes costs."""
    weight_pj: float = 10.0
    """Picojoules to read a weight, with --memory; by default 32 bits from 32 KB at 45 nm."""
    membrane_pj: float = 10.0
    """Picojoules to read or write a membrane, with --memory."""
    published: bool = False
    """Instead of weights, show the paper's own figures and what comes out when they are counted again."""
    json: bool = False
    """Print JSON instead of tables."""


def run(options: Options) -> int:
    if options.published:
        return _show_published(options)
    from spikformer.analysis.energy import Constants
    from spikformer.runs.measure import measure_runtimes

    if options.weights is None:
        raise ValueError("energy needs a run folder or weights, such as runs/spikformer_tiny_digits, or --published.")
    constants = Constants(options.mac_pj, options.ac_pj, options.weight_pj, options.membrane_pj)
    model, data = options.open(options.weights)
    count = min(options.max_samples, len(data.split(options.split)))
    with bar("Measuring", count, enabled=not options.json) as advance:
        report, engine = measure_runtimes(model, options.batches(model, data), constants, advance)
    if options.json:
        extra = {"engine": _engine(engine)} | ({"memory": _memory(report)} if options.memory else {})
        print(json.dumps(report.to_dict() | extra))
        return 0
    print_table(_layer_table(report))
    print()
    print_table(_total_table(report, memory=options.memory))
    notes = [
        f"{report.num_samples} samples of {data.name}, {options.split}, T = {report.time_steps}; "
        f"{constants.mac_pj:g} pJ a multiply-accumulate, {constants.ac_pj:g} pJ an accumulate. Estimates by operation "
        "counts: no chip was measured.",
    ]
    if report.attention_order:
        notes.append(_order_note(report, engine))
    if options.memory:
        notes.append(
            f"Memory: {constants.weight_pj:g} pJ for the weight of every operation, {constants.membrane_pj:g} pJ to "
            "read and again to write a membrane at every step, nothing reused."
        )
    for note in notes:
        say(note)
    return 0


def _layer_table(report: EnergyReport) -> Table:
    """Energy in nanojoules, which suits a layer."""
    from spikformer.analysis.energy import CONVENTIONS

    table = plain_table()
    table.add_column("Layer", no_wrap=True)
    for title in ("MACs a step", "Mean input", "Not zero", "Input", *(f"{name} nJ" for name in CONVENTIONS)):
        table.add_column(title, justify="right")
    for layer in report.layers:
        energies = (report.energy_pj(layer.operations(name)) / 1e3 for name in CONVENTIONS)
        table.add_row(
            layer.name,
            f"{layer.macs:,}",
            f"{layer.mean_input:.3f}",
            f"{layer.density:.1%}",
            "spikes" if layer.binary else "numbers",
            *(f"{energy:,.1f}" for energy in energies),
        )
    return table


def _total_table(report: EnergyReport, *, memory: bool) -> Table:
    from spikformer.analysis.energy import CONVENTIONS

    table = plain_table()
    table.add_column("Convention")
    for title in ("First conv", "MACs", "ACs", "Energy µJ", "ANN/SNN energy", *(["with memory µJ"] if memory else [])):
        table.add_column(title, justify="right")
    for name in CONVENTIONS:
        for first_conv, when in _FIRST_CONV.items():
            operations, energy = report.operations(name, first_conv), report.energy_mj(name, first_conv)
            moved = [f"{1e3 * (energy + report.memory_mj(name, first_conv)):,.3f}"] if memory else []
            ratio = f"{report.twin_energy_mj / energy:.2f}" if energy else "–"
            table.add_row(
                name, when, f"{operations.macs:,.0f}", f"{operations.acs:,.0f}", f"{1e3 * energy:,.3f}", ratio, *moved
            )
    moved = [f"{1e3 * (report.twin_energy_mj + report.twin_memory_mj):,.3f}"] if memory else []
    table.add_row(
        "ANN twin", "once", f"{report.twin_macs:,}", "0", f"{1e3 * report.twin_energy_mj:,.3f}", "1.00", *moved
    )
    return table


def _order_note(report: EnergyReport, engine: EnergyReport) -> str:
    """Which order of Q Kᵀ V is counted, and what the compiled engine's would cost where it is the other."""
    from spikformer.analysis.energy import CONVENTIONS
    from spikformer.analysis.operations import ORDER_FORMULAS

    assert report.attention_order is not None
    assert engine.attention_order is not None
    note = f"Attention is counted as {ORDER_FORMULAS[report.attention_order]}, the order PyTorch takes at this size"
    spiking = all(layer.binary for layer in report.layers if layer.kind == "attention")
    if not spiking or engine.attention_order == report.attention_order:
        return f"{note}{', and the compiled engine, too' if spiking else ''}."
    energies = (f"{name} {1e3 * engine.energy_mj(name):,.3f} µJ" for name in CONVENTIONS if name != "paper")
    theirs = ORDER_FORMULAS[engine.attention_order]
    return f"{note}; the compiled engine takes {theirs}: {', '.join(energies)}, first convolution at every step."


def _engine(report: EnergyReport) -> dict[str, Any]:
    """What differs where attention is multiplied in the engine's order."""
    figures = report.to_dict()
    return {name: figures[name] for name in ("attention_order", "operations", "energy_mj")}


def _memory(report: EnergyReport) -> dict[str, Any]:
    from spikformer.analysis.energy import CONVENTIONS

    spent = {
        name: {first_conv: report.memory_mj(name, first_conv) for first_conv in _FIRST_CONV} for name in CONVENTIONS
    }
    costs = {name: getattr(report.constants, name) for name in ("weight_pj", "membrane_pj")}
    return {"costs": costs, "energy_mj": spent, "twin_energy_mj": report.twin_memory_mj}


def _show_published(options: Options) -> int:
    from spikformer.analysis.published import implied_mean_rates, published_figures
    from spikformer.presets import get_preset
    from spikformer.successors import ROWS

    if options.weights is not None:
        raise ValueError("--published is about the paper's figures, not about weights; leave one of them out.")
    figures = published_figures()
    if options.json:
        print(json.dumps([asdict(figure) | {"agrees": figure.agrees} for figure in figures]))
        return 0
    table = plain_table()
    for title in ("Where", "What", "Printed", "Ours", "", "Counted as"):
        table.add_column(title, justify="right" if title in ("Printed", "Ours") else "left")
    for figure in figures:
        what, mark = f"{figure.what} ({figure.unit})", "=" if figure.agrees else "≠"
        table.add_row(figure.where, what, figure.printed, figure.shown, mark, figure.counted)
    print_table(table)
    unchecked = (
        f"{get_preset(name).config.title} {ROWS[name].energy_mj:.2f} mJ ({every_step:.1%}, {once:.1%})"
        for name, (every_step, once) in implied_mean_rates().items()
    )
    say(
        "Not checked, because they are printed without operations (in brackets, the mean firing rate that each implies "
        f"with the first convolution at every step, and once): {', '.join(unchecked)}."
    )
    agreeing = sum(figure.agrees for figure in figures)
    say(f"{agreeing} of {len(figures)} agree to the last printed digit.")
    return 0
