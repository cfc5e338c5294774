"""The figures of a report: those of `visualise`, drawn from a run, as SVG for the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup

from spikformer.analysis.firing import FiringReport
from spikformer.visualise.report.content import Run, Sample, Spiking

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PIXELS_PER_INCH = 96  # of CSS
_MOST_BLOCKS, _MOST_STEPS = 4, 8  # of maps; deeper or longer networks are shown in part


@dataclass(frozen=True)
class Drawing:
    """An SVG, and how wide it wants to be."""

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


def draw_curves_of(runs: Sequence[Run]) -> Drawing:
    """Curves on common axes."""
    from spikformer.visualise.curves import curves_figure

    return _as_drawing(curves_figure({run.name: run.history for run in runs}))


def draw_run(run: Run) -> RunDrawings:
    from spikformer.visualise.confusion import confusion_figure

    spiking = run.spiking
    return RunDrawings(
        curves=draw_curves_of([run]),
        confusion=_as_drawing(confusion_figure(run.accuracy.confusion, run.class_names)),
        rates=draw_rates(run.firing),
        attention_rates=draw_attention_rates(run.firing),
        inputs=draw_inputs(run.firing),
        attention=[draw_attention(sample) for sample in run.samples],
        raster=draw_raster(spiking) if spiking else None,
        membranes=draw_membranes(spiking) if spiking else None,
        events=draw_events(spiking) if spiking and spiking.sample.events else None,
    )


def _as_drawing(figure: Figure) -> Drawing:
    from spikformer.visualise.figures import svg_text

    # Markup: SVG of our own, in which whatever names it was given are escaped already.
    return Drawing(Markup(svg_text(figure)), round(figure.get_figwidth() * _PIXELS_PER_INCH))


def draw_rates(firing: FiringReport) -> Drawing | None:
    from spikformer.visualise.firing import layer_rates_figure

    if not firing.rates:
        return None
    names = [layer_title(name) for name in firing.rates]
    return _as_drawing(layer_rates_figure(names, np.stack(list(firing.rates.values()))))


def draw_attention_rates(firing: FiringReport) -> Drawing | None:
    from spikformer.visualise.firing import firing_figure

    layers = list(firing.attentions.values())
    if not layers or not all(all(layer.binary) for layer in layers):
        return None  # what is no spike has no rate
    return _as_drawing(firing_figure({name: [layer.rates[name].mean() for layer in layers] for name in "QKV"}))


def draw_inputs(firing: FiringReport) -> Drawing:
    from spikformer.visualise.firing import input_histogram_figure

    names = [layer_title(name) for name in firing.inputs]
    counts = np.stack([seen.histogram.sum(0) for seen in firing.inputs.values()])
    fractions = [seen.num_fractions.sum() for seen in firing.inputs.values()]
    return _as_drawing(input_histogram_figure(names, counts, fractions))


def draw_attention(sample: Sample) -> Drawing | None:
    from spikformer.visualise.attention_maps import attention_figure
    from spikformer.visualise.tiles import sample_picture

    if sample.attention is None:
        return None
    blocks, steps = (_spread(*each) for each in zip(sample.attention.shape, (_MOST_BLOCKS, _MOST_STEPS), strict=False))
    maps = sample.attention[blocks][:, steps]
    rows, columns = [f"block {block + 1}" for block in blocks], [f"step {step + 1}" for step in steps]
    return _as_drawing(attention_figure(sample_picture(sample.picture), maps, rows, columns))


def draw_raster(spiking: Spiking) -> Drawing:
    from spikformer.visualise.rasters import raster_figure

    return _as_drawing(raster_figure(spiking.raster))


def draw_membranes(spiking: Spiking) -> Drawing:
    from spikformer.visualise.rasters import membrane_figure

    traces = (spiking.membranes, spiking.spikes, spiking.v_threshold, spiking.names, spiking.v_reset)
    return _as_drawing(membrane_figure(*traces))


def draw_events(spiking: Spiking) -> Drawing:
    from spikformer.visualise.events_and_spikes import events_and_spikes_figure

    frames = spiking.sample.picture
    steps = _spread(len(frames), _MOST_STEPS)
    maps = {layer_title(name): counts[steps] for name, counts in spiking.maps.items()}
    return _as_drawing(events_and_spikes_figure(frames[steps], maps))


def layer_title(name: str) -> str:
    """A layer as people call it, counted from 1 as blocks and steps are: "block 1, query"."""
    room, _, rest = name.removesuffix(".neuron").removesuffix(".linear").removesuffix(".conv").partition(".")
    number, _, inner = rest.partition(".")
    if room == "blocks" and number.isdecimal():
        inner = inner.removeprefix("attention.").removeprefix("mlp.")
        return f"block {int(number) + 1}, {inner}"
    if room == "stem":
        return f"stem, {f'stage {int(inner) + 1}' if number == 'stages' else rest}"
    return name


def _spread(count: int, most: int) -> np.ndarray:
    """At most so many of the numbers below `count`, the first and the last among them."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(int))
