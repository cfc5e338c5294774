"""Spikformer as a program: patch splitting, position embedding, encoder blocks, head (paper Sec. 3)."""

from __future__ import annotations

from spikformer.config import ModelConfig
from spikformer.engine.lowering import register_lowering
from spikformer.engine.lowering.arrays import Arrays, as_float32, spiking
from spikformer.engine.program import Builder, Program

_ATTENTIONS = ("ssa", "random", "none")


@register_lowering("spikformer")
def lower_spikformer(config: ModelConfig, arrays: Arrays) -> Program:
    check_spiking(config)
    build = Builder()
    x = 0
    for index, pooled in enumerate(config.pool_stages):
        name = f"stem.stages.{index}"
        x = _spiking(build, config, arrays, name, "conv", x)
        x = build.pool(f"{name}.pool", x) if pooled else x
    position = _spiking(build, config, arrays, "stem.position", "conv", x)
    stream = build.add("stem", x, position)
    for index in range(config.depth):
        stream = _block(build, config, arrays, f"blocks.{index}", stream)
    build.read_out("head", stream, as_float32(arrays.take("head.weight")), as_float32(arrays.take("head.bias")))
    return Program(tuple(build.ops), config.in_channels, config.time_steps, config.image_size, config.patch_size)


def _block(build: Builder, config: ModelConfig, arrays: Arrays, name: str, stream: int) -> int:
    """X' = X + SSA(X), X'' = X' + MLP(X')."""
    attended = _attention(build, config, arrays, f"{name}.attention", stream)
    stream = build.add(f"{name}.attention", stream, attended)
    hidden = _spiking(build, config, arrays, f"{name}.mlp.hidden", "linear", stream)
    refined = _spiking(build, config, arrays, f"{name}.mlp.output", "linear", hidden)
    return build.add(f"{name}.mlp", stream, refined)


def _attention(build: Builder, config: ModelConfig, arrays: Arrays, name: str, stream: int) -> int:
    if config.attention == "none":
        mixed = _spiking(build, config, arrays, f"{name}.value", "linear", stream)
    else:
        parts = ("query", "key", "value")  # side by side: they share their input's events
        query, key, value = (_spiking(build, config, arrays, f"{name}.{part}", "linear", stream) for part in parts)
        if config.qk_pool > 1:
            query = build.pool_tokens(f"{name}.query.pool", query, config.qk_pool)
            key = build.pool_tokens(f"{name}.key.pool", key, config.qk_pool)
        learnt = f"{name}.mixing.scale"
        scale = float(arrays.take(learnt)) if config.learnable_scale else config.attention_scale
        mixed = build.attend(f"{name}.mixing", query, key, value, config.num_heads, scale)
    neuron = arrays.neuron(f"{name}.neuron", config, config.attention_v_threshold)
    return _spiking(build, config, arrays, f"{name}.projection", "linear", build.fire(f"{name}.neuron", mixed, neuron))


def _spiking(build: Builder, config: ModelConfig, arrays: Arrays, name: str, product: str, x: int) -> int:
    return spiking(build, name, x, arrays.folded(name, product), arrays.neuron(f"{name}.neuron", config))


def check_spiking(config: ModelConfig) -> None:
    """Raise for floats between layers: there are no events to be driven by."""
    if config.neuron in ("relu", "gelu"):
        raise ValueError(
            f"The engine runs on spikes, but this model's neuron is {config.neuron!r}: compile a spiking one, "
            "or run this one in PyTorch."
        )
    if config.attention not in _ATTENTIONS:
        raise ValueError(
            f"The engine multiplies spikes, but attention={config.attention!r} has floats in Q, K or V: "
            f"compile a model with {', '.join(_ATTENTIONS)}, or run this one in PyTorch."
        )
