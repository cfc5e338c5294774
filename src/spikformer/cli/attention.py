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
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from spikformer.cli.console import say
from spikformer.errors import SILENT
from spikformer.validation import Split


@dataclass(frozen=True)
class Options:
    weights: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="WEIGHTS")]
    """A run folder, weights of it, such as runs/NAME/best.safetensors, or a shipped name (`models --weights`)."""
    data: Path | None = None
    """Folder or archive with the data set's files, by default where the run found them; not needed with --files."""
    split: Split = "test"
    """Which split of the data."""
    samples: tuple[int, ...] = ()
    """Indices of samples in the split, counted from 0; by default four of different classes."""
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
    from spikformer.runs.figures import draw_attention
    from spikformer.runs.trained import output_beside, weights_path
    from spikformer.visualise.style import check_figure_path

    if options.files and (options.samples or options.data):
        raise ValueError("--files takes the place of --data and --samples; give one or the other.")
    weights = weights_path(options.weights)
    output = options.output or output_beside(weights, f"{weights.stem}_attention.png")
    check_figure_path(output)
    drawn = draw_attention(
        options.weights,
        output,
        data=options.data,
        split=options.split,
        samples=options.samples,
        files=options.files,
        block=options.block,
        head=options.head,
        step=options.step,
    )
    if options.json:
        rows = (
            {"figure": str(path), "source": each.source, "label": each.label, "answer": each.answer}
            for path, each in drawn.items()
        )
        print(json.dumps(list(rows)))
        return 0
    for path, each in drawn.items():
        say(f"{path}: {each.title}")
    if any(each.answer is None for each in drawn.values()):
        say(SILENT)
    return 0
