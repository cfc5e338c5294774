"""From a trained model to a plan: each batch norm becomes part of the weights before it.

    BN(W x + b) = γ (W x + b − μ) / √(σ² + ε) + β = W' x + b',    W' = W γ / √(σ² + ε),  b' = (b − μ) γ / √(σ² + ε) + β

Folded in float64, kept in float32. The engine's only file that looks at a model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from spikformer.engine.plan import Block, Layer, Neuron, Plan, check_spiking

if TYPE_CHECKING:
    from torch import Tensor

    from spikformer.layers import EncoderBlock, SpikingConv, SpikingLinear
    from spikformer.models import Spikformer


def fold(model: Spikformer) -> Plan:
    """The plan of a model in eval mode; one with floats between its layers is refused."""
    from spikformer.models.inspection import check_as_configured, unwrap

    model = unwrap(model, "compile_engine")
    if model.training:
        raise ValueError("The engine compiles a model for inference; call model.eval() first.")
    check_spiking(model.config)
    check_as_configured(model, "compile_engine")
    stages, blocks = cast("list[SpikingConv]", model.stem.stages), cast("list[EncoderBlock]", model.blocks)
    return Plan(
        model.config,
        tuple(_fold_conv(f"stem.stages.{index}", stage) for index, stage in enumerate(stages)),
        _fold_conv("stem.position", model.stem.position),
        tuple(_fold_block(f"blocks.{index}", block) for index, block in enumerate(blocks)),
        _float32(_wide(model.head.weight)),
        _float32(_wide(model.head.bias)),
        model.card,
    )


def _fold_block(name: str, block: EncoderBlock) -> Block:
    attention, mlp = block.attention, block.mlp
    mixes = attention.mixes

    def linear(path: str, layer: SpikingLinear) -> Layer:
        return _fold_linear(f"{name}.{path}", layer)

    return Block(
        name=f"{name}.attention",
        query=linear("attention.query", attention.query) if mixes else None,
        key=linear("attention.key", attention.key) if mixes else None,
        value=linear("attention.value", attention.value),
        scale=_number(attention.mixing.scale) if mixes else 1.0,
        mixed=_neuron(attention.neuron),
        projection=linear("attention.projection", attention.projection),
        hidden=linear("mlp.hidden", mlp.hidden),
        output=linear("mlp.output", mlp.output),
    )


def _fold_conv(name: str, layer: SpikingConv) -> Layer:
    scale, shift = _norm(layer.norm)
    weights = _wide(layer.conv.weight).transpose(0, 2, 3, 1)  # [O, 3, 3, C]
    folded = weights.reshape(len(weights), 9, -1) * scale[:, None, None]
    return Layer(name, _float32(folded), _float32(shift), _neuron(layer.neuron))


def _fold_linear(name: str, layer: SpikingLinear) -> Layer:
    scale, shift = _norm(layer.norm)
    weights = _wide(layer.linear.weight)[:, None] * scale[:, None, None]
    bias = shift if layer.linear.bias is None else shift + _wide(layer.linear.bias) * scale
    return Layer(name, _float32(weights), _float32(bias), _neuron(layer.neuron))


def _norm(norm: Any) -> tuple[np.ndarray, np.ndarray]:
    """Scale and shift of a batch norm in inference."""
    scale = _wide(norm.weight) / np.sqrt(_wide(norm.running_var) + norm.eps)
    return scale, _wide(norm.bias) - _wide(norm.running_mean) * scale


def _neuron(neuron: Any) -> Neuron:
    dynamics = neuron.dynamics
    return Neuron(_number(neuron.gain()), float(dynamics.leaky), dynamics.v_threshold, dynamics.v_reset)


def _number(value: float | Tensor) -> float:
    return value if isinstance(value, float) else float(value.detach())


def _wide(tensor: Tensor) -> np.ndarray:
    return tensor.detach().cpu().double().numpy()


def _float32(array: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        folded = np.ascontiguousarray(array, dtype=np.float32)
    if not np.isfinite(folded).all():
        raise ValueError("The model's weights hold NaN or infinity, or become it in float32: its training went wrong.")
    return folded
