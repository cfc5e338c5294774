"""The unit everything is built of: a weight, a batch norm, a neuron."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from spikformer.config import ModelConfig
from spikformer.layers.products import Conv2d, Linear
from spikformer.layers.synced_norm import SyncedBatchNorm
from spikformer.layers.time import merge_time, over_time, repeat_over_time, split_time
from spikformer.neurons import Activation, SpikingNeuron, build_neuron
from spikformer.neurons.backend import is_observed


class SpikingConv(nn.Module):
    """SN(BN(Conv3×3(x))) on [T, B, C, H, W]."""

    def __init__(self, in_channels: int, out_channels: int, config: ModelConfig) -> None:
        super().__init__()
        self.conv = Conv2d(in_channels, out_channels, kernel_size=3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(out_channels)
        self.neuron = build_neuron(config)

    def forward(self, x: Tensor, voltage: Tensor | None = None, repeats: int = 1) -> tuple[Tensor, Tensor | None]:
        """One step of input with `repeats` T is shown T times: its convolution and norm are computed once."""
        samples = self.conv(channels_last(merge_time(x)))
        current = split_time(batch_norm(self.norm, samples, repeats), x.shape[0])
        return self.neuron(repeat_over_time(current, x.shape[0] * repeats), voltage)

    def at_rest(self, batch_size: int, height: int, width: int, like: Tensor) -> Tensor | None:
        return self.neuron.at_rest(batch_size, self.conv.out_channels, height, width, like=like)


class SpikingLinear(nn.Module):
    """SN(BN(x W + b)) on tokens [T, B, N, D]; the neuron may be an activation where a variant wants floats."""

    def __init__(self, in_features: int, out_features: int, bias: bool, neuron: SpikingNeuron | Activation) -> None:
        super().__init__()
        self.linear = Linear(in_features, out_features, bias=bias)
        self.norm = nn.BatchNorm1d(out_features)
        self.neuron = neuron

    def forward(self, x: Tensor, voltage: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        return self.neuron(over_time(self._current, x), voltage)

    def _current(self, x: Tensor) -> Tensor:
        y = self.linear(x)
        return self.norm(y.flatten(0, 1)).view_as(y)

    def at_rest(self, batch_size: int, num_tokens: int, like: Tensor) -> Tensor | None:
        return self.neuron.at_rest(batch_size, num_tokens, self.linear.out_features, like=like)


def channels_last(x: Tensor) -> Tensor:
    """[B, C, H, W] with channels innermost in memory: fast to convolve, and tokens then are a view of the map."""
    if is_observed():  # neither vmap nor ONNX knows of layouts
        return x
    x = x.contiguous(memory_format=torch.channels_last)
    _, channels, height, width = x.shape
    if not torch.compiler.is_compiling() and 1 in (x.shape[0], channels):
        # A dimension of one leaves its stride undefined, and PyTorch guesses the layout from the strides.
        x = x.as_strided(x.shape, (channels * height * width, 1, width * channels, channels))
    return x


def batch_norm(norm: nn.Module, x: Tensor, repeats: int) -> Tensor:
    """Batch norm of samples that each stand for `repeats` equal ones.

    Mean and variance do not see the copies; only the running variance does, which is unbiased by n/(n − 1).
    """
    if isinstance(norm, SyncedBatchNorm):
        return norm(x, repeats)
    if not norm.training or repeats == 1 or not isinstance(norm, nn.BatchNorm2d):  # torch's SyncBatchNorm cannot
        return norm(x)
    if norm.running_var is None or norm.num_batches_tracked is None:  # track_running_stats=False
        return norm(x)
    running_var = norm.running_var.data  # .data, because autograd guards the buffer it has saved against any change
    momentum = 1 / (1 + float(norm.num_batches_tracked)) if norm.momentum is None else norm.momentum
    kept = running_var * (1 - momentum)
    y = norm(x)
    n = x.numel() // x.shape[1]  # Official: normalises all T copies, so its n is `repeats` times ours
    running_var.sub_(kept).mul_(repeats * (n - 1) / (repeats * n - 1)).add_(kept)
    return y
