"""An ablation's comparison as a table, with the paper's figures where it has any."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.table import Table

from spikformer.analysis.ablation import Line
from spikformer.cli.terminal import print_table, say
from spikformer.runs.comparison import Comparison

_NOTHING = "–"


def print_comparison(comparison: Comparison) -> None:
    """The table, and where the rest is."""
    lines = comparison.lines
    table = Table(box=None, header_style="bold", padding=(0, 1, 0, 0))
    table.add_column(comparison.grid.replace("_", " ").capitalize(), no_wrap=True)
    columns = {title: [cell(line) for line in lines] for title, cell in _columns(comparison, lines).items()}
    columns = {title: cells for title, cells in columns.items() if set(cells) != {_NOTHING}}
    for title in columns:
        table.add_column(title, justify="right")
    for line, *cells in zip(lines, *columns.values(), strict=True):
        table.add_row(line.variant.name, *cells)
    print_table(table)
    for note in _notes(comparison, lines):
        say(note)


def _columns(comparison: Comparison, lines: Sequence[Line]) -> dict[str, Callable[[Line], str]]:
    """Titles, and what stands below each; one that is empty is left out."""
    # One unit for a column, and a small network's energy would vanish in millijoules.
    energies = [spread.mean for line in lines if (spread := line.figure("energy_mj"))]
    unit, per_mj = ("mJ", 1.0) if max(energies, default=0.0) >= 1 else ("µJ", 1e3)
    columns: dict[str, Callable[[Line], str]] = {
        "\nRuns": _runs,
        "Last\n%": lambda line: _accuracy(comparison, line, "last"),
        "Best\n%": lambda line: _accuracy(comparison, line, "best"),
        "Params\nM": _mean("parameters", 1e-6),
        "OPs\nM": _mean("operations", 1e-6),
        f"Energy\n{unit}": _mean("energy_mj", per_mj),
    }
    if comparison.grid == "attention":
        columns |= {"QKV\nM": _mean("attention_operations", 1e-6), "QKV\nµJ": _mean("attention_energy_mj", 1e3)}
    columns["Paper\n%"] = _printed_accuracy
    columns |= {"Paper\nM": _printed("operations_millions"), f"Paper\n{unit}": _printed("energy_uj", per_mj / 1e3)}
    if comparison.grid == "attention":
        columns["Paper\nQKV M"] = _printed("attention_operations_millions")
        columns["Paper\nQKV µJ"] = _printed("attention_energy_uj")
    return columns


def _accuracy(comparison: Comparison, line: Line, which: str) -> str:
    """Mean ± deviation of the runs that have one."""
    spread = line.figure(f"{which}_{comparison.split}_accuracy")
    if spread is None:
        return "✗" if line.count("diverged") == len(line.cells) else _NOTHING
    return f"{100 * spread.mean:.2f}" + ("" if spread.std is None else f" ± {100 * spread.std:.2f}")


def _notes(comparison: Comparison, lines: Sequence[Line]) -> list[str]:
    seeds = {cell.seed for line in lines for cell in line.cells}
    over = f"mean ± standard deviation over {len(seeds)} seeds" if len(seeds) > 1 else "with one seed"
    notes = [
        f"Accuracy on the {comparison.split} split of {comparison.data_set}, {over}; operations and energy of one "
        "sample, counted as in the paper."
    ]
    if comparison.grid == "attention":
        notes.append("QKV: the product of Q, K and V in one block.")
    models = {line.variant.paper.model for line in lines if line.variant.paper}
    if len(models) == 1:  # a size has its own
        notes.append(f"The paper's figures are of {models.pop()}.")
    return [*notes, f"table, picture: {comparison.files['csv']}, {comparison.files['png']}"]


def _runs(line: Line) -> str:
    """How many finished; ✗ for those that did not converge, as in the paper."""
    counts = {"": line.count("finished"), " ✗": line.count("diverged"), " failed": line.count("failed")}
    return ", ".join(f"{count}{word}" for word, count in counts.items() if count)


def _mean(name: str, scale: float) -> Callable[[Line], str]:
    def cell(line: Line) -> str:
        spread = line.figure(name)
        return _NOTHING if spread is None else _number(spread.mean * scale)

    return cell


def _printed(name: str, scale: float = 1.0) -> Callable[[Line], str]:
    def cell(line: Line) -> str:
        value = getattr(line.variant.paper, name, None)
        return _NOTHING if value is None else _number(value * scale)

    return cell


def _printed_accuracy(line: Line) -> str:
    paper = line.variant.paper
    if paper is None:
        return _NOTHING
    return "✗" if paper.accuracy_percent is None else f"{paper.accuracy_percent:.2f}"


def _number(value: float) -> str:
    """Three digits that count, or all of a larger number."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
