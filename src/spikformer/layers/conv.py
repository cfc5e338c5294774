"""Convolutions on maps [T, B, C, H, W], with a batch norm and a neuron."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from spikformer.config import PoolAfter
from spikformer.layers.linear import by_sample
from spikformer.layers.sync_norm import SyncedBatchNorm
from spikformer.layers.time import Stream, apply_neuron, merge_time, over_time, repeat_over_time, split_time
from spikformer.neurons import LIF, NeuronFactory


class Conv2d(nn.Conv2d):
    """On samples [B, in_channels, H, W]."""

    def forward(self, x: Tensor) -> Tensor:
        return by_sample(self._convolved, x)

    def _convolved(self, x: Tensor) -> Tensor:
        if self.kernel_size != (1, 1) or self.stride == (1, 1) or self.padding != (0, 0):
            return super().forward(x)
        # The positions that it reads, then no stride: oneDNN's backward pass of a strided 1×1 convolution writes beyond
        # its memory for 6 channels, channels last (PyTorch 2.13, AVX2).
        rows, columns = self.stride
        read = channels_last(x[..., ::rows, ::columns])
        return F.conv2d(read, self.weight, self.bias, groups=self.groups)


class ConvNorm(nn.Module):
    """BN(Conv(x)) on [T, B, C, H, W], max-pooled if `pooled`: the current of a neuron, or a membrane to add to.

    Padded by half a kernel, so that a stride of s reads positions 0, s, 2s, … `copies_counted` is whether the running
    variance counts a static image T times, as if each copy were normalised, or once.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        pooled: bool = False,
        *,
        kernel_size: int = 3,
        stride: int = 1,
        groups: int = 1,
        bias: bool = False,
        copies_counted: bool = True,
    ) -> None:
        super().__init__()
        self.conv = Conv2d(
            in_channels, out_channels, kernel_size, stride, padding=kernel_size // 2, groups=groups, bias=bias
        )
        self.norm = nn.BatchNorm2d(out_channels)
        self.pooled, self.copies_counted = pooled, copies_counted

    def current(self, x: Tensor, repeats: int = 1) -> Tensor:
        """One step of input with `repeats` T is repeated T times: convolution, norm and pool are computed once."""
        copies = repeats if self.copies_counted else 1
        samples = batch_norm(self.norm, self.conv(channels_last(merge_time(x))), copies)
        current = split_time(halve(samples) if self.pooled else samples, x.shape[0])
        return repeat_over_time(current, x.shape[0] * repeats)

    def forward(self, x: Tensor, stream: Stream | None = None, repeats: int = 1) -> Tensor:
        return self.current(x, repeats)


class SpikingConv(ConvNorm):
    """SN(BN(Conv(x))) on [T, B, C, H, W], with a max-pool after the norm, after the neuron, or nowhere."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        neuron: NeuronFactory = LIF,
        pool_after: PoolAfter | None = None,
        *,
        kernel_size: int = 3,
        stride: int = 1,
        copies_counted: bool = True,
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            pooled=pool_after == "norm",
            kernel_size=kernel_size,
            stride=stride,
            copies_counted=copies_counted,
        )
        self.neuron = neuron()
        self.pools_spikes = pool_after == "neuron"

    def forward(self, x: Tensor, stream: Stream | None = None, repeats: int = 1) -> Tensor:
        spikes = apply_neuron(self.neuron, self.current(x, repeats), stream)
        return over_time(halve, spikes) if self.pools_spikes else spikes


class PreActivationConv(ConvNorm):
    """BN(Conv(SN(x))): the neuron reads a membrane [T, B, C, H, W], so that the convolution sees spikes."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        neuron: NeuronFactory = LIF,
        pooled: bool = False,
        *,
        kernel_size: int = 3,
        stride: int = 1,
        groups: int = 1,
        bias: bool = False,
    ) -> None:
        super().__init__(
            in_channels, out_channels, pooled, kernel_size=kernel_size, stride=stride, groups=groups, bias=bias
        )
        self.neuron = neuron()

    def forward(self, x: Tensor, stream: Stream | None = None, repeats: int = 1) -> Tensor:
        return self.current(apply_neuron(self.neuron, x, stream), repeats)


def halve(x: Tensor) -> Tensor:
    """Max-pool 3×3 with stride 2 on [B, C, H, W]: of spikes, one anywhere in the window is a spike."""
    return F.max_pool2d(channels_last(x), kernel_size=3, stride=2, padding=1)


def channels_last(x: Tensor) -> Tensor:
    """[B, C, H, W] with channels innermost in memory: fast to convolve, and tokens then are a view of the map."""
    if torch.jit.is_tracing() or _in_transform():  # neither vmap nor ONNX supports memory layouts
        return x
    x = x.contiguous(memory_format=torch.channels_last)
    _, channels, height, width = x.shape
    if not torch.compiler.is_compiling() and 1 in (x.shape[0], channels):
        # A dimension of one leaves its stride undefined, and PyTorch guesses the layout from the strides.
        x = x.as_strided(x.shape, (channels * height * width, 1, width * channels, channels))
    return x


def _in_transform() -> bool:
    return not torch.compiler.is_compiling() and torch._C._functorch.maybe_current_level() is not None


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
