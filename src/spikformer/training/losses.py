"""Terms of the loss: of a network's readouts [T, B, K], and of the synaptic operations that its spikes cause.

Targets are shares of classes [B, K], as mixing and smoothing leave them, or labels [B].
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from spikformer.layers.attention import TokenMixing
from spikformer.models import SpikingNetwork


def mean_logit_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy of the mean readout [B, K]; in float32 at least."""
    return F.cross_entropy(_at_least_float32(logits), targets)


def tet_loss(readouts: Tensor, targets: Tensor, weight: float = 1e-3) -> Tensor:
    """(1 − λ)·mean over steps of CE(readout_t, y) + λ·mean of (readout − 1)², of readouts [T, B, K].

    Temporal efficient training (Deng et al., 2022): every step learns to answer on its own, and the second term keeps
    readouts near the threshold. λ is `weight`.
    """
    readouts = _at_least_float32(readouts)
    entropy = F.cross_entropy(readouts.flatten(0, 1), _at_every_step(targets, len(readouts)))
    return (1 - weight) * entropy + weight * (readouts - 1).square().mean()


def distillation_loss(readouts: Tensor, teacher_logits: Tensor, temperature: float) -> Tensor:
    """τ²·KL(softmax(teacher/τ) ‖ softmax(readout/τ)), the mean over samples and steps of readouts [T, B, K].

    Hinton et al., 2015: τ² keeps the gradient's size when the temperature τ changes.
    """
    learnt = F.log_softmax(_at_least_float32(readouts).flatten(0, 1) / temperature, -1)
    wanted = F.log_softmax(_at_least_float32(teacher_logits) / temperature, -1)
    wanted = _at_every_step(wanted, len(readouts))
    return temperature**2 * F.kl_div(learnt, wanted, reduction="batchmean", log_target=True)


def _at_every_step(targets: Tensor, time_steps: int) -> Tensor:
    """Targets [B, …] repeated to [T·B, …]."""
    return targets.expand(time_steps, *targets.shape).flatten(0, 1)


def _at_least_float32(x: Tensor) -> Tensor:
    return x.float() if x.dtype.itemsize < 4 else x


class SynapticOperations:
    """Of a forward pass, the synaptic operations that its spikes cause, over those if all of them were 1.

        with operations.watch(model):
            model(x)
        operations.share()      # a tensor with a gradient, by the neurons' surrogate

    A spike costs as many operations as weights read it: its fan-out. Integers, as sums of spikes are, count as many
    spikes. Products of something else, such as the image, a membrane or a mean, are not counted: which they are, the
    first pass shows.
    """

    def __init__(self) -> None:
        self._of_spikes: dict[nn.Module, bool] = {}
        self._caused: list[Tensor] = []
        self._possible = 0.0

    @contextmanager
    def watch(self, model: SpikingNetwork) -> Iterator[None]:
        self._caused, self._possible = [], 0.0
        products = (module for module in model.modules() if isinstance(module, nn.Conv2d | nn.Linear | TokenMixing))
        handles = [module.register_forward_pre_hook(self._count) for module in products]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def share(self) -> Tensor:
        return torch.stack(self._caused).sum() / self._possible

    def _count(self, module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        if module not in self._of_spikes:
            self._of_spikes[module] = all(_made_of_spikes(each) for each in inputs)
        if self._of_spikes[module]:
            for spikes in inputs:
                fan_out = _fan_out(module, spikes)
                wide = torch.promote_types(spikes.dtype, torch.float32)
                self._caused.append(spikes.sum(dtype=wide) * fan_out)
                self._possible += spikes.numel() * fan_out


def _made_of_spikes(x: Tensor) -> bool:
    """Whether x is made of spikes by this network: integers of at least 0, with a gradient, which frames lack."""
    values = x.detach()
    return x.requires_grad and bool((values >= 0).all() and (values == values.round()).all())


def _fan_out(module: nn.Module, spikes: Tensor) -> float:
    """Weights that read one spike; at the edge of a map they are fewer, which is left out."""
    if isinstance(module, nn.Conv2d):
        return module.weight.numel() / module.weight.shape[1] / module.groups / module.stride[0] / module.stride[1]
    if isinstance(module, nn.Linear):
        return module.out_features
    assert isinstance(module, TokenMixing)
    return spikes.shape[-1] / module.num_heads  # of Q (Kᵀ V): each spike meets a row of a head's matrix
