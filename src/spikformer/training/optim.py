"""Optimisers by a recipe's word, the learning rate of every iteration, and an average of the weights they leave.

AdamW, SGD with momentum, LAMB, and Muon beside AdamW. All of their state is tensors by parameter, so that a run resumes
to the bit; `state_forms` says which.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from copy import deepcopy
from math import cos, pi
from typing import Any, overload

import torch
from torch import Tensor, nn

from spikformer.models import SpikingNetwork
from spikformer.training.recipe import Optimiser, Recipe

_MOMENTUM = 0.9  # of SGD, in every recipe that uses it
_MUON_MOMENTUM = 0.95
Form = tuple[torch.Size, torch.dtype]


def build_optimiser(model: SpikingNetwork, weight_decay: float, kind: Optimiser = "adamw") -> torch.optim.Optimizer:
    """The optimiser over what learns. Only matrices and kernels decay, as the model says."""
    kept = model.no_weight_decay()
    learning = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    decaying = {name: parameter for name, parameter in learning.items() if name not in kept}
    others = [parameter for name, parameter in learning.items() if name in kept]
    if kind == "muon":
        head = {f"head.{name}" for name, _ in model.head.named_parameters()}
        hidden = [parameter for name, parameter in decaying.items() if name not in head and parameter.ndim > 1]
        rest = [parameter for name, parameter in decaying.items() if name in head or parameter.ndim < 2]
        return MuonWithAdamW(hidden, [_group(rest, weight_decay), _group(others, 0.0)], weight_decay)
    groups = [_group(decaying.values(), weight_decay), _group(others, 0.0)]
    if kind == "sgd":
        return torch.optim.SGD(groups, momentum=_MOMENTUM)
    if kind == "lamb":
        groups[1]["adapts"] = False  # as in the authors' code and timm's: what does not decay takes Adam's step
        return Lamb(groups)
    return torch.optim.AdamW(groups)


def _group(parameters: Iterable[nn.Parameter], weight_decay: float) -> dict[str, Any]:
    return {"params": list(parameters), "weight_decay": weight_decay}


def set_learning_rate(optimiser: torch.optim.Optimizer, learning_rate: float) -> None:
    for group in optimiser.param_groups:
        group["lr"] = learning_rate


def state_forms(optimiser: torch.optim.Optimizer, parameter: nn.Parameter) -> dict[str, Form]:
    """Shape and dtype of each tensor that the optimiser keeps of a parameter after its first iteration."""
    like = (parameter.shape, parameter.dtype)
    if isinstance(optimiser, torch.optim.SGD):
        return {"momentum_buffer": like}
    if isinstance(optimiser, MuonWithAdamW) and any(parameter is each for each in optimiser.hidden):
        return {"momentum_buffer": (torch.Size((len(parameter), parameter[0].numel())), parameter.dtype)}
    return {"step": (torch.Size(), torch.float32), "exp_avg": like, "exp_avg_sq": like}


class _Optimizer(torch.optim.Optimizer, ABC):
    """`step` as PyTorch has it, around an `update`."""

    @overload
    def step(self, closure: None = None) -> None: ...
    @overload
    def step(self, closure: Callable[[], float]) -> float: ...
    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        loss = None if closure is None else closure()
        with torch.no_grad():
            self.update()
        return loss

    @abstractmethod
    def update(self) -> None:
        """One step of every parameter, by its gradient."""


class Lamb(_Optimizer):
    """LAMB (You et al., 2020): Adam's step, scaled for each tensor to a share of the tensor's own norm.

        m ← β₁·m + (1 − β₁)·g,  v ← β₂·v + (1 − β₂)·g²,  r = m̂/(√v̂ + ε) + λ·w,  w ← w − η·(‖w‖/‖r‖)·r

    with m̂ = m/(1 − β₁ᵗ) and v̂ = v/(1 − β₂ᵗ). The ratio is 1 where a norm is 0, and in groups with `adapts` False.
    """

    def __init__(
        self,
        params: Iterable[dict[str, Any]],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.0,
    ) -> None:
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "adapts": True}
        super().__init__(params, defaults)

    def update(self) -> None:
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, parameter.grad, group)

    def _update(self, weight: nn.Parameter, gradient: Tensor, group: dict[str, Any]) -> None:
        state, (beta1, beta2) = self.state[weight], group["betas"]
        if not state:
            state["step"] = torch.zeros(())
            state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(weight), torch.zeros_like(weight)
        state["step"] += 1
        count, mean, square = state["step"].item(), state["exp_avg"], state["exp_avg_sq"]
        mean.lerp_(gradient, 1 - beta1)
        square.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        update = (mean / (1 - beta1**count)) / ((square / (1 - beta2**count)).sqrt_().add_(group["eps"]))
        update.add_(weight, alpha=group["weight_decay"])
        ratio = torch.ones((), dtype=weight.dtype, device=weight.device)
        if group["adapts"]:
            size, length = weight.norm(), update.norm()
            ratio = torch.where((size > 0) & (length > 0), size / length, ratio)  # the host need not know it
        weight.sub_(update.mul_(ratio * group["lr"]))


class MuonWithAdamW(_Optimizer):
    """Muon (Jordan et al., 2024) on matrices and on kernels, seen as matrices [out, in·h·w]; AdamW on the rest.

        m ← μ·m + (1 − μ)·g,  w ← (1 − η·λ)·w − η·0.2·√max(out, in)·O((1 − μ)·g + μ·m)

    O sets singular values to about 1, see `orthogonalise`. The factor gives Muon's updates the size of AdamW's, so that
    one learning rate η and one decay λ serve both. It is the step of torch.optim.Muon with "match_rms_adamw", but in
    float32: torch multiplies in bfloat16, which a CPU without such products emulates slowly.
    """

    def __init__(self, hidden: list[nn.Parameter], rest: list[dict[str, Any]], weight_decay: float) -> None:
        super().__init__([_group(hidden, weight_decay), *rest], {"lr": 1e-3})
        self._adamw = torch.optim.AdamW([_group(group["params"], group["weight_decay"]) for group in rest])

    @property
    def hidden(self) -> list[nn.Parameter]:
        """What Muon updates."""
        return list(self.param_groups[0]["params"])

    def update(self) -> None:
        hidden, *rest = self.param_groups
        for parameter in hidden["params"]:
            if parameter.grad is not None:
                self._update(parameter, parameter.grad.flatten(1), hidden["lr"], hidden["weight_decay"])
        for ours, theirs in zip(rest, self._adamw.param_groups, strict=True):
            theirs["lr"] = ours["lr"]
            for parameter in theirs["params"]:
                # One state for both: that of a resumed run is restored into ours.
                self._adamw.state[parameter] = self.state[parameter]
        self._adamw.step()

    def _update(self, weight: nn.Parameter, gradient: Tensor, rate: float, weight_decay: float) -> None:
        state = self.state[weight]
        if not state:
            state["momentum_buffer"] = torch.zeros_like(gradient)
        momentum = state["momentum_buffer"].lerp_(gradient, 1 - _MUON_MOMENTUM)
        update = orthogonalise(gradient.lerp(momentum, _MUON_MOMENTUM))
        size = 0.2 * max(update.shape) ** 0.5
        weight.mul_(1 - rate * weight_decay).sub_(update.view_as(weight), alpha=rate * size)


def orthogonalise(matrix: Tensor) -> Tensor:
    """U·S'·Vᵀ of U·S·Vᵀ, with singular values S' between about 0.7 and 1.2, by five Newton-Schulz iterations.

    X ← a·X + (b·A + c·A²)·X with A = X·Xᵀ, from X = matrix/‖matrix‖. The coefficients are Jordan's: those of the
    steepest start, not those that converge to 1.
    """
    a, b, c = 3.4445, -4.7750, 2.0315
    wide = matrix.shape[0] <= matrix.shape[1]
    x = matrix if wide else matrix.T
    x = x / x.norm().clamp(min=1e-7)
    for _ in range(5):
        gram = x @ x.T
        x = torch.addmm(x, torch.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x if wide else x.T


def learning_rate(recipe: Recipe, epoch: float) -> float:
    """Linear warm-up, half a cosine or a staircase, constant cool-down; `epoch` counts with fractions.

    Official: timm's cosine does not start after the warm-up but at epoch 0, underneath it; so does the staircase.
    """
    if epoch >= recipe.epochs:
        return recipe.final_learning_rate
    if epoch < recipe.warmup_epochs:
        rise = recipe.learning_rate - recipe.warmup_learning_rate
        return recipe.warmup_learning_rate + rise * epoch / recipe.warmup_epochs
    if recipe.drop_epochs is not None:
        return recipe.learning_rate * 0.1 ** (epoch // recipe.drop_epochs)
    swing = recipe.learning_rate - recipe.final_learning_rate
    return recipe.final_learning_rate + swing * (1 + cos(pi * epoch / recipe.epochs)) / 2


class WeightAverage:
    """A moving average of weights and of norms' statistics: w̄ ← d·w̄ + (1 − d)·w after every iteration.

    Early on d is (1 + iteration)/(10 + iteration), so that the initial weights are soon forgotten.
    torch.optim.swa_utils has no such warm-up: its first update copies the weights.
    """

    def __init__(self, model: SpikingNetwork, decay: float) -> None:
        self.model = deepcopy(model).requires_grad_(False)
        self.decay = decay

    @torch.no_grad()
    def update(self, model: SpikingNetwork, iteration: int) -> None:
        decay = min(self.decay, (1 + iteration) / (10 + iteration))
        weights = model.state_dict()
        for name, average in self.model.state_dict().items():
            if average.is_floating_point():
                average.lerp_(weights[name], 1 - decay)
            else:  # a count of batches
                average.copy_(weights[name])
