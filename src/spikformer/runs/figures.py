"""Figures of runs and of trained weights: curves, products of attention, rasters, events, what a network looks at."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from matplotlib.figure import Figure

from spikformer.analysis.firing import FiringReport
from spikformer.analysis.recorder import mapped_layers, record
from spikformer.analysis.traces import chosen_layer, stem_maps, trace_layer
from spikformer.config import CONVENTIONAL
from spikformer.data import DataSet
from spikformer.errors import FieldError, FileError
from spikformer.models import SpikingNetwork
from spikformer.runs.folder import Run
from spikformer.runs.measure import Watched, attention_maps, batches, watch_files, watch_samples
from spikformer.runs.trained import choose_samples, data_path, load_trained, open_data
from spikformer.validation import check_at_least
from spikformer.visualise.accuracy import curves_figure
from spikformer.visualise.attention import attention_figure, products_figure
from spikformer.visualise.firing import (
    events_and_spikes_figure,
    firing_figure,
    input_histogram_figure,
    layer_rates_figure,
    membrane_figure,
    raster_figure,
)
from spikformer.visualise.mosaic import sample_picture
from spikformer.visualise.style import save_figure

_PRODUCTS_BATCH = 16
_SHOWN = 4  # samples whose attention is drawn unless some are named


def figure_of_curves(runs: Sequence[Path]) -> Figure:
    """Loss and accuracy by epoch, several runs on common axes; runs of one name are labelled by their paths."""
    if not runs:
        raise FieldError("runs", "Name at least one run, a folder that `spikformer train` wrote.")
    names = [path.resolve().name for path in runs]
    shown = names if len(set(names)) == len(names) else [str(path) for path in runs]
    return curves_figure({name: Run(path).metrics for name, path in zip(shown, runs, strict=True)})


def figure_of_products(
    weights: Sequence[str | os.PathLike[str]], data: Path | None = None, split: str = "test", max_samples: int = 64
) -> Figure:
    """How Q Kᵀ V · s, or the sums that masks are made of, are distributed, by attention variant."""
    if not weights:
        message = "Name at least one file of weights; `spikformer ablate attention` trains all variants."
        raise FieldError("weights", message)
    models: list[SpikingNetwork] = []
    values: dict[str, np.ndarray] = {}
    for path in weights:
        model = load_trained(path)
        if getattr(model.config, "attention", "none") == "none" or model.config.neuron in CONVENTIONAL:
            raise FileError(path, "has no neurons that read a product of Q, K and V; name another.", "unfit")
        found = collect_products(model, open_data(model, data or data_path(path)), split, max_samples)
        values |= {f"{word}, {path}" if word in values else word: samples for word, samples in found.items()}
        models.append(model)
    config = models[0].config
    return products_figure(values, config.attention_v_threshold, config.surrogate, config.surrogate_alpha)


@torch.no_grad()
def collect_products(model: SpikingNetwork, data: DataSet, split: str, max_samples: int) -> dict[str, np.ndarray]:
    """By attention variant, all products of its layers; networks in stages have token attention and another."""
    check_at_least("max_samples", max_samples, 1)
    found: dict[str, list[np.ndarray]] = {}
    with record(model.eval()) as seen:
        for batch in batches(model, data, split, max_samples, _PRODUCTS_BATCH):
            model(batch)
            for layer, product in seen.products.items():
                by_tokens = layer in seen.masks and seen.masks[layer].over_tokens
                word = "token" if by_tokens else model.config.attention
                found.setdefault(word, []).append(product.flatten().float().numpy())
    return {word: np.concatenate(samples) for word, samples in found.items()}


def watch(
    weights: str | os.PathLike[str],
    model: SpikingNetwork,
    *,
    data: Path | None = None,
    split: str = "test",
    samples: Sequence[int] = (),
    files: Sequence[Path] = (),
) -> Iterator[Watched]:
    """A network while it sees files, or else samples of its data; by default four of different classes."""
    if files:
        return watch_files(model, files)
    opened = open_data(model, data or data_path(weights))
    return watch_samples(model, opened, split, samples or choose_samples(opened, split, _SHOWN))


def figures_of_raster(
    weights: str | os.PathLike[str],
    *,
    data: Path | None = None,
    split: str = "test",
    sample: int = 0,
    file: Path | None = None,
    layer: str | None = None,
    num_neurons: int = 48,
    traces: Sequence[int] = (),
) -> tuple[Figure, Figure]:
    """Spikes of a layer for one input, and the membranes of a few of its neurons.

    layer        by default the one after attention in the last block
    num_neurons  so many, spread evenly over the layer
    traces       neurons whose membranes are drawn; four of different activity by default
    """
    check_at_least("num_neurons", num_neurons, 1)
    model, watched = _watch_one(weights, data, split, sample, file)
    layer = layer or chosen_layer(watched.seen)
    found = trace_layer(model, watched.seen, layer, num_neurons, traces)
    membranes = membrane_figure(found.membranes, found.spikes, found.v_threshold, found.names, found.v_reset)
    return raster_figure(found.raster, f"{layer}\n{watched.title}"), membranes


def figure_of_events(
    weights: str | os.PathLike[str],
    *,
    data: Path | None = None,
    split: str = "test",
    sample: int = 0,
    file: Path | None = None,
) -> Figure:
    """Frames of events above the spikes they cause in every stage of the stem."""
    _, watched = _watch_one(weights, data, split, sample, file)
    if watched.sample.ndim != 4:
        raise FileError(weights, "was trained on images; this figure is for networks of event cameras.", "unfit")
    return events_and_spikes_figure(watched.sample, stem_maps(watched.seen), watched.title)


def _watch_one(
    weights: str | os.PathLike[str], data: Path | None, split: str, sample: int, file: Path | None
) -> tuple[SpikingNetwork, Watched]:
    model = load_trained(weights)
    files = () if file is None else (file,)
    watched = next(watch(weights, model, data=data, split=split, samples=[sample], files=files))
    _check_fires(bool(watched.seen.spikes), weights)
    return model, watched


def _check_fires(fires: bool, weights: str | os.PathLike[str]) -> None:
    if not fires:
        raise FileError(weights, "holds a conventional network: it has no neurons that fire.", "unfit")


def draw_firing(firing: FiringReport, output: Path, weights: str | os.PathLike[str]) -> list[Path]:
    """Every layer by step, what layers read, and Q, K and V by block where there are any; where they were written."""
    _check_fires(bool(firing.outputs), weights)
    counts = np.stack([seen.histogram.sum(0) for seen in firing.inputs.values()])
    fractions = [float(seen.num_fractions.sum()) for seen in firing.inputs.values()]
    figures = {
        output: layer_rates_figure(list(firing.rates), np.stack(list(firing.rates.values()))),
        output.with_stem(f"{output.stem}_inputs"): input_histogram_figure(list(firing.inputs), counts, fractions),
    }
    if firing.operands:
        figures[output.with_stem(f"{output.stem}_attention")] = firing_figure(firing.operands_by_block)
    for path, figure in figures.items():
        save_figure(figure, path)
    return list(figures)


def draw_attention(
    weights: str | os.PathLike[str],
    output: Path,
    *,
    data: Path | None = None,
    split: str = "test",
    samples: Sequence[int] = (),
    files: Sequence[Path] = (),
    block: int | None = None,
    head: int | None = None,
    step: int | None = None,
) -> dict[Path, Watched]:
    """Attention of one block, head and time step, or of all, over inputs; a figure for each, numbered if several.

    Blocks, heads and steps count from 1. Nothing is written before all figures are drawn.
    """
    model = load_trained(weights)
    _check_attends(model, block, head)
    watched = list(watch(weights, model, data=data, split=split, samples=samples, files=files))
    figures = [_attention(model, each, block, head, step) for each in watched]
    paths = [output] if len(watched) == 1 else [output.with_stem(f"{output.stem}_{n + 1}") for n in range(len(watched))]
    for path, figure in zip(paths, figures, strict=True):
        save_figure(figure, path)
    return dict(zip(paths, watched, strict=True))


def _check_attends(model: SpikingNetwork, block: int | None, head: int | None) -> None:
    layers = mapped_layers(model)
    if not layers:
        message = "This network has no attention: no patch looks at another, so there is nothing to draw."
        raise FieldError("attention", message)
    blocks = list(layers)
    if block is not None and block not in layers:
        through = blocks == list(range(1, len(blocks) + 1))
        expected = f"from 1 to {len(blocks)}" if through else f"one that has attention ({', '.join(map(str, blocks))})"
        raise FieldError("block", f"block= (--block) must be {expected} for this network, got {block}.")
    num_heads = model.config.num_heads  # in all of its blocks
    if head is not None and not 1 <= head <= num_heads:
        raise FieldError("head", f"head= (--head) must be from 1 to {num_heads} for this network, got {head}.")


def _attention(
    model: SpikingNetwork, watched: Watched, block: int | None, head: int | None, step: int | None
) -> Figure:
    shown = [each for each in attention_maps(model, watched, head) if block in (None, each.block)]
    num_steps = len(shown[0].grids)
    if step is not None and not 1 <= step <= num_steps:
        raise FieldError("step", f"step= (--step) must be from 1 to {num_steps} for this sample, got {step}.")
    steps = [step - 1] if step else list(range(num_steps))
    rows, columns = [each.title for each in shown], [f"step {number + 1}" for number in steps]
    title = f"{watched.title}{f', head {head}' if head else ''}"
    return attention_figure(sample_picture(watched.sample), [each.grids[steps] for each in shown], rows, columns, title)
