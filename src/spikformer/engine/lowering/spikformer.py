"""Spikformer as a program: patch splitting, position embedding, encoder blocks, head (paper Sec. 3)."""

from __future__ import annotations

from spikformer.config import ModelConfig
from spikformer.engine.lowering.arrays import Arrays, Folded, as_float32, spiking
from spikformer.engine.lowering.registry import register_lowering
from spikformer.engine.ops import Op
from spikformer.engine.program import Builder, Program

_ATTENTIONS = ("ssa", "random", "none")


@register_lowering("spikformer", ModelConfig)
def lower_spikformer(config: ModelConfig, arrays: Arrays) -> Program:
    check_spiking(config)
    network = _Spikformer(config, arrays)
    return Program(network.ops(), config.in_channels, config.time_steps, config.image_size, config.patch_size)


class _Spikformer:
    """Writes the ops part by part; every method returns the buffer it writes."""

    def __init__(self, config: ModelConfig, arrays: Arrays) -> None:
        self.config, self.arrays, self.build = config, arrays, Builder()

    def ops(self) -> tuple[Op, ...]:
        config, take = self.config, self.arrays.take
        stream = self.stem()
        for index in range(config.depth):
            stream = self.block(f"blocks.{index}", stream)
        weights = take("head.weight", config.num_classes, config.embed_dim)
        self.build.read_out("head", stream, as_float32(weights), as_float32(take("head.bias", config.num_classes)))
        return tuple(self.build.ops)

    def stem(self) -> int:
        x, channels = 0, self.config.in_channels
        for index, (outputs, pooled) in enumerate(
            zip(self.config.stage_channels, self.config.pool_stages, strict=True)
        ):
            name = f"stem.stages.{index}"
            x, channels = self.convolution(name, x, outputs, channels), outputs
            x = self.build.pool(f"{name}.pool", x) if pooled else x
        return self.build.add("stem", x, self.convolution("stem.position", x, channels, channels))

    def block(self, name: str, stream: int) -> int:
        """X' = X + SSA(X), X'' = X' + MLP(X')."""
        dim, hidden_dim = self.config.embed_dim, self.config.mlp_dim
        stream = self.build.add(f"{name}.attention", stream, self.attention(f"{name}.attention", stream))
        hidden = self.linear(f"{name}.mlp.hidden", stream, hidden_dim, dim)
        return self.build.add(f"{name}.mlp", stream, self.linear(f"{name}.mlp.output", hidden, dim, hidden_dim))

    def attention(self, name: str, stream: int) -> int:
        config, build, dim = self.config, self.build, self.config.embed_dim
        if config.attention == "none":
            mixed = self.linear(f"{name}.value", stream, dim, dim)
        else:
            parts = ("query", "key", "value")  # side by side: they share their input's events
            query, key, value = (self.linear(f"{name}.{part}", stream, dim, dim) for part in parts)
            if config.qk_pool > 1:
                query = build.pool_tokens(f"{name}.query.pool", query, config.qk_pool)
                key = build.pool_tokens(f"{name}.key.pool", key, config.qk_pool)
            learnt = f"{name}.mixing.scale"
            scale = float(self.arrays.take(learnt)) if config.learnable_scale else config.attention_scale
            mixed = build.attend(f"{name}.mixing", query, key, value, config.num_heads, scale)
        neuron = self.arrays.neuron(f"{name}.neuron", config, config.attention_v_threshold)
        return self.linear(f"{name}.projection", build.fire(f"{name}.neuron", mixed, neuron), dim, dim)

    def convolution(self, name: str, x: int, outputs: int, channels: int) -> int:
        return self.spiking(name, x, self.arrays.convolution(name, outputs, channels))

    def linear(self, name: str, x: int, outputs: int, channels: int) -> int:
        return self.spiking(name, x, self.arrays.linear(name, outputs, channels))

    def spiking(self, name: str, x: int, folded: Folded) -> int:
        return spiking(self.build, name, x, folded, self.arrays.neuron(f"{name}.neuron", self.config))


def check_spiking(config: ModelConfig) -> None:
    """Raise for floats between layers: there are no events to be driven by."""
    if config.neuron not in ("lif", "if", "plif"):
        raise ValueError(
            f"The engine runs on spikes, but this model's neuron is {config.neuron!r}: compile a spiking one, "
            "or run this one in PyTorch."
        )
    if config.pool_after != "neuron":
        raise ValueError(
            f"The engine pools spikes, but this model has pool_after={config.pool_after!r}, a pool of currents: "
            "compile a model with pool_after='neuron', or run this one in PyTorch."
        )
    if config.attention not in _ATTENTIONS:
        raise ValueError(
            f"The engine multiplies spikes, but attention={config.attention!r} has floats in Q, K or V: "
            f"compile a model with {', '.join(_ATTENTIONS)}, or run this one in PyTorch."
        )
