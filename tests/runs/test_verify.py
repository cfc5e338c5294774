"""A check that is broken on purpose must fail: each is handed a broken thing."""

from dataclasses import replace

import pytest
import torch

import spikformer as sf
from spikformer.analysis.golden import VARIANTS, load_golden
from spikformer.analysis.specimens import shrunk, specimen
from spikformer.layers.attention import key_value_first, query_key_first
from spikformer.neurons import LIF
from spikformer.presets import get_preset
from spikformer.runs.verify import (
    batch_invariance,
    batch_invariance_in_float32,
    checks,
    neuron_gradients,
    parameter_count,
    parity,
    product_order,
    streaming,
)

TINY = "spikformer_tiny_digits"


def holds(results) -> list[bool]:
    return [check.holds for check in results]


def test_everything_holds() -> None:
    results = [result for check in checks() for result in check()]
    assert len(results) >= 40
    assert [result for result in results if not result.holds] == []


@pytest.mark.parametrize("variant", VARIANTS)
def test_parity_fails_on_other_numbers(variant: str) -> None:
    golden = load_golden(variant)
    name, gradient = next(iter(golden.gradients.items()))
    layer, (spikes, total) = next(iter(golden.spike_counts.items()))
    assert holds(parity(replace(golden, eval_logits=golden.eval_logits + 2e-9))) == [False, True, True]
    assert holds(parity(replace(golden, spike_counts=golden.spike_counts | {layer: (spikes + 1, total)}))) == [
        True,
        False,
        True,
    ]
    assert holds(parity(replace(golden, train_loss=golden.train_loss + 2e-8))) == [True, True, False]
    assert holds(parity(replace(golden, gradients=golden.gradients | {name: gradient + 2e-8}))) == [True, True, False]
    assert holds(parity(replace(golden, gradients={name: gradient}))) == [True, True, False]
    assert holds(parity(replace(golden, train_logits=golden.train_logits * float("nan")))) == [True, True, False]


@pytest.mark.parametrize("heads", [1, 2])
def test_parity_fails_on_another_network(heads: int) -> None:
    assert False in holds(parity(replace(load_golden("cifar10"), num_heads=heads)))


def test_parameter_count_fails_on_another_size() -> None:
    preset = get_preset("spikformer_4_384_cifar10")
    assert holds(parameter_count("right", preset.config, preset.paper)) == [True]
    assert holds(parameter_count("wrong", preset.config.override(depth=5), preset.paper)) == [False]


class SeesNeighbours(sf.Spikformer):
    """A prediction that leans on the rest of the batch."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logits = super().forward(x)
        return logits + 1e-9 * logits.mean(0)


class LetsBatchIntoTime(sf.Spikformer):
    """The known mistake: a neuron that integrates over time and batch."""

    def forward_steps(self, x: torch.Tensor) -> torch.Tensor:
        frames = x.flatten(0, 1).unsqueeze(1)
        return super().forward_steps(frames).unflatten(0, x.shape[:2]).squeeze(2)


class ForgetsItsState(sf.Spikformer):
    """A stream that starts anew at every step."""

    def step(self, x, state):
        logits, _ = super().step(x, state)
        return logits, state


@pytest.mark.parametrize(
    ("broken", "name", "check"),
    [
        (SeesNeighbours, TINY, batch_invariance),
        (LetsBatchIntoTime, "spikformer_2_256_dvs128", batch_invariance_in_float32),
        (LetsBatchIntoTime, "spikformer_2_256_dvs128", batch_invariance),
        (ForgetsItsState, TINY, streaming),
        (ForgetsItsState, "spikformer_2_256_dvs128", streaming),
    ],
)
def test_a_broken_network_is_found(broken: type, name: str, check) -> None:
    model = specimen(shrunk(name))
    assert holds(check(name, model)) == [True]
    model.__class__ = broken
    assert holds(check(name, model)) == [False]


def test_batch_invariance_fails_with_batch_statistics() -> None:
    assert holds(batch_invariance("training", specimen(shrunk(TINY)).train())) == [False]


def test_order_fails_for_another_product() -> None:
    assert holds(product_order(query_key_first, key_value_first)) == [True]
    assert holds(product_order(query_key_first, lambda q, k, v: key_value_first(k, q, v))) == [False]


class WrongBackward(LIF):
    """A gradient that is off by a thousandth."""

    def forward(self, current, voltage=None, return_state=False):
        spikes, voltage = super().forward(current, voltage, return_state=True)
        return spikes + 0.001 * (spikes.square() - spikes.detach().square()), voltage


class WrongVoltage(LIF):
    """Right spikes and gradients, and another voltage."""

    def forward(self, current, voltage=None, return_state=False):
        spikes, voltage = super().forward(current, voltage, return_state=True)
        return spikes, voltage + 1


@pytest.mark.parametrize("broken", [WrongBackward(), WrongVoltage(), LIF(v_threshold=100.0)])
def test_gradient_check_fails_on_a_broken_or_silent_neuron(broken: LIF) -> None:
    assert holds(neuron_gradients(LIF())) == [True]
    assert holds(neuron_gradients(broken)) == [False]


def test_streaming_fails_on_a_network_that_says_nothing() -> None:
    silent, mute = specimen(shrunk(TINY)), specimen(shrunk(TINY))
    with torch.no_grad():
        silent.stem.stages[0].norm.bias.fill_(-100)
        mute.head.weight.zero_()
    assert holds(streaming("silent", silent)) == [False]
    assert holds(streaming("mute", mute)) == [False]
