"""What this package promises of its networks, as checks that anybody can run: `spikformer verify`.

A section for each architecture; what is checked, and how, is in `checks`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import lru_cache, partial
from pathlib import Path

import torch

from spikformer.analysis.golden import FAMILY, GOLDEN_FOLDER, list_goldens, load_golden
from spikformer.analysis.specimens import shrunk, specimen
from spikformer.layers.attention import key_value_first, query_key_first
from spikformer.models import SpikingNetwork
from spikformer.neurons import IF, LIF, PLIF
from spikformer.neurons.multistep import describe as describe_backend
from spikformer.neurons.multistep import native
from spikformer.presets import get_preset, list_models
from spikformer.runs.checks import (
    Check,
    batch_invariance,
    batch_invariance_in_float32,
    engine,
    neuron_gradients,
    parameters_counted,
    parameters_printed,
    parity,
    product_order,
    streaming,
)
from spikformer.successors import COUNTED_PARAMETERS

PendingCheck = Callable[[], list[Check]]


@dataclass(frozen=True)
class Section:
    """An architecture, by patterns of its presets, with presets whose small copies are checked."""

    title: str
    presets: tuple[str, ...]
    specimens: tuple[str, ...]
    not_compiled: tuple[str, ...] = ()
    """Specimens that the engine has no program for."""

    def has(self, preset: str) -> bool:
        return any(fnmatchcase(preset, pattern) for pattern in self.presets)


SECTIONS = (
    Section(
        "Spikformer",
        ("spikformer_*", "transformer_*"),
        (
            "spikformer_4_384_cifar10",
            "spikformer_8_512_imagenet",
            "spikformer_2_256_cifar10dvs",
            "spikformer_2_256_dvs128",
            "transformer_4_384_cifar10",
            "spikformer_tiny_digits",
        ),
        not_compiled=("transformer_4_384_cifar10",),  # it has no spikes
    ),
    Section("CML-Spikformer", ("cml_spikformer_*",), ("cml_spikformer_4_384_cifar10",)),
    Section(
        "Spikingformer",
        ("spikingformer_*", "cml_spikingformer_*"),
        ("spikingformer_4_384_cifar10", "cml_spikingformer_2_256_cifar10dvs"),
    ),
    Section(
        "Spike-driven Transformer",
        ("spike_driven_transformer_*",),
        ("spike_driven_transformer_2_512_cifar10", "spike_driven_transformer_2_256_cifar10dvs"),
    ),
    Section("QKFormer", ("qkformer_*",), ("qkformer_4_384_cifar10", "qkformer_10_512_imagenet")),
    Section("MS-QKFormer", ("ms_qkformer_*",), ("ms_qkformer_4_384_cifar10",)),
    Section("Max-Former", ("maxformer_*",), ("maxformer_4_384_cifar10", "maxformer_2_256_cifar10dvs")),
    Section(
        "SEW-ResNet",
        ("sew_*",),
        ("sew_resnet_18_imagenet", "sew_wide_7b_net_cifar10dvs"),
        not_compiled=("sew_wide_7b_net_cifar10dvs",),  # small, its head reads several positions
    ),
    Section(
        "Max-ResNet",
        ("max_resnet_*",),
        ("max_resnet_18_cifar10",),
        not_compiled=("max_resnet_18_cifar10",),  # weights of its shortcuts read membranes
    ),
)
SHARED = "Shared by all"
NEURONS = (LIF(), LIF(v_reset=-0.25), IF(), IF(v_reset=0.125), PLIF(tau=3.0), LIF(tau=1.5, surrogate="arctan"))


@dataclass(frozen=True)
class Verification:
    """What `verify` saw."""

    checks: list[Check]
    seconds: float
    backend: str
    """What computes neurons."""

    @property
    def num_failed(self) -> int:
        return sum(not check.holds for check in self.checks)


def verify(
    golden: Path | None = None, on_check: Callable[[int, int], None] = lambda _done, _total: None
) -> Verification:
    """Run every check, on the package's recordings or on all that a folder has.

    `on_check` is called with the number of checks done and of all.

    On one thread: networks this small only wait for a second one, on a busy machine for long.
    """
    started, threads = time.perf_counter(), torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        pending = list(pending_checks(golden or GOLDEN_FOLDER))
        results: list[Check] = []
        for number, check in enumerate(pending, 1):
            results += check()
            on_check(number, len(pending))
    finally:
        torch.set_num_threads(threads)
    return Verification(results, time.perf_counter() - started, describe_backend())


def pending_checks(golden_folder: Path = GOLDEN_FOLDER) -> Iterator[PendingCheck]:
    """Every check, not yet run, so that a caller can show progress."""
    recordings = list_goldens(golden_folder)
    for section in SECTIONS:
        for check in _of_section(section, recordings, golden_folder):
            yield partial(_in_section, section.title, check)
    yield partial(_in_section, SHARED, partial(product_order, query_key_first, key_value_first))
    for neuron in NEURONS:
        yield partial(_in_section, SHARED, partial(neuron_gradients, neuron))


def _of_section(section: Section, recordings: list[str], folder: Path) -> Iterator[PendingCheck]:
    for name in recordings:
        if section.has(FAMILY.get(name, "spikformer_4_384_cifar10")):
            yield partial(_golden_parity, name, folder)
    names = [name for name in list_models() if section.has(name)]
    for name in names:
        preset = get_preset(name)
        if preset.paper and preset.paper.parameters_millions:
            yield partial(parameters_printed, name, preset.config, preset.paper)
    for name in names:
        if name in COUNTED_PARAMETERS:
            yield partial(parameters_counted, name, get_preset(name).config, COUNTED_PARAMETERS[name])
    for name in section.specimens:
        for check in (batch_invariance, batch_invariance_in_float32, streaming):
            yield partial(_on_specimen, check, name)
        if name not in section.not_compiled and native is not None:  # no engine without native core
            yield partial(_on_specimen, engine, name)


def _in_section(title: str, check: PendingCheck) -> list[Check]:
    return [replace(result, section=title) for result in check()]


def _golden_parity(name: str, folder: Path) -> list[Check]:
    return parity(load_golden(name, folder))


def _on_specimen(check: Callable[[str, SpikingNetwork], list[Check]], name: str) -> list[Check]:
    return check(f"{name}, made small", _small_copy(name))


@lru_cache(maxsize=1)
def _small_copy(name: str) -> SpikingNetwork:
    return specimen(shrunk(name))
