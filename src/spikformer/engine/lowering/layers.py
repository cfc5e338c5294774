"""Layers as ops, under the names of the model's modules: products, norms, neurons, pools and the head.

An architecture's lowering strings them together. A product's op has the name of its layer, so that the layer's weights,
neuron and pool are found below it: `stem.stages.0`, `stem.stages.0.neuron`, `stem.stages.0.pool`.
"""

from __future__ import annotations

from spikformer.config import NetworkConfig, PoolAfter
from spikformer.engine.lowering.arrays import Arrays, as_float32
from spikformer.engine.program import Builder, Program
from spikformer.errors import FieldError


class Layers:
    """Writes the ops of a network layer by layer; every method returns the number of the buffer it writes."""

    def __init__(self, config: NetworkConfig, arrays: Arrays) -> None:
        if config.mixes_samples:
            raise FieldError(
                "batch_leak",
                "The engine computes every sample on its own, but samples of a batch leak into each other in this "
                "network: compile one with batch_leak=False, or run this one in PyTorch.",
            )
        self.config, self.arrays, self.build = config, arrays, Builder()

    def fire(self, name: str, x: int, v_threshold: float | None = None) -> int:
        """The config's neuron, at its usual threshold unless another is given."""
        return self.build.fire(name, x, self.arrays.neuron(name, self.config, v_threshold))

    def conv_norm(
        self, name: str, x: int, outputs: int, channels: int, pooled: bool = False, *, kernel: int = 3, stride: int = 1
    ) -> int:
        """BN(Conv(x)), max-pooled if `pooled`."""
        currents = self.build.convolve(name, x, *self.arrays.convolution(name, outputs, channels, kernel), stride)
        return self.build.pool(f"{name}.pool", currents) if pooled else currents

    def spiking_conv(
        self,
        name: str,
        x: int,
        outputs: int,
        channels: int,
        pool_after: PoolAfter | None = None,
        *,
        kernel: int = 3,
        stride: int = 1,
    ) -> int:
        """SN(BN(Conv(x))), with a max-pool of currents after the norm, of spikes after the neuron, or without one."""
        currents = self.conv_norm(name, x, outputs, channels, pool_after == "norm", kernel=kernel, stride=stride)
        spikes = self.fire(f"{name}.neuron", currents)
        return self.build.pool(f"{name}.pool", spikes) if pool_after == "neuron" else spikes

    def pre_activation_conv(
        self, name: str, x: int, outputs: int, channels: int, pooled: bool = False, *, stride: int = 1
    ) -> int:
        """BN(Conv(SN(x)))."""
        return self.conv_norm(name, self.fire(f"{name}.neuron", x), outputs, channels, pooled, stride=stride)

    def pre_activation_depthwise(self, name: str, x: int, channels: int, kernel: int) -> int:
        """BN(DWConv(SN(x))): each channel with a window of its own."""
        spikes = self.fire(f"{name}.neuron", x)
        return self.build.convolve_depthwise(name, spikes, *self.arrays.depthwise(name, channels, kernel))

    def linear_norm(self, name: str, x: int, outputs: int, channels: int) -> int:
        """BN(x W + b)."""
        return self.build.convolve(name, x, *self.arrays.linear(name, outputs, channels))

    def spiking_linear(self, name: str, x: int, outputs: int, channels: int) -> int:
        """SN(BN(x W + b))."""
        return self.fire(f"{name}.neuron", self.linear_norm(name, x, outputs, channels))

    def pre_activation_linear(self, name: str, x: int, outputs: int, channels: int) -> int:
        """BN(SN(x) W + b)."""
        return self.linear_norm(name, self.fire(f"{name}.neuron", x), outputs, channels)

    def head_spikes(self, x: int) -> int:
        """The spikes of a neuron in front of the head, which reads the mean over positions."""
        return self.fire("head_neuron", self.build.mean("head_neuron.mean", x))

    def program(self, x: int, features: int) -> Program:
        """The program that ends with the config's head over the mean of what a buffer holds."""
        config, take = self.config, self.arrays.take
        weights, bias = take("head.weight", config.num_classes, features), take("head.bias", config.num_classes)
        self.build.read_out("head", x, as_float32(weights), as_float32(bias))
        ops = tuple(self.build.ops)
        return Program(ops, config.in_channels, config.time_steps, config.image_size, config.patch_size)
