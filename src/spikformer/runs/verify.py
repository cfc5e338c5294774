"""What this package promises of its network, as checks that anybody can run: `spikformer verify`.

Each check is a function of the thing it checks, so a broken thing can be handed to it to see it fail.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from math import floor
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from spikformer.analysis.golden import GOLDEN_FOLDER, VARIANTS, Golden, load_golden
from spikformer.analysis.recorder import spike_counts
from spikformer.analysis.specimens import frames_for, random_spikes, shrunk, specimen
from spikformer.config import ModelConfig
from spikformer.layers.attention import key_value_first, query_key_first
from spikformer.layers.linear import batch_invariant
from spikformer.models import SpikingNetwork, build_model
from spikformer.neurons import IF, LIF, PLIF, SpikingNeuron, if_step, lif_step
from spikformer.neurons.multistep import describe as describe_backend
from spikformer.paper import PaperRow
from spikformer.presets import get_preset, list_models

LOGITS_TOLERANCE = 1e-9
GRADIENT_TOLERANCE = 1e-8
ROUNDING_TOLERANCE = 0.05
FAMILIES = (
    "spikformer_4_384_cifar10",
    "spikformer_8_512_imagenet",
    "spikformer_2_256_cifar10dvs",
    "spikformer_2_256_dvs128",
    "transformer_4_384_cifar10",
    "spikformer_tiny_digits",
)


@dataclass(frozen=True)
class Check:
    """One line of the table: what is claimed, of what, what was seen, and whether it holds."""

    claim: str
    subject: str
    seen: str
    holds: bool


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
    """Run every check, on the package's golden files or a folder's.

    `on_check` is called with the number of checks done and of all.

    On one thread: networks this small only wait for a second one, on a busy machine for long.
    """
    started, threads = time.perf_counter(), torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        pending = list(checks(golden or GOLDEN_FOLDER))
        results: list[Check] = []
        for number, check in enumerate(pending, 1):
            results += check()
            on_check(number, len(pending))
    finally:
        torch.set_num_threads(threads)
    return Verification(results, time.perf_counter() - started, describe_backend())


def checks(golden_folder: Path = GOLDEN_FOLDER) -> Iterator[Callable[[], list[Check]]]:
    """Every check, not yet run, so that a caller can show progress."""
    for variant in VARIANTS:
        yield partial(_golden_parity, variant, golden_folder)
    for name in list_models():
        preset = get_preset(name)
        if preset.paper and preset.paper.parameters_millions:
            yield partial(parameter_count, name, preset.config, preset.paper)
    for name in FAMILIES:
        yield partial(_on_specimen, batch_invariance, name)
        yield partial(_on_specimen, batch_invariance_in_float32, name)
        yield partial(_on_specimen, streaming, name)
    yield partial(product_order, query_key_first, key_value_first)
    for neuron in (LIF(), LIF(v_reset=-0.25), IF(), IF(v_reset=0.125), PLIF(tau=3.0), LIF(tau=1.5, surrogate="arctan")):
        yield partial(neuron_gradients, neuron)


def _golden_parity(variant: str, folder: Path) -> list[Check]:
    return parity(load_golden(variant, folder))


def _on_specimen(check: Callable[[str, SpikingNetwork], list[Check]], name: str) -> list[Check]:
    return check(name, specimen(shrunk(name)))


def parity(golden: Golden) -> list[Check]:
    """The authors' network and ours, on the same weights and input."""
    subject = golden.variant
    model = golden.model()
    counts = spike_counts(model, golden.input)
    with torch.no_grad():
        logits_error = _distance(model(golden.input), golden.eval_logits)
    differing = sum(counts.get(name) != count for name, count in golden.spike_counts.items())

    model.train()
    logits = model(golden.input)
    loss = F.cross_entropy(logits, golden.target)
    loss.backward()
    loss_error = max(_distance(loss, golden.train_loss), _distance(logits, golden.train_logits))
    gradient_error = _gradient_distance(model, golden.gradients)
    return [
        Check(
            "Logits equal those of the authors' code, in float64",
            subject,
            f"within {logits_error:.0e}",
            logits_error <= LOGITS_TOLERANCE,
        ),
        Check(
            "Spike counts equal those of the authors' code, layer by layer",
            subject,
            f"{differing} of {len(golden.spike_counts)} layers differ, {sum(n for n, _ in counts.values()):,} spikes",
            differing == 0 and len(counts) == len(golden.spike_counts),
        ),
        Check(
            "Training loss and every gradient equal those of the authors' code",
            subject,
            f"within {max(loss_error, gradient_error):.0e} over {len(golden.gradients)} tensors",
            max(loss_error, gradient_error) <= GRADIENT_TOLERANCE,
        ),
    ]


