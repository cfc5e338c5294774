"""Draw a figure of the paper, or one like it, from your own runs. Formats by ending: .png, .svg, .pdf, .jpg, .webp.

    surrogate    what stands in for the step of a spike, and its gradient
    curves       loss and accuracy of one or several runs
    products     the distribution of Q Kᵀ V · s, or what masks are made of, by attention: why some do not converge
    raster       spikes of a layer, and the membranes of some of its neurons
    events       event frames above the spikes they cause

Example: spikformer figure curves runs/first runs/second --output curves.svg
Example: spikformer figure raster runs/spikformer_tiny_digits --layer blocks.1.attention.neuron

Each takes --help and --json.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from spikformer.cli.console import say
from spikformer.errors import FileError
from spikformer.validation import Split

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure

    from spikformer.models import SpikingNetwork
    from spikformer.runs.measure import Watched


@dataclass(frozen=True)
class Surrogate:
    """The stand-ins of a spike's step, and their gradients."""

    alpha: float = 4.0
    """Steepness of the sigmoid; the paper's is 4."""
    arctan_alpha: float = 2.0
    """Steepness of the arctan."""
    output: Path = Path("surrogate.png")
    """Where to draw."""
    json: bool = False
    """Print JSON instead of text."""


@dataclass(frozen=True)
class Curves:
    """Loss and accuracy by epoch, several runs on common axes."""

    runs: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="RUN…")]
    """Folders that train wrote."""
    output: Path = Path("curves.png")
    """Where to draw."""
    json: bool = False
    """Print JSON instead of text."""


@dataclass(frozen=True)
class Products:
    """How Q Kᵀ V · s, or the sums that masks are made of, are distributed, and how much a surrogate's gradient reaches.

    Networks in stages have two kinds: token attention in the early ones, Q Kᵀ V · s in the last.
    """

    weights: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="WEIGHTS…")]
    """Run folders or weights of networks that differ in attention, as `spikformer ablate attention` trains them."""
    data: Path | None = None
    """Folder or archive with the data set's files; by default where the run found them."""
    split: Split = "test"
    """Which split of the data."""
    max_samples: int = 64
    """How many samples at most, taken from all over the split."""
    output: Path = Path("products.png")
    """Where to draw."""
    json: bool = False
    """Print JSON instead of text."""


@dataclass(frozen=True)
class _OneSample:
    weights: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="WEIGHTS")]
    """A run folder, weights of it, such as runs/NAME/best.safetensors, or a shipped name (`models --weights`)."""
    data: Path | None = None
    """Folder or archive with the data set's files, by default where the run found them; not needed with --file."""
    split: Split = "test"
    """Which split of the data."""
    sample: int = 0
    """Its place in the split, counted from 0."""
    file: Path | None = None
    """A picture or recording, instead of a sample."""


@dataclass(frozen=True)
class Raster(_OneSample):
    """Spikes of a layer for one input, and the membranes of a few of its neurons (…_membranes)."""

    layer: Annotated[str | None, tyro.conf.arg(metavar="LAYER")] = None
    """A layer of neurons, as `spikformer firing` lists them; the one after attention in the last block by default."""
    neurons: int = 48
    """How many neurons, spread evenly over the layer."""
    traces: tuple[int, ...] = ()
    """Neurons whose membranes are drawn, counted from 0; four of different activity by default."""
    output: Path = Path("raster.png")
    """Where to draw."""
    json: bool = False
    """Print JSON instead of text."""


@dataclass(frozen=True)
class Events(_OneSample):
    """Frames of events above the spikes they cause in every stage of the stem."""

    output: Path = Path("events.png")
    """Where to draw."""
    json: bool = False
    """Print JSON instead of text."""


Options = (
    Annotated[Surrogate, tyro.conf.subcommand("surrogate")]
    | Annotated[Curves, tyro.conf.subcommand("curves")]
    | Annotated[Products, tyro.conf.subcommand("products")]
    | Annotated[Raster, tyro.conf.subcommand("raster")]
    | Annotated[Events, tyro.conf.subcommand("events")]
)


def run(options: Surrogate | Curves | Products | Raster | Events) -> int:
    from spikformer.visualise.style import check_figure_path, save_figure

    check_figure_path(options.output)
    match options:
        case Surrogate():
            figures = {options.output: _surrogate(options)}
        case Curves():
            figures = {options.output: _curves(options)}
        case Products():
            figures = {options.output: _products(options)}
        case Raster():
            figures = _raster(options)
        case Events():
            figures = {options.output: _events(options)}
    for path, figure in figures.items():
        save_figure(figure, path)
    if options.json:
        print(json.dumps({"figures": [str(path) for path in figures]}))
        return 0
    for path in figures:
        say(f"Drew {path}")
    return 0


