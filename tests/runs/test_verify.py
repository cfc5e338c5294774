"""A check that is broken on purpose must fail: each is handed a broken thing."""

from copy import deepcopy
from dataclasses import replace

import pytest
import torch

import spikformer as sf
from spikformer.analysis.golden import FAMILY, IN_PACKAGE, VARIANTS, load_golden
from spikformer.analysis.specimens import shrunk, specimen
from spikformer.engine.lowering import from_model
from spikformer.layers.attention import key_value_first, query_key_first
from spikformer.neurons import LIF
from spikformer.presets import get_preset
from spikformer.runs import checks
from spikformer.runs.checks import (
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
from spikformer.runs.verify import SECTIONS, SHARED, pending_checks
from spikformer.successors import COUNTED_PARAMETERS

TINY = "spikformer_tiny_digits"


def holds(results) -> list[bool]:
    return [check.holds for check in results]


def test_everything_holds_in_every_section() -> None:
    results = [result for check in pending_checks() for result in check()]
    assert [result for result in results if not result.holds] == []
    assert list(dict.fromkeys(result.section for result in results)) == [*(part.title for part in SECTIONS), SHARED]
    for section in SECTIONS:
        subjects = {result.subject for result in results if result.section == section.title}
        recordings = [name for name in (*VARIANTS, *IN_PACKAGE) if section.has(FAMILY.get(name, TINY))]
        assert {*recordings, *(f"{name}, made small" for name in section.specimens)} <= subjects
        assert recordings or section.title in ("MS-QKFormer", "Max-ResNet")
    compiled = {result.section for result in results if result.claim == "The engine equals the model"}
    assert compiled == {section.title for section in SECTIONS} - {"Max-ResNet"}


def test_every_architecture_has_a_section() -> None:
    for name in sf.list_models():
        assert sum(section.has(name) for section in SECTIONS) == 1, name


@pytest.mark.parametrize("name", [*VARIANTS, *(pytest.param(name, marks=pytest.mark.slow) for name in IN_PACKAGE)])
def test_parity_fails_on_other_numbers(name: str) -> None:
    golden = load_golden(name)
    parameter, gradient = next(iter(golden.gradients.items()))
    layer, (spikes, total) = next(iter(golden.spike_counts.items()))
    largest = max(gradient.abs().max() for gradient in golden.gradients.values())
    assert holds(parity(golden)) == [True] * 4
    for changes, expected in (
        ({"eval_logits": golden.eval_logits + 2e-9}, [False, True, True, True]),
        ({"spike_counts": golden.spike_counts | {layer: (spikes + 1, total)}}, [True, False, True, True]),
        ({"train_loss": golden.train_loss + 2e-9}, [True, True, False, True]),
        ({"train_logits": golden.train_logits * float("nan")}, [True, True, False, True]),
        ({"gradients": golden.gradients | {parameter: gradient + 2e-8 * largest}}, [True, True, True, False]),
        ({"gradients": {parameter: gradient}}, [True, True, True, False]),
    ):
        assert holds(parity(replace(golden, **changes))) == expected


@pytest.mark.parametrize("heads", [1, 2])
def test_parity_fails_on_another_network(heads: int) -> None:
    assert False in holds(parity(replace(load_golden("cifar10"), num_heads=heads)))


def test_parameters_fail_on_another_size() -> None:
    preset = get_preset("spikformer_4_384_cifar10")
    assert holds(parameters_printed("right", preset.config, preset.paper)) == [True]
    assert holds(parameters_printed("wrong", preset.config.override(depth=5), preset.paper)) == [False]
    name = "spike_driven_transformer_2_256_cifar10"
    config, counted = get_preset(name).config, COUNTED_PARAMETERS[name]
    assert holds(parameters_counted("right", config, counted)) == [True]
    assert holds(parameters_counted("one too many", config, counted._replace(unused=counted.unused + 1))) == [False]


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


def test_the_engine_check_fails_on_another_program_and_on_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    model = specimen(shrunk(TINY))
    assert holds(engine(TINY, model)) == [True]
    for layer in ("head", "blocks.0.mlp.output.norm"):
        other = deepcopy(model)
        with torch.no_grad():
            other.get_submodule(layer).bias.add_(1e-5 if layer == "head" else 0.1)
        monkeypatch.setattr(checks, "from_model", lambda _model, other=other: from_model(other))
        assert holds(engine(layer, model)) == [False]
    monkeypatch.undo()
    with torch.no_grad():
        model.stem.stages[0].norm.bias.fill_(-100)
    assert holds(engine("silent", model)) == [False]


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
