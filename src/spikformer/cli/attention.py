"""Draw what a network looks at: attention of any block, head and time step over the image, black where it is 0.

A map shows how much each patch is looked at: Q Kᵀ · s, averaged over the patches that look, and over heads unless one
is chosen. Attention without Q Kᵀ is shown by its masks: those over patches (QKFormer) as they are; of those over
channels (Spike-driven Transformer) the share of a patch's spikes in Q that pass. Blocks, heads and steps count from 1;
blocks without attention, as of convolutions, count too.

Example: spikformer attention runs/spikformer_tiny_digits
Example: spikformer attention best.safetensors --data DIR --samples 4 17 --block 4 --head 2 --output maps.svg
Example: spikformer attention best.safetensors --files cat.jpg dog.jpg
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from spikformer.cli.console import say
from spikformer.validation import SILENT, Split

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from spikformer.models import SpikingNetwork
    from spikformer.runs.measure import Watched


@dataclass(frozen=True)
class Options:
    weights: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="WEIGHTS")]
    """A run folder, weights of it, such as runs/NAME/best.safetensors, or a shipped name (`models --weights`)."""
    data: Path | None = None
    """Folder or archive with the data set's files, by default where the run found them; not needed with --files."""
    split: Split = "test"
    """Which split of the data."""
    samples: tuple[int, ...] = ()
    """Places of samples in the split, counted from 0; by default four of different classes."""
    files: tuple[Path, ...] = ()
    """Pictures or recordings to look at, instead of samples."""
    block: int | None = None
    """One block; all that have attention by default."""
    head: int | None = None
    """One head; the mean of all by default."""
    step: int | None = None
    """One time step; all of them by default."""
    output: Path | None = None
    """Where to draw, as .png, .svg or .pdf; WEIGHTS_attention.png beside the weights by default, numbered where there
    are several samples."""
    json: bool = False
    """Print JSON instead of text."""


def run(options: Options) -> int:
    from spikformer.runs.trained import output_beside, weights_path
    from spikformer.visualise.style import check_figure_path, save_figure

    if options.files and (options.samples or options.data):
        raise ValueError("--files takes the place of --data and --samples; give one or the other.")
    weights = weights_path(options.weights)
    output = options.output or output_beside(weights, f"{weights.stem}_attention.png")
    check_figure_path(output)
    figures = [(each, _figure(model, each, options)) for model, each in _watch(options)]
    drawn = []
    for number, (watched, figure) in enumerate(figures, 1):
        path = output if len(figures) == 1 else output.with_stem(f"{output.stem}_{number}")
        save_figure(figure, path)
        drawn.append({"figure": str(path), "source": watched.source, "label": watched.label, "answer": watched.answer})
    if options.json:
        print(json.dumps(drawn))
        return 0
    for (watched, _), row in zip(figures, drawn, strict=True):
        say(f"{row['figure']}: {watched.title}")
    if any(watched.answer is None for watched, _ in figures):
        say(SILENT)
    return 0


def _watch(options: Options) -> Iterator[tuple[SpikingNetwork, Watched]]:
    from spikformer.runs.measure import watch_files, watch_samples
    from spikformer.runs.trained import choose_samples, data_path, load_trained, open_data

    model = load_trained(options.weights)
    _check(options, model)
    if options.files:
        yield from ((model, each) for each in watch_files(model, options.files))
        return
    data = open_data(model, options.data or data_path(options.weights))
    places = options.samples or choose_samples(data, options.split, 4)
    yield from ((model, each) for each in watch_samples(model, data, options.split, places))


def _check(options: Options, model: SpikingNetwork) -> None:
    from spikformer.analysis.recorder import mapped_layers

    layers = mapped_layers(model)
    if not layers:
        raise ValueError("This network has no attention: no patch looks at another, so there is nothing to draw.")
    blocks = list(layers)
    if options.block is not None and options.block not in layers:
        through = blocks == list(range(1, len(blocks) + 1))
        expected = f"from 1 to {len(blocks)}" if through else f"one that has attention ({', '.join(map(str, blocks))})"
        raise ValueError(f"--block must be {expected} for this network, got {options.block}.")
    num_heads = model.config.num_heads  # in all of its blocks
    if options.head is not None and not 1 <= options.head <= num_heads:
        raise ValueError(f"--head must be from 1 to {num_heads} for this network, got {options.head}.")


def _figure(model: SpikingNetwork, watched: Watched, options: Options) -> Figure:
    from spikformer.runs.measure import attention_maps
    from spikformer.visualise.attention import attention_figure
    from spikformer.visualise.mosaic import sample_picture

    found = attention_maps(model, watched, options.head)
    blocks = [block for block in found if options.block in (None, block.block)]
    num_steps = len(blocks[0].grids)
    if options.step is not None and not 1 <= options.step <= num_steps:
        raise ValueError(f"--step must be from 1 to {num_steps} for this sample, got {options.step}.")
    steps = [options.step - 1] if options.step else list(range(num_steps))
    rows, columns = [block.title for block in blocks], [f"step {step + 1}" for step in steps]
    maps = [block.grids[steps] for block in blocks]
    head = f", head {options.head}" if options.head else ""
    return attention_figure(sample_picture(watched.sample), maps, rows, columns, f"{watched.title}{head}")
