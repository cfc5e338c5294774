"""Transformers in stages, as ops: a stem, blocks counted through all stages, and down-sampling between the stages."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from spikformer.config import EmbeddingSizes, HierarchicalConfig
from spikformer.engine.lowering.layers import Layers
from spikformer.engine.lowering.transformer import AttentionSizes, add_attention, add_mlp, spiking_stages

Embed = Callable[[str, int, EmbeddingSizes], int]
"""What leads from a buffer to a stage, under a name."""
Mix = Callable[[str, int, int], int]
"""What mixes the tokens in a buffer, in a block of that name and of a stage."""


def spiking_embedding(layers: Layers, name: str, x: int, sizes: EmbeddingSizes) -> int:
    """Branch and shortcut of units that end in a neuron; their spikes are summed."""
    before, beside = sizes.halved[: len(sizes.stages)], sizes.halved[len(sizes.stages) :]
    forked = (sizes.in_channels, *sizes.stages)[-1]
    x = spiking_stages(layers, f"{name}.stages", x, sizes.in_channels, sizes.stages, before, "norm")
    branch = spiking_stages(layers, f"{name}.branch", x, forked, sizes.branch, beside, "norm")
    stride = 2 ** sum(beside)
    shortcut = layers.spiking_conv(f"{name}.shortcut", x, sizes.branch[-1], forked, kernel=1, stride=stride)
    return layers.build.add(name, branch, shortcut)


def membrane_embedding(
    layers: Layers,
    name: str,
    x: int,
    sizes: EmbeddingSizes,
    *,
    strided: bool = False,
    pooled_shortcut: bool = False,
) -> int:
    """Branch and shortcut that read the spikes of one neuron; membranes are summed.

    `strided` convolutions halve by a stride instead of a pool, a `pooled_shortcut` by a pool instead of a stride.
    """
    before, beside = sizes.halved[: len(sizes.stages)], sizes.halved[len(sizes.stages) :]
    forked = (sizes.in_channels, *sizes.stages)[-1]
    x = _membrane_stages(layers, f"{name}.stages", x, sizes.in_channels, sizes.stages, before, strided)
    spikes = layers.fire(f"{name}.neuron", x)
    branch = _membrane_stages(layers, f"{name}.branch", spikes, forked, sizes.branch, beside, strided)
    stride = 1 if pooled_shortcut else 2 ** sum(beside)
    width = sizes.branch[-1]
    shortcut = layers.conv_norm(f"{name}.shortcut", spikes, width, forked, pooled_shortcut, kernel=1, stride=stride)
    return layers.build.add(name, branch, shortcut)


def _membrane_stages(
    layers: Layers, name: str, x: int, in_channels: int, widths: Sequence[int], halved: Sequence[bool], strided: bool
) -> int:
    """BN(Conv(x)) of these widths with neurons between them."""
    for index, (outputs, halves) in enumerate(zip(widths, halved, strict=True)):
        unit = layers.pre_activation_conv if index else layers.conv_norm
        pooled, stride = halves and not strided, 2 if halves and strided else 1
        x = unit(f"{name}.{index}", x, outputs, in_channels, pooled, stride=stride)
        in_channels = outputs
    return x


def stage_attention(layers: Layers, config: HierarchicalConfig, *, membrane: bool) -> Mix:
    """Attention of Q, K and V in the last stage, token attention in the others."""

    def mix(name: str, x: int, stage: int) -> int:
        variant = config.attention if stage == config.last_stage else "token"
        width, threshold = config.widths[stage], config.attention_v_threshold
        attention = AttentionSizes(
            variant, width, config.num_heads, threshold, config.attention_scale, membrane=membrane
        )
        return add_attention(layers, f"{name}.attention", x, attention)

    return mix


def stages(layers: Layers, config: HierarchicalConfig, stem: Embed, down: Embed, mix: Mix, *, membrane: bool) -> int:
    """Every stage: the stem or what halves the map before it, then blocks of a mixer and an MLP."""
    x, block = 0, 0
    for stage, (depth, sizes) in enumerate(zip(config.depths, config.embeddings, strict=True)):
        x = down(f"downsampling.{stage - 1}", x, sizes) if stage else stem("stem", x, sizes)
        width, hidden = config.widths[stage], config.hidden_dims[stage]
        inner_residual = membrane and hidden == width
        for _ in range(depth):
            x, name, block = mix(f"blocks.{block}", x, stage), f"blocks.{block}.mlp", block + 1
            x = add_mlp(layers, name, x, width, hidden, membrane=membrane, inner_residual=inner_residual)
    return x
