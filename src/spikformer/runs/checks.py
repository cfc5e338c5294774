"""Checks of `spikformer verify`: each is a function of what it checks, so that a test can pass it something broken."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import cache, partial
from math import floor

import numpy as np
import torch
from torch import Tensor

from spikformer.analysis.golden import Golden, kept_gradients
from spikformer.analysis.recorder import record, spike_counts
from spikformer.analysis.specimens import frames_for, random_spikes
from spikformer.config import NetworkConfig
from spikformer.engine import Engine
from spikformer.engine.lowering import from_model
from spikformer.layers.linear import batch_invariant
from spikformer.models import SpikingNetwork, build_model
from spikformer.neurons import SpikingNeuron, if_step, lif_step
from spikformer.paper import PaperRow
from spikformer.successors import CountedParameters

LOGITS_TOLERANCE = 1e-9
GRADIENT_TOLERANCE = 1e-8
ROUNDING_TOLERANCE = 0.05
ENGINE_TOLERANCE = 2e-6


@dataclass(frozen=True)
class Check:
    """One line of the table: what is claimed, of what, what was seen, whether it holds, and the part it belongs to."""

    claim: str
    subject: str
    seen: str
    holds: bool
    section: str = ""


def parity(golden: Golden) -> list[Check]:
    """The authors' network and ours, on the same weights and input, in float64."""
    model = golden.model()
    counts = spike_counts(model, golden.input)
    with torch.no_grad():
        logits_error = _distance(golden.logits(model), golden.eval_logits)
    differing = sum(counts.get(name) != count for name, count in golden.spike_counts.items())

    model.train()
    logits = golden.logits(model)
    loss = golden.loss(logits)
    loss.backward()
    loss_error = max(_distance(loss, golden.train_loss), _distance(logits, golden.train_logits))
    gradient_error = _gradient_distance(model, golden)
    subject, neurons = golden.variant, len(golden.spike_counts)
    spikes = f"{sum(fired for fired, _ in counts.values()):,} in {neurons} neurons, {differing} differ"
    gradients = f"within {gradient_error:.0e} over {len(golden.gradients)} tensors"
    same = differing == 0 and len(counts) == neurons
    return [
        Check(
            "Logits as in the authors' code", subject, f"within {logits_error:.0e}", logits_error <= LOGITS_TOLERANCE
        ),
        Check("Spikes as in the authors' code", subject, spikes, same),
        Check("Loss as in the authors' code", subject, f"within {loss_error:.0e}", loss_error <= LOGITS_TOLERANCE),
        Check("Gradients as in the authors' code", subject, gradients, gradient_error <= GRADIENT_TOLERANCE),
    ]


def _gradient_distance(model: SpikingNetwork, golden: Golden) -> float:
    """Largest difference, as a share of the network's largest recorded gradient."""
    ours = {name: x.grad for name, x in model.named_parameters() if x.grad is not None}
    if golden.shortened:
        ours = kept_gradients(ours, model.config.in_channels)
    if ours.keys() != golden.gradients.keys():
        return float("inf")
    largest = max(float(x.abs().max()) for x in golden.gradients.values())
    return max(_distance(x.flatten(), golden.gradients[name].flatten()) for name, x in ours.items()) / largest


def parameters_printed(name: str, config: NetworkConfig, paper: PaperRow) -> list[Check]:
    """Parameters against the paper's table, whose last digit is sometimes rounded and sometimes cut."""
    live = _num_parameters(config)
    hundredths = (live + paper.unused_parameters) / 1e4
    holds = round((paper.parameters_millions or 0) * 100) in (floor(hundredths), round(hundredths))
    seen = f"{live:,}{_unused(paper.unused_parameters)}, {paper.parameters_millions} M"
    return [Check("Parameters as printed", name, seen, holds)]


def parameters_counted(name: str, config: NetworkConfig, counted: CountedParameters) -> list[Check]:
    """Parameters against those that the authors' code builds, to the last one."""
    live = _num_parameters(config)
    seen, holds = f"{live:,}{_unused(counted.unused)}", live + counted.unused == counted.total
    seen += "" if holds else f" instead of {counted.total:,}"
    return [Check("Parameters as in the authors' code", name, seen, holds)]


def _unused(count: int) -> str:
    return f" + {count:,} unused" if count else ""


@cache
def _num_parameters(config: NetworkConfig) -> int:
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in build_model(config).parameters())


