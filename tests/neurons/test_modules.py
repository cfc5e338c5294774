"""Neuron modules: explicit state, learnable time constant, precision."""

import pytest
import torch

from spikformer import ModelConfig
from spikformer.neurons import IF, LIF, PLIF, Activation, build_neuron

pytestmark = pytest.mark.core


@pytest.mark.parametrize("neuron", [LIF(), IF(), PLIF(tau=3.0), LIF(v_reset=-0.5)], ids=repr)
def test_two_calls_with_state_equal_one(neuron) -> None:
    neuron = neuron.double()
    current = torch.randn(6, 3, 5).double() + 0.4
    spikes, voltage = neuron(current)
    first, carried = neuron(current[:2])
    second, end = neuron(current[2:], carried)
    assert torch.equal(torch.cat([first, second]), spikes)
    assert torch.equal(end, voltage)


def test_a_module_remembers_nothing() -> None:
    neuron, current = LIF(), torch.randn(4, 8) + 0.5
    first, _ = neuron(current)
    second, _ = neuron(current)
    assert torch.equal(first, second)


def test_plif_starts_at_tau_and_learns_it() -> None:
    neuron = PLIF(tau=3.0)
    assert neuron.tau == pytest.approx(3.0, rel=1e-6)
    spikes, _ = neuron(torch.randn(4, 100) + 1)
    spikes.sum().backward()
    assert neuron.gain_logit.grad.abs() > 0


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_the_membrane_stays_wide_under_narrow_currents(dtype) -> None:
    current = (torch.rand(16, 4096) * 0.9).to(dtype)
    spikes, voltage = LIF()(current)
    wide, wide_voltage = LIF()(current.float())
    assert spikes.dtype == dtype
    assert voltage.dtype == torch.float32
    assert torch.equal(spikes.float(), wide)
    assert torch.equal(voltage, wide_voltage)


@pytest.mark.parametrize(("name", "kind"), [("lif", LIF), ("if", IF), ("plif", PLIF)])
def test_a_config_builds_its_neuron(name: str, kind: type) -> None:
    config = ModelConfig(neuron=name, v_reset=-0.1, surrogate="arctan", surrogate_alpha=2.0)
    neuron = build_neuron(config, 0.5)
    assert type(neuron) is kind
    assert (neuron.dynamics.v_threshold, neuron.dynamics.v_reset) == (0.5, -0.1)
    assert (neuron.dynamics.surrogate, neuron.dynamics.alpha) == ("arctan", 2.0)


@pytest.mark.parametrize("name", ["relu", "gelu"])
def test_a_config_builds_its_activation(name: str) -> None:
    neuron = build_neuron(ModelConfig(neuron=name))
    assert isinstance(neuron, Activation)
    assert neuron.name == name


@pytest.mark.parametrize("name", ["relu", "gelu", "leaky_relu", "identity"])
def test_an_activation_has_no_state(name: str) -> None:
    x = torch.randn(3, 4)
    out, voltage = Activation(name)(x)
    assert voltage is None
    assert torch.equal(out, x if name == "identity" else getattr(torch.nn.functional, name)(x))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_narrow_model_streams_with_wide_voltages(dtype) -> None:
    neuron, current = LIF(), torch.randn(3, 4, 5).to(dtype)
    rest = neuron.at_rest(4, 5, like=current)
    assert rest.dtype == torch.float32
    assert torch.equal(neuron(current, rest)[0], neuron(current)[0])


def test_the_time_constant_of_a_config_is_taken() -> None:
    assert build_neuron(ModelConfig(neuron="lif", tau=3.0)).tau == 3.0
    assert build_neuron(ModelConfig(neuron="plif", tau=3.0)).tau == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: LIF(tau=0.5), r"tau must be at least 1, got 0\.5"),
        (lambda: PLIF(tau=1.0), r"tau must be above 1 for PLIF, got 1\.0"),
        (lambda: LIF(surrogate="step"), r"surrogate must be one of sigmoid, arctan, got 'step'"),
        (lambda: LIF(v_reset=None), r"v_reset must be a number, got None: soft reset is not supported yet"),
        (lambda: IF(v_threshold=0.0), r"v_threshold must be above v_reset \(0\.0\), got 0\.0"),
        (lambda: IF(alpha=0.0), r"alpha must be above 0, got 0\.0"),
    ],
)
def test_a_wrong_neuron_is_refused(make, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        make()