def _surrogate(options: Surrogate) -> Figure:
    from spikformer.visualise.attention import surrogate_figure

    return surrogate_figure({"sigmoid": options.alpha, "arctan": options.arctan_alpha})


def _curves(options: Curves) -> Figure:
    from spikformer.runs.folder import Run
    from spikformer.visualise.accuracy import curves_figure

    if not options.runs:
        raise ValueError("Name at least one run, a folder that `spikformer train` wrote.")
    names = [path.resolve().name for path in options.runs]
    shown = names if len(set(names)) == len(names) else [str(path) for path in options.runs]
    return curves_figure({name: Run(path).metrics for name, path in zip(shown, options.runs, strict=True)})


def _products(options: Products) -> Figure:
    from spikformer.visualise.attention import products_figure

    if not options.weights:
        raise ValueError("Name at least one file of weights; `spikformer ablate attention` trains all variants.")
    models: list[SpikingNetwork] = []
    values: dict[str, np.ndarray] = {}
    for path in options.weights:
        model, found = _collect_products(path, options)
        values |= {f"{word}, {path}" if word in values else word: samples for word, samples in found.items()}
        models.append(model)
    config = models[0].config
    return products_figure(values, config.attention_v_threshold, config.surrogate, config.surrogate_alpha)


def _collect_products(path: str, options: Products) -> tuple[SpikingNetwork, dict[str, np.ndarray]]:
    """By attention variant."""
    import numpy as np
    import torch

    from spikformer.analysis.recorder import record
    from spikformer.runs.measure import batches
    from spikformer.runs.trained import data_path, load_trained, open_data

    if options.max_samples < 1:
        raise ValueError(f"--max-samples must be at least 1, got {options.max_samples}.")
    model = load_trained(path)
    if getattr(model.config, "attention", "none") == "none" or model.config.neuron in ("relu", "gelu"):
        raise FileError(path, "has no neurons that read a product of Q, K and V; name another.")
    data = open_data(model, options.data or data_path(path))
    found: dict[str, list[np.ndarray]] = {}
    with torch.no_grad(), record(model.eval()) as seen:
        for batch in batches(model, data, options.split, options.max_samples, 16):
            model(batch)
            for layer, product in seen.products.items():
                by_tokens = layer in seen.masks and seen.masks[layer].over_tokens
                word = "token" if by_tokens else model.config.attention
                found.setdefault(word, []).append(product.flatten().float().numpy())
    return model, {word: np.concatenate(samples) for word, samples in found.items()}


def _raster(options: Raster) -> dict[Path, Figure]:
    from spikformer.analysis.traces import chosen_layer, trace_layer
    from spikformer.visualise.firing import membrane_figure, raster_figure

    if options.neurons < 1:
        raise ValueError(f"--neurons must be at least 1, got {options.neurons}.")
    model, watched = _watch_one(options)
    layer = options.layer or chosen_layer(watched.seen)
    found = trace_layer(model, watched.seen, layer, options.neurons, options.traces)
    traces = (found.membranes, found.spikes, found.v_threshold, found.names, found.v_reset)
    return {
        options.output: raster_figure(found.raster, f"{layer}\n{watched.title}"),
        options.output.with_stem(f"{options.output.stem}_membranes"): membrane_figure(*traces),
    }


def _events(options: Events) -> Figure:
    from spikformer.analysis.traces import stem_maps
    from spikformer.visualise.firing import events_and_spikes_figure

    _, watched = _watch_one(options)
    if watched.sample.ndim != 4:
        raise ValueError(f"{options.weights} was trained on images; this figure is for networks of event cameras.")
    maps: Mapping[str, np.ndarray] = stem_maps(watched.seen)
    return events_and_spikes_figure(watched.sample, maps, watched.title)


def _watch_one(options: _OneSample) -> tuple[SpikingNetwork, Watched]:
    from spikformer.runs.measure import watch_files, watch_samples
    from spikformer.runs.trained import data_path, load_trained, open_data

    model = load_trained(options.weights)
    if options.file is not None:
        if options.data is not None:
            raise ValueError("--file takes the place of --data; give one or the other.")
        watched = next(watch_files(model, [options.file]))
    else:
        data = open_data(model, options.data or data_path(options.weights))
        watched = next(watch_samples(model, data, options.split, [options.sample]))
    if not watched.seen.spikes:
        raise ValueError(f"{options.weights} holds a conventional network: it has no neurons that fire.")
    return model, watched
