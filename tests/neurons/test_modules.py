"""Neuron modules: explicit state, learnable time constant, precision."""

from inspect import signature

import pytest
import torch
from tests.mistakes import field_error

from spikformer import ModelConfig
from spikformer.neurons import IF, LIF, PLIF, Activation, SpikingNeuron, neuron_factory, register_neuron
from spikformer.neurons.functional import Dynamics, if_step, lif_step, spike

pytestmark = pytest.mark.core


@pytest.mark.parametrize("neuron", [LIF(), IF(), PLIF(tau=3.0), LIF(v_reset=-0.5), LIF(v_reset=None)], ids=repr)
def test_two_calls_with_state_equal_one(neuron) -> None:
    neuron = neuron.double()
    current = torch.randn(6, 3, 5).double() + 0.4
    spikes, voltage = neuron(current, return_state=True)
    first, carried = neuron(current[:2], return_state=True)
    second, end = neuron(current[2:], carried, return_state=True)
    assert torch.equal(torch.cat([first, second]), spikes)
    assert torch.equal(end, voltage)


def test_a_module_remembers_nothing() -> None:
    neuron, current = LIF(), torch.randn(4, 8) + 0.5
    assert torch.equal(neuron(current), neuron(current))


@pytest.mark.parametrize("made", [Dynamics, lif_step, if_step, spike, IF, LIF, PLIF])
def test_default_constants_are_those_of_the_config(made) -> None:
    """Each signature repeats them."""
    config = ModelConfig()
    ours = vars(config) | {"alpha": config.surrogate_alpha, "leaky": True}
    defaults = {
        name: each.default for name, each in signature(made).parameters.items() if each.default is not each.empty
    }
    assert defaults == {name: ours[name] for name in defaults}
    assert "alpha" in defaults


def test_neurons_work_in_a_sequence() -> None:
    network = torch.nn.Sequential(torch.nn.Linear(8, 5), LIF(), torch.nn.Linear(5, 3), IF())
    assert set(network(torch.randn(4, 2, 8)).unique().tolist()) <= {0.0, 1.0}


def test_plif_starts_at_tau_and_learns_it() -> None:
    neuron = PLIF(tau=3.0)
    assert neuron.tau == pytest.approx(3.0, rel=1e-6)
    neuron(torch.randn(4, 100) + 1).sum().backward()
    assert neuron.gain_logit.grad.abs() > 0


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_the_membrane_stays_wide_under_narrow_currents(dtype) -> None:
    current = (torch.rand(16, 4096) * 0.9).to(dtype)
    spikes, voltage = LIF()(current, return_state=True)
    wide, wide_voltage = LIF()(current.float(), return_state=True)
    assert spikes.dtype == dtype
    assert voltage.dtype == torch.float32
    assert torch.equal(spikes.float(), wide)
    assert torch.equal(voltage, wide_voltage)


@pytest.mark.parametrize(("name", "kind"), [("lif", LIF), ("if", IF), ("plif", PLIF)])
def test_a_config_builds_its_neuron(name: str, kind: type) -> None:
    config = ModelConfig(neuron=name, v_reset=-0.1, surrogate="arctan", surrogate_alpha=2.0)
    neuron = neuron_factory(config, v_threshold=0.5)()
    assert type(neuron) is kind
    assert (neuron.dynamics.v_threshold, neuron.dynamics.v_reset) == (0.5, -0.1)
    assert (neuron.dynamics.surrogate, neuron.dynamics.alpha) == ("arctan", 2.0)


@pytest.mark.parametrize("name", ["relu", "gelu"])
def test_a_config_builds_its_activation(name: str) -> None:
    neuron = neuron_factory(ModelConfig(neuron=name))()
    assert isinstance(neuron, Activation)
    assert neuron.name == name


@pytest.mark.parametrize("name", ["relu", "gelu", "leaky_relu", "identity"])
def test_an_activation_has_no_state(name: str) -> None:
    x = torch.randn(3, 4)
    out = Activation(name)(x)
    assert torch.equal(out, x if name == "identity" else getattr(torch.nn.functional, name)(x))


def test_the_time_constant_of_a_config_is_taken() -> None:
    assert neuron_factory(ModelConfig(neuron="lif", tau=3.0))().tau == 3.0
    assert neuron_factory(ModelConfig(neuron="plif", tau=3.0))().tau == pytest.approx(3.0)


def test_resets_of_a_config_are_taken() -> None:
    dynamics = neuron_factory(ModelConfig(v_reset=None, detach_reset=False))().dynamics
    assert (dynamics.v_reset, dynamics.rest, dynamics.detach_reset) == (None, 0.0, False)


def test_a_neuron_from_outside_is_built_by_its_name() -> None:
    class Halved(SpikingNeuron):
        def gain(self) -> float:
            return 0.5

    register_neuron("halved", lambda v_threshold, **_: Halved(v_threshold))
    neuron = neuron_factory(ModelConfig(neuron="halved", v_threshold=0.75))()
    assert isinstance(neuron, Halved)
    assert neuron.dynamics.v_threshold == 0.75
    current = torch.randn(4, 9)
    assert torch.equal(neuron(current), LIF(v_threshold=0.75)(current))


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (LIF, {"tau": 0.5}),
        (PLIF, {"tau": 1.0}),
        (LIF, {"surrogate": "step"}),
        (IF, {"v_threshold": 0.0}),
        (IF, {"v_threshold": 0.0, "v_reset": None}),
        (IF, {"alpha": 0.0}),
    ],
)
def test_a_wrong_constant_raises(kind: type, wrong: dict) -> None:
    with field_error(*next(iter(wrong.items()))):
        kind(**wrong)
