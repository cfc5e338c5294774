"""All time steps of a neuron at once, with a backward pass by hand.

Autograd through `steps` keeps about six tensors per step. Here one is kept, the membrane H: spikes, resets and
surrogate all follow from it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from spikformer.neurons.backend import is_observed, kernels_for
from spikformer.neurons.dynamics import Dynamics
from spikformer.neurons.reference import by_steps


class _MultiStep(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, current: Tensor, initial: Tensor | None, gain: float | Tensor, dynamics: Dynamics
    ) -> tuple[Tensor, Tensor]:
        spikes, voltage, membrane = kernels_for(current).forward(current, initial, gain, dynamics, keep_membrane=True)
        learnt_gain = gain if isinstance(gain, Tensor) else None
        # Where the membrane started matters to a learnable gain only.
        ctx.save_for_backward(membrane, None if learnt_gain is None else initial, learnt_gain)
        ctx.fixed_gain, ctx.dynamics = None if isinstance(gain, Tensor) else gain, dynamics
        ctx.set_materialize_grads(False)
        return spikes, voltage

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        grad_spikes, grad_voltage = grads
        membrane, initial, learnt_gain = ctx.saved_tensors
        gain = ctx.fixed_gain if learnt_gain is None else learnt_gain
        if grad_spikes is None:
            grad_spikes = torch.zeros_like(membrane)
        with torch.no_grad():
            gradients = kernels_for(membrane).backward(grad_spikes, grad_voltage, membrane, initial, gain, ctx.dynamics)
        if torch.is_grad_enabled():  # create_graph=True
            gradients = _OnlyOnce.apply(*(gradient.detach().requires_grad_() for gradient in gradients))
        grad_current, grad_initial, grad_gain = gradients
        return (
            grad_current,
            grad_initial if ctx.needs_input_grad[1] else None,
            None if learnt_gain is None else grad_gain,
            None,
        )


class _OnlyOnce(torch.autograd.Function):
    """Gradients that cannot be differentiated: the membrane, on which they depend, is not part of the graph."""

    @staticmethod
    def forward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, ...]:
        return tuple(gradient.view_as(gradient) for gradient in gradients)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> None:
        raise RuntimeError(
            "A neuron's gradient cannot be differentiated again by autograd; use torch.func, such as "
            "torch.func.grad(torch.func.grad(f)) or torch.func.hessian(f)."
        )


def multistep(
    current: Tensor, initial: Tensor | None, gain: float | Tensor, dynamics: Dynamics
) -> tuple[Tensor, Tensor]:
    """Currents [T, …] to spikes [T, …] and the last voltage […].

    Under mixed precision the membrane stays in float32: a half-precision current is widened here, and its spikes,
    exact in any format, come back as narrow as it was.
    """
    observed = is_observed()
    if not current.is_floating_point() or (not observed and len(current) == 0):
        raise ValueError(
            "A neuron expects floating-point currents [T, …] of at least one step, "
            f"got {current.dtype} {list(current.shape)}."
        )
    narrow = current.dtype
    if narrow in (torch.float16, torch.bfloat16):
        current = current.float()
    if initial is not None:
        initial = initial.to(current.dtype)
    if observed:
        spikes, voltage = by_steps(current, initial, gain, dynamics)
        return spikes.to(narrow), voltage
    tensors = [x for x in (current, initial, gain) if isinstance(x, Tensor)]
    if torch.is_grad_enabled() and any(x.requires_grad for x in tensors):
        spikes, voltage = _MultiStep.apply(current, initial, gain, dynamics)
    else:
        spikes, voltage, _ = kernels_for(current).forward(current, initial, gain, dynamics, keep_membrane=False)
    return spikes.to(narrow), voltage
