"""Convert weights of published code (Spikformer, successors, SEW-ResNet) to ours. Nothing in a checkpoint is executed.

Example: spikformer import model_best.pth.tar --num-heads 12 --output spikformer_4_384.safetensors
Example: spikformer import model_best.pth.tar --num-heads 12 --data-set cifar10 --data DIR --image-size 32
Example: spikformer import checkpoint.pth --num-heads 8 --preset spikingformer_8_512_imagenet
Example: spikformer import sew34_checkpoint.pth --image-size 224
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from spikformer.cli.console import say
from spikformer.config import Join


@dataclass(frozen=True)
class Options:
    source: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="SOURCE")]
    """A .pth, .pth.tar or .safetensors file."""
    num_heads: int | None = None
    """Attention heads, where neither the authors' code nor the checkpoint determines them: 12 for CIFAR at width 384
    (Spikingformer on CIFAR-100: 8), 8 for ImageNet (Spikformer at 768: 12; networks in stages: width / 64), 16 for DVS.
    Residual networks have none."""
    preset: Annotated[str | None, tyro.conf.arg(metavar="MODEL")] = None
    """The published network whose mathematics the weights have, of any size; needed where they fit several."""
    join: Join | None = None
    """How blocks of a SEW network join spikes, if not by the preset's add."""
    batch_leak: bool = False
    """Keep the published behaviour of QKFormer, whose samples leak into each other: for its published weights alone."""
    output: Path | None = None
    """Where to write; by default beside the source, ending in .spikformer.safetensors."""
    time_steps: int | None = None
    """T; by default the checkpoint's own, or 4 for images and 16 for events."""
    image_size: int | None = None
    """Height and width; by default the checkpoint's own, or open."""
    data_set: Annotated[str | None, tyro.conf.arg(metavar="DATA_SET")] = None
    """The data set it was trained on, to be noted in the weights, so that evaluate, predict and others can use them."""
    data: Path | None = None
    """Folder or archive with that set's files."""
    json: bool = False
    """Print JSON instead of text."""


def run(options: Options) -> int:
    from spikformer.runs.trained import import_weights

    extra_fields: dict[str, Any] = {} if options.join is None else {"join": options.join}
    model, output = import_weights(
        options.source,
        options.output,
        data_set=options.data_set,
        data=options.data,
        num_heads=options.num_heads,
        preset=options.preset,
        time_steps=options.time_steps,
        image_size=options.image_size,
        batch_leak=options.batch_leak,
        **extra_fields,
    )
    parameters = sum(parameter.numel() for parameter in model.parameters())
    if options.json:
        print(json.dumps({"output": str(output), "parameters": parameters, "config": model.config.to_dict()}))
        return 0
    config = model.config
    heads = f"{config.num_heads} heads, " if hasattr(config, "num_heads") else ""
    say(f"{config.title}: {parameters:,} parameters, {heads}T = {config.time_steps}, {config.num_classes} classes.")
    say(f"Wrote {output}")
    return 0