def batch_invariance(name: str, model: SpikingNetwork) -> list[Check]:
    """A sample's logits alone, among others, in another order and with other neighbours, to the last bit."""
    with batch_invariant():
        error, _, alive = _batch_dependence(model)
    claim = "Same logits in any batch"
    return [Check(claim, name, _bits(error), error == 0 and alive)]


def batch_invariance_in_float32(name: str, model: SpikingNetwork) -> list[Check]:
    """The same in the dtype that people use, where a sum may round otherwise and flip a spike here and there."""
    error, scale, alive = _batch_dependence(deepcopy(model).float())
    claim = "Same logits in any batch, float32"
    holds = error <= ROUNDING_TOLERANCE * scale and alive
    return [Check(claim, name, f"within {error / scale:.0e} of spread", holds)]


def _batch_dependence(model: SpikingNetwork) -> tuple[float, float, bool]:
    """Largest difference of logits between batches, the logits' spread, and whether samples differ at all."""
    x = frames_for(model.config, batch_size=3, dtype=model.like.dtype)
    batch = x.ndim - 4
    with torch.no_grad():
        together = model(x)
        alone = torch.cat([model(sample) for sample in x.split(1, dim=batch)])
        reversed_order = model(x.flip(batch)).flip(0)
        neighbours = x.roll(1, dims=batch) * 3
        neighbours.select(batch, 1).copy_(x.select(batch, 1))
        among_others = model(neighbours)[1:2]
    error = max(_distance(together, alone), _distance(together, reversed_order), _distance(together[1:2], among_others))
    return error, float(together.std()), bool((together[0] != together[1]).any())


def streaming(name: str, model: SpikingNetwork) -> list[Check]:
    """Moving frames step by step with explicit state, against all steps at once, to the last bit."""
    frames = torch.stack([frames_for(model.config, batch_size=2, seed=seed, steps=False) for seed in range(4)])
    counts = spike_counts(model, frames)
    with torch.no_grad(), batch_invariant():
        at_once = model.forward_steps(frames)
        state = model.initial_state(batch_size=2)
        stepwise = []
        for frame in frames:
            logits, state = model.step(frame, state)
            stepwise.append(logits)
        error = max(_distance(at_once, torch.stack(stepwise)), _distance(at_once.mean(0), model(frames)))
    alive = all(spikes > 0 for spikes, _ in counts.values()) and not torch.equal(at_once[0], at_once[-1])
    claim = "Streaming equals multi-step"
    return [Check(claim, name, _bits(error), error == 0 and alive)]


def engine(name: str, model: SpikingNetwork) -> list[Check]:
    """The program that the engine runs, by events and in float32, against the model in float64.

    Where a neuron stands at its threshold, rounding decides, and decides for all after it: of such samples, which are
    never all, only two spikes may differ in the first layer that differs, and logits are not compared.
    """
    x = frames_for(model.config, batch_size=4, seed=3).round()  # integers, the same in both precisions
    compiled = Engine(from_model(model), num_threads=1)
    compiled.mode = "events"
    readout, spikes = compiled.forward_steps(x), compiled.spikes(x)
    with torch.no_grad():
        expected = model.forward_steps(x).numpy()
    differing = differing_spikes(model, spikes, x)
    equal = (differing == 0).all(axis=0)
    error = float(np.abs(readout - expected)[:, equal].max(initial=0))
    by_rounding = all(sample[sample > 0][0] <= 2 for sample in differing.T[~equal])
    alive = all(fired.any() for fired in spikes.values())
    holds = alive and by_rounding and equal.any() and error <= ENGINE_TOLERANCE
    found = f"{equal.sum()} of {len(equal)} samples, within {error:.0e}"
    return [Check("The engine equals the model", name, found, bool(holds))]


def differing_spikes(model: SpikingNetwork, spikes: Mapping[str, np.ndarray], x: Tensor) -> np.ndarray:
    """How many spikes of each layer, in the order they run, and of each sample are not the model's: [layers, B]."""
    with torch.no_grad(), record(model) as seen:
        model(x)
    assert spikes.keys() == seen.spikes.keys()
    numbers = []
    for name, ours in spikes.items():
        theirs = np.asarray(seen.spikes[name])
        if theirs.ndim == 5:  # a map [T, B, C, H, W]
            theirs = np.moveaxis(theirs.reshape(*theirs.shape[:3], -1), 2, 3)
        theirs = theirs.reshape(ours.shape)  # of a neuron before the head [T, B, D]
        numbers.append((theirs.astype(bool) != ours).sum((0, 2, 3)))
    return np.array(numbers)


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
