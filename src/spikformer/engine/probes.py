"""Looking into a program while it runs: where the time goes, which neurons are tapped, and what they are made to do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spikformer.engine.program import Program
from spikformer.engine.reference import Words, pack_spikes
from spikformer.errors import FieldError, UnknownNameError


@dataclass(frozen=True)
class OpProfile:
    """What one op with a product did in a call. Products that share their input, such as Q, K and V, count as one."""

    name: str
    list_ms: float
    """Counting the events, and listing them where they are added."""
    product_ms: float
    """Adding or multiplying weights, and the neurons."""
    density: float | None
    """The share of inputs that are not zero, over all steps. None for pixels and for attention's product."""
    dense_share: float
    """Of the samples, those that were computed densely."""


def profile_of(report: dict[str, Any]) -> OpProfile:
    """Of what the native core counted."""
    return OpProfile(
        name=report["name"],
        list_ms=report["list_seconds"] * 1e3,
        product_ms=report["product_seconds"] * 1e3,
        density=report["additions"] / report["inputs"] if report["inputs"] else None,
        dense_share=report["dense_samples"] / report["samples"],
    )


def chosen_neurons(program: Program, names: Iterable[str] | None) -> list[str]:
    """The names of ops with neurons, of all or of those given."""
    neurons = [op.name for _, op in program.state_ops()]
    names = neurons if names is None else list(names)
    if unknown := [name for name in names if name not in neurons]:
        raise UnknownNameError("op with neurons", unknown[0], neurons)
    return names


def packed_intervention(
    program: Program, name: str, silence: Sequence[int], replace: np.ndarray | None, noise: float
) -> tuple[Words | None, Words]:
    """For the native core: the spikes that replace those of a neuron, [B, positions, T, words], and channels kept."""
    chosen_neurons(program, [name])
    values = program.values(*(program.image_size or (program.patch_size, program.patch_size)))
    channels = next(values[number].channels for number, op in program.state_ops() if op.name == name)
    if not all(0 <= channel < channels for channel in silence):
        message = f"silence must list channels of {name}, from 0 to {channels - 1}, got {list(silence)}."
        raise FieldError("silence", message)
    if not 0 <= noise <= 1:
        raise FieldError("noise", f"noise must be a probability, from 0 to 1, got {noise!r}.")
    if replace is not None and not (
        replace.dtype == bool and replace.ndim == 4 and replace.shape[-1] == channels and replace.size
    ):
        raise FieldError(
            "replace", f"replace must be bool [T, B, positions, {channels}], got {replace.dtype} {list(replace.shape)}."
        )
    if not len(silence) and replace is None and not noise:
        raise FieldError("silence", "An intervention needs silence, replace or noise.")
    kept = np.ones(channels, bool)
    kept[list(silence)] = False
    words = None if replace is None else pack_spikes(np.ascontiguousarray(np.moveaxis(replace, 0, 2)))
    return words, pack_spikes(kept)
