"""The multi-step neuron on the native core (kernels/core/lif.cpp); `reference` is its twin, call for call."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

import spikformer._native as _native
from spikformer.neurons.functional import Dynamics, empty_over_time

build_info = _native.build_info


def forward(
    current: Tensor, initial: Tensor | None, gain: float | Tensor, dynamics: Dynamics, keep_membrane: bool
) -> tuple[Tensor, Tensor, Tensor | None]:
    spikes = empty_over_time(current)
    current = _laid_out_as(current, spikes)
    membrane = torch.empty_like(spikes) if keep_membrane else None
    voltage = torch.empty_like(spikes[0])
    _native.lif_forward(
        _rows(current),
        _row(initial, spikes),
        _rows(spikes),
        None if membrane is None else _rows(membrane),
        _rows(voltage[None])[0],
        *_constants(gain, dynamics),
    )
    return spikes, voltage, membrane


def backward(
    grad_spikes: Tensor,
    grad_voltage: Tensor | None,
    membrane: Tensor,
    initial: Tensor | None,
    gain: float | Tensor,
    dynamics: Dynamics,
) -> tuple[Tensor, Tensor, Tensor]:
    grad_current = torch.empty_like(membrane)
    grad_initial = torch.empty_like(membrane[0])
    grad_gain = _native.lif_backward(
        _rows(_laid_out_as(grad_spikes, membrane, repeats=False)),
        _row(grad_voltage, membrane),
        _rows(membrane),
        _row(initial, membrane),
        _rows(grad_current),
        _rows(grad_initial[None])[0],
        *_constants(gain, dynamics),
        str(dynamics.surrogate),
        dynamics.alpha,
    )
    return grad_current, grad_initial, membrane.new_tensor(grad_gain)


def _constants(gain: float | Tensor, dynamics: Dynamics) -> tuple[float, float, float, float]:
    return float(gain), float(dynamics.leaky), dynamics.v_threshold, dynamics.rest


def _laid_out_as(x: Tensor, like: Tensor, repeats: bool = True) -> Tensor:
    """`x` in the memory layout of `like`, copied only if it has another; one step repeated may stay one step."""
    repeated = repeats and x.stride(0) == 0
    if x.stride()[1:] == like.stride()[1:] and (repeated or len(x) == 1 or x.stride(0) == like.stride(0)):
        return x
    return torch.empty_like(like).copy_(x)


def _rows(x: Tensor) -> np.ndarray:
    """Steps by elements in the order they lie in memory, whatever the layout of one step."""
    x = x.detach()
    size = x[0].numel()
    return x.as_strided((len(x), size), (x.stride(0) if len(x) > 1 else size, 1)).numpy()


def _row(x: Tensor | None, like: Tensor) -> np.ndarray | None:
    return None if x is None else _rows(_laid_out_as(x.unsqueeze(0), like[:1]))[0]