def _gradient_distance(model: SpikingNetwork, expected: dict[str, Tensor]) -> float:
    ours = {name: x.grad.flatten() for name, x in model.named_parameters() if x.grad is not None}
    if ours.keys() != expected.keys():
        return float("inf")
    return max(_distance(gradient, expected[name].flatten()) for name, gradient in ours.items())


def parameter_count(name: str, config: ModelConfig, paper: PaperRow) -> list[Check]:
    """Parameters against the paper's table, whose last digit is sometimes rounded and sometimes cut."""
    with torch.device("meta"):
        live = sum(parameter.numel() for parameter in build_model(config).parameters())
    hundredths = (live + paper.unused_parameters) / 1e4
    holds = round((paper.parameters_millions or 0) * 100) in (floor(hundredths), round(hundredths))
    unused = f" + {paper.unused_parameters:,} never used" if paper.unused_parameters else ""
    seen = f"{live:,}{unused}, paper {paper.parameters_millions} M"
    return [Check("Parameters as in the paper", name, seen, holds)]


def batch_invariance(name: str, model: SpikingNetwork) -> list[Check]:
    """A sample's logits alone, among others, in another order and with other neighbours, to the last bit."""
    with batch_invariant():
        error, _, alive = _batch_dependence(model)
    claim = "A sample's logits do not depend on its batch (families made small, float64)"
    return [Check(claim, name, _bits(error), error == 0 and alive)]


def batch_invariance_in_float32(name: str, model: SpikingNetwork) -> list[Check]:
    """The same in the dtype that people use, where a sum may round otherwise and flip a spike here and there."""
    error, scale, alive = _batch_dependence(model.float())
    claim = "In float32 it depends on it by rounding at most (families made small)"
    holds = error <= ROUNDING_TOLERANCE * scale and alive
    return [Check(claim, name, f"within {error / scale:.0e} of the logits' spread", holds)]


def _batch_dependence(model: SpikingNetwork) -> tuple[float, float, bool]:
    """Largest difference of logits between batches, the logits' spread, and whether samples differ at all."""
    x = frames_for(model.config, batch_size=5, dtype=model.like.dtype)
    batch = x.ndim - 4
    with torch.no_grad():
        together = model(x)
        alone = torch.cat([model(sample) for sample in x.split(1, dim=batch)])
        reversed_order = model(x.flip(batch)).flip(0)
        neighbours = x.roll(1, dims=batch) * 3
        neighbours.select(batch, 2).copy_(x.select(batch, 2))
        among_others = model(neighbours)[2:3]
    error = max(_distance(together, alone), _distance(together, reversed_order), _distance(together[2:3], among_others))
    return error, float(together.std()), bool((together[0] != together[1]).any())


