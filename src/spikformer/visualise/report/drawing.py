"""The figures of a report: those of `visualise`, drawn from a run, as SVG for the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup

from spikformer.analysis.firing import FiringReport
from spikformer.analysis.traces import LayerTraces, evenly
from spikformer.visualise.report.content import ReportedRun, Sample

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PIXELS_PER_INCH = 96  # of CSS
_MOST_BLOCKS, _MOST_STEPS = 4, 8  # of maps; deeper or longer networks are shown in part


@dataclass(frozen=True)
class Drawing:
    """An SVG, and its natural width in pixels."""

    svg: Markup
    width: int


@dataclass(frozen=True)
class RunDrawings:
    """The figures of one run; None where there is nothing to draw."""

    curves: Drawing
    confusion: Drawing
    rates: Drawing | None
    attention_rates: Drawing | None
    inputs: Drawing
    attention: Sequence[Drawing | None]
    """For each sample."""
    raster: Drawing | None
    membranes: Drawing | None
    events: Drawing | None


def draw_curves_of(runs: Sequence[ReportedRun], name: str = "curves") -> Drawing:
    """Curves on common axes."""
    from spikformer.visualise.accuracy import curves_figure

    return _as_drawing(curves_figure({run.name: run.history for run in runs}), name)


def draw_run(run: ReportedRun, prefix: str = "") -> RunDrawings:
    """All figures of a run; `prefix` tells their ids from those of other runs on the page."""
    from spikformer.visualise.accuracy import confusion_figure

    traces = run.traces
    return RunDrawings(
        curves=draw_curves_of([run], f"{prefix}curves"),
        confusion=_as_drawing(confusion_figure(run.evaluation.confusion, run.class_names), f"{prefix}confusion"),
        rates=draw_rates(run.firing, f"{prefix}rates"),
        attention_rates=draw_attention_rates(run.firing, f"{prefix}attention-rates"),
        inputs=draw_inputs(run.firing, f"{prefix}inputs"),
        attention=[draw_attention(sample, f"{prefix}attention-{n}") for n, sample in enumerate(run.samples, 1)],
        raster=draw_raster(traces, f"{prefix}raster") if traces else None,
        membranes=draw_membranes(traces, f"{prefix}membranes") if traces else None,
        events=draw_events(run, f"{prefix}events") if traces and run.events else None,
    )


def _as_drawing(figure: Figure, name: str) -> Drawing:
    from spikformer.visualise.style import svg_text

    # Markup: SVG of our own, in which whatever names it was given are escaped already.
    return Drawing(Markup(svg_text(figure, f"svg-{name}")), round(figure.get_figwidth() * _PIXELS_PER_INCH))


def draw_rates(firing: FiringReport, name: str = "rates") -> Drawing | None:
    from spikformer.visualise.firing import layer_rates_figure

    if not firing.rates:
        return None
    titles = [layer_title(layer) for layer in firing.rates]
    return _as_drawing(layer_rates_figure(titles, np.stack(list(firing.rates.values()))), name)


def draw_attention_rates(firing: FiringReport, name: str = "attention-rates") -> Drawing | None:
    from spikformer.visualise.firing import firing_figure

    return _as_drawing(firing_figure(firing.operands_by_block), name) if firing.operands else None


def draw_inputs(firing: FiringReport, name: str = "inputs") -> Drawing:
    from spikformer.visualise.firing import input_histogram_figure

    titles = [layer_title(layer) for layer in firing.inputs]
    counts = np.stack([seen.histogram.sum(0) for seen in firing.inputs.values()])
    fractions = [seen.num_fractions.sum() for seen in firing.inputs.values()]
    return _as_drawing(input_histogram_figure(titles, counts, fractions), name)


def draw_attention(sample: Sample, name: str = "attention") -> Drawing | None:
    from spikformer.visualise.attention import attention_figure
    from spikformer.visualise.mosaic import sample_picture

    if not sample.attention:
        return None
    blocks = [sample.attention[place] for place in evenly(len(sample.attention), _MOST_BLOCKS)]
    steps = evenly(len(blocks[0].grids), _MOST_STEPS)
    maps, rows = [block.grids[steps] for block in blocks], [block.title for block in blocks]
    columns = [f"step {step + 1}" for step in steps]
    return _as_drawing(attention_figure(sample_picture(sample.picture), maps, rows, columns), name)


def draw_raster(traces: LayerTraces, name: str = "raster") -> Drawing:
    from spikformer.visualise.firing import raster_figure

    return _as_drawing(raster_figure(traces.raster), name)


def draw_membranes(traces: LayerTraces, name: str = "membranes") -> Drawing:
    from spikformer.visualise.firing import membrane_figure

    drawn = (traces.membranes, traces.spikes, traces.v_threshold, traces.names, traces.v_reset)
    return _as_drawing(membrane_figure(*drawn), name)


def draw_events(run: ReportedRun, name: str = "events") -> Drawing:
    """The first sample, and what the stem fired at it."""
    from spikformer.visualise.firing import events_and_spikes_figure

    frames = run.samples[0].picture
    steps = evenly(len(frames), _MOST_STEPS)
    maps = {layer_title(layer): counts[steps] for layer, counts in run.stem_maps.items()}
    return _as_drawing(events_and_spikes_figure(frames[steps], maps), name)


def layer_title(name: str) -> str:
    """A layer as people call it, counted from 1 as blocks and steps are: "block 1, query"."""
    holder, _, last = name.rpartition(".")
    part = holder and last in ("neuron", "linear", "conv")  # of the layer that it is in
    name = holder if part else name.removesuffix("_neuron")
    room, _, rest = name.partition(".")
    number, _, inner = rest.partition(".")
    if room == "blocks" and number.isdecimal():
        inner = inner.removeprefix("attention.").removeprefix("mlp.")
        return ", ".join(filter(None, (f"block {int(number) + 1}", inner)))
    if room == "downsampling" and number.isdecimal():
        return ", ".join(filter(None, (f"down-sampling {int(number) + 1}", _counted_from_one(inner))))
    return _counted_from_one(name)


def _counted_from_one(name: str) -> str:
    """Of parts in numbered lists: "stages.0.1.layers.0" is "stage 1, block 2, layer 1", "branch.0" is "branch 1"."""
    titles: list[str] = []
    numbered = False
    for part in filter(None, name.split(".")):
        if not part.isdecimal():
            titles.append(part)
        elif numbered or not titles:  # a list in a list
            titles.append(f"block {int(part) + 1}")
        else:
            titles[-1] = f"{titles[-1].removesuffix('s')} {int(part) + 1}"
        numbered = part.isdecimal()
    return ", ".join(titles)
