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
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from spikformer.cli.console import check_least, say
from spikformer.validation import Split

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
    """Its index in the split, counted from 0."""
    file: Path | None = None
    """A picture or recording, instead of a sample."""

    def seen(self) -> dict[str, Any]:
        """What the network sees."""
        if self.file is not None and self.data is not None:
            raise ValueError("--file takes the place of --data; give one or the other.")
        return {name: getattr(self, name) for name in ("data", "split", "sample", "file")}


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
    figures = _draw(options)
    for path, figure in figures.items():
        save_figure(figure, path)
    if options.json:
        print(json.dumps({"figures": [str(path) for path in figures]}))
        return 0
    for path in figures:
        say(f"Drew {path}")
    return 0


def _draw(options: Surrogate | Curves | Products | Raster | Events) -> dict[Path, Figure]:
    from spikformer.runs.figures import figure_of_curves, figure_of_events, figure_of_products, figures_of_raster
    from spikformer.visualise.attention import surrogate_figure

    match options:
        case Surrogate():
            return {options.output: surrogate_figure({"sigmoid": options.alpha, "arctan": options.arctan_alpha})}
        case Curves():
            return {options.output: figure_of_curves(options.runs)}
        case Products():
            check_least(options, max_samples=1)
            figure = figure_of_products(options.weights, options.data, options.split, options.max_samples)
            return {options.output: figure}
        case Raster():
            check_least(options, neurons=1)
            raster, membranes = figures_of_raster(
                options.weights,
                **options.seen(),
                layer=options.layer,
                num_neurons=options.neurons,
                traces=options.traces,
            )
            beside = options.output.with_stem(f"{options.output.stem}_membranes")
            return {options.output: raster, beside: membranes}
        case Events():
            return {options.output: figure_of_events(options.weights, **options.seen())}