def streaming(name: str, model: SpikingNetwork) -> list[Check]:
    """Moving frames step by step with explicit state, against all steps at once, to the last bit."""
    frames = torch.stack([frames_for(model.config, batch_size=3, seed=seed, steps=False) for seed in range(4)])
    counts = spike_counts(model, frames)
    with torch.no_grad(), batch_invariant():
        at_once = model.forward_steps(frames)
        state = model.initial_state(batch_size=3)
        stepwise = []
        for frame in frames:
            logits, state = model.step(frame, state)
            stepwise.append(logits)
        error = max(_distance(at_once, torch.stack(stepwise)), _distance(at_once.mean(0), model(frames)))
    alive = all(spikes > 0 for spikes, _ in counts.values()) and not torch.equal(at_once[0], at_once[-1])
    claim = "Streaming equals the multi-step pass (families made small, float64)"
    return [Check(claim, name, _bits(error), error == 0 and alive)]


def product_order(
    first: Callable[[Tensor, Tensor, Tensor], Tensor], second: Callable[[Tensor, Tensor, Tensor], Tensor]
) -> list[Check]:
    """(Q Kᵀ) V against Q (Kᵀ V) on spikes, in float32, at ImageNet's and CIFAR's sizes."""
    error = 0.0
    for tokens, features in ((196, 64), (64, 32), (16, 64)):
        for density in (0.05, 0.3, 1.0):
            q, k, v = (random_spikes((4, 2, 2, tokens, features), density, seed) for seed in range(3))
            error = max(error, _distance(first(q, k, v), second(q, k, v)))
    return [Check("(Q Kᵀ) V equals Q (Kᵀ V), in float32", "random spikes", _bits(error), error == 0)]


def neuron_gradients(neuron: SpikingNeuron) -> list[Check]:
    """The backward pass by hand against autograd through the step function, in float64."""
    generator = torch.Generator().manual_seed(0)
    current = torch.randn((6, 50), generator=generator, dtype=torch.float64) + 0.5
    start = torch.randn(50, generator=generator, dtype=torch.float64) / 4
    weights = torch.randn((7, 50), generator=generator, dtype=torch.float64)

    def gradients(run: Callable[[SpikingNeuron, Tensor, Tensor], tuple[Tensor, Tensor]]) -> list[Tensor]:
        subject = deepcopy(neuron).double()
        inputs = [current.clone().requires_grad_(), start.clone().requires_grad_()]
        spikes, voltage = run(subject, *inputs)
        loss = (spikes * weights[:-1]).sum() + (voltage * weights[-1]).sum()
        return [spikes, voltage, *torch.autograd.grad(loss, [*inputs, *subject.parameters()])]

    by_hand = gradients(lambda n, x, v: n(x, v, return_state=True))
    by_autograd = gradients(run_by_steps)
    error = max(_distance(a, b) for a, b in zip(by_hand, by_autograd, strict=True))
    subject = f"{type(neuron).__name__}({neuron.extra_repr()})"
    holds = error <= 1e-12 and 0 < by_hand[0].mean().item() < 1
    return [Check("Neurons' gradients by hand equal autograd's", subject, f"within {error:.0e}", holds)]


def run_by_steps(neuron: SpikingNeuron, current: Tensor, voltage: Tensor) -> tuple[Tensor, Tensor]:
    """A neuron over all steps by its pure step function, for autograd to differentiate."""
    d = neuron.dynamics
    step = partial(lif_step, tau=1 / neuron.gain()) if d.leaky else if_step
    spikes = []
    for x in current:
        fired, voltage = step(
            x,
            voltage,
            v_threshold=d.v_threshold,
            v_reset=d.v_reset,
            surrogate=d.surrogate,
            alpha=d.alpha,
            detach_reset=d.detach_reset,
        )
        spikes.append(fired)
    return torch.stack(spikes), voltage


def _distance(a: Tensor, b: Tensor) -> float:
    """Largest difference; infinite where shapes differ or a value is not finite, so that nothing passes by accident."""
    if a.shape != b.shape or not bool(torch.isfinite(a).all() and torch.isfinite(b).all()):
        return float("inf")
    return float((a - b).detach().abs().max())


def _bits(error: float) -> str:
    return "to the last bit" if error == 0 else f"differs by {error:.0e}"
