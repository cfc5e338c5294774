"""MACs by closed formulas for every network in stages, and what PyTorch counts."""

import pytest
import torch

import spikformer as sf
from spikformer.analysis.operations import count_operations, summary
from spikformer.analysis.specimens import shrunk
from spikformer.config import HierarchicalConfig, MaxFormerConfig
from spikformer.models import build_model
from spikformer.presets import get_preset

ALL = [name for name in sf.list_models() if isinstance(get_preset(name).config, HierarchicalConfig)]
# One of those that differ in time steps or classes alone.
IN_STAGES = [*{get_preset(name).config.override(time_steps=1, num_classes=10): name for name in ALL}.values()]
SLOW = pytest.mark.slow
MARKED = [pytest.param(name, marks=SLOW) if name.endswith("imagenet") else name for name in IN_STAGES]


def on_paper(config: HierarchicalConfig) -> list[tuple[str, str, int]]:
    """Name, kind and MACs of every layer, from the description of the network alone."""
    layers, blocks = [], iter(range(config.depth))
    side = config.image_size[0]
    assert config.image_size == (side, side)
    for stage, depth in enumerate(config.depths):
        wide, place = config.widths[stage], f"downsampling.{stage - 1}"
        convs = [(wide // 2, wide, "branch.0"), (wide, wide, "branch.1")]
        strides = [2, 1] if config.halved == (True, False) else [1, 2]
        pooled_shortcut, strided = isinstance(config, MaxFormerConfig), False
        if stage == 0:
            place, pooled_shortcut, strided = "stem", False, isinstance(config, MaxFormerConfig)
            image = config.in_channels
            if config.stem == "full":
                convs, strides = [(image, wide // 2, "stages.0"), (wide // 2, wide, "branch.0")], [1, 1]
            elif config.stem == "quarter":
                convs, strides = [(image, wide // 2, "stages.0"), *convs], [2, 2, 1]
            else:
                widths = (image, wide // 8, wide // 4, wide // 2, wide)
                names = ("stages.0", "stages.1", "branch.0", "branch.1")
                convs, strides = list(zip(widths, widths[1:], names, strict=False)), [1, 2, 2, 2]
                strided = False
        for (inputs, outputs, name), stride in zip(convs, strides, strict=True):
            if name == "branch.0":
                forked, forked_side = inputs, side
            computed = side // stride if strided else side
            layers.append((f"{place}.{name}.conv", "conv", computed**2 * 9 * inputs * outputs))
            side //= stride
        shortcut_side = forked_side if pooled_shortcut else side
        layers.append((f"{place}.shortcut.conv", "conv", shortcut_side**2 * forked * wide))
        n, hidden, last = side**2, round(wide * config.mlp_ratio), stage == len(config.depths) - 1
        for block in (next(blocks) for _ in range(depth)):
            if last or not isinstance(config, MaxFormerConfig):
                operands = ("value", "query", "key") if last else ("query", "key")
                layers += [(f"blocks.{block}.attention.{name}.linear", "linear", n * wide * wide) for name in operands]
                if last:
                    cost = 2 * n * wide * min(n, wide // config.num_heads)
                    layers.append((f"blocks.{block}.attention.mixing", "attention", cost))
                layers.append((f"blocks.{block}.attention.projection.linear", "linear", n * wide * wide))
            elif config.mixer_kernels[stage]:
                layers.append((f"blocks.{block}.conv.conv", "conv", n * wide * config.mixer_kernels[stage] ** 2))
            layers += [
                (f"blocks.{block}.mlp.{name}.linear", "linear", n * wide * hidden) for name in ("hidden", "output")
            ]
    return [*layers, ("head", "linear", config.embed_dim * config.num_classes)]


@pytest.mark.parametrize("name", MARKED)
def test_every_model(name: str) -> None:
    """In one step, for speed: MACs of a step are the same in all."""
    config = get_preset(name).config.override(time_steps=1)
    with torch.device("meta"):
        layers = count_operations(build_model(config))
    assert [(layer.name, layer.kind, layer.macs) for layer in layers] == on_paper(config)


@pytest.mark.parametrize("name", ["qkformer_4_384_cifar10", "maxformer_2_256_dvs128", "ms_qkformer_10_384_imagenet"])
def test_a_summary_adds_up(name: str) -> None:
    model = build_model(shrunk(name))
    found = summary(model)
    assert found.num_parameters == sum(parameter.numel() for parameter in model.parameters())
    assert found.num_parameters == model.config.num_parameters
    assert found.macs == sum(layer.macs for layer in count_operations(model))
