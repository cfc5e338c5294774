"""Wrapped models, modes, and networks that their config does not describe."""

import copy
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests.mistakes import field_error, mistake
from torch import Tensor, nn
from torch.nn.utils import parametrizations
from torch.optim.swa_utils import AveragedModel

import spikformer as sf
from spikformer.analysis.firing import measure_firing
from spikformer.analysis.specimens import frames_for, shrunk, specimen
from spikformer.errors import FieldError
from spikformer.layers import TokenMixing
from spikformer.layers.sync_norm import sync_norms
from spikformer.models.inspection import check_as_configured, eval_mode, unwrap
from spikformer.neurons import LIF

pytestmark = pytest.mark.core


class SoftLIF(LIF):
    def forward(self, current: Tensor, voltage: Tensor | None = None, return_state: bool = False):
        spikes, voltage = super().forward(current, voltage, return_state=True)
        return (spikes * 0.5, voltage) if return_state else spikes * 0.5


class OtherMixing(TokenMixing):
    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return super().forward(key, query, value)


class OtherNetwork(sf.Spikformer):
    def forward_steps(self, x: Tensor) -> Tensor:
        return super().forward_steps(x) * 2


def small(**overrides) -> sf.Spikformer:
    return specimen(shrunk("spikformer_tiny_digits", depth=1, embed_dim=32, num_heads=4, time_steps=2, **overrides))


def set_mixing(model: sf.Spikformer) -> None:
    attention = model.blocks[0].attention
    attention.mixing = OtherMixing(attention.num_heads, attention.mixing.variant)


def replace_dynamics(model: sf.Spikformer) -> None:
    neuron = model.blocks[0].mlp.hidden.neuron
    neuron.dynamics = LIF(v_threshold=0.75).dynamics


CHANGES: dict[str, Callable[[sf.Spikformer], object]] = {
    "subclassed neuron": lambda m: setattr(m.blocks[0].mlp.hidden, "neuron", SoftLIF()),
    "subclassed mixing": set_mixing,
    "subclassed network": lambda m: setattr(m, "__class__", OtherNetwork),
    "other constants": replace_dynamics,
    "other tau": lambda m: setattr(m.stem.position.neuron, "tau", 3.0),
    "other scale": lambda m: setattr(m.blocks[0].attention.mixing, "scale", 1.0),
    "other epsilon": lambda m: setattr(m.stem.position.norm, "eps", 1e-3),
    "forward of an instance": lambda m: setattr(m.blocks[0].mlp, "forward", lambda x, stream=None: x),
    "hook": lambda m: m.blocks[0].register_forward_hook(lambda _m, _i, out: out * 2),
    "pre-hook": lambda m: m.blocks[0].mlp.register_forward_pre_hook(lambda _m, args: (args[0] * 2, *args[1:])),
    "parametrisation": lambda m: parametrizations.weight_norm(m.blocks[0].mlp.hidden.linear),
    "added module": lambda m: m.blocks.append(copy.deepcopy(m.blocks[0])),
    "removed module": lambda m: setattr(m, "blocks", nn.ModuleList()),
    "head of other classes": lambda m: setattr(m, "head", nn.Linear(32, 3).double()),
    "head of layers": lambda m: setattr(m, "head", nn.Sequential(nn.Linear(32, 3), nn.ReLU()).double()),
    "no head": lambda m: setattr(m, "head", nn.Identity()),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_the_config_does_not_build_is_neither_saved_nor_compiled(change: Callable, tmp_path: Path) -> None:
    model = small()
    change(model)
    with mistake(FieldError, "save"):
        sf.save(model, tmp_path / "x.safetensors")
    assert not list(tmp_path.iterdir())
    with mistake(FieldError, "compile_engine"):
        sf.compile_engine(model)


def test_the_error_names_the_part_and_its_types() -> None:
    model = small()
    model.blocks[0].mlp.hidden.neuron = SoftLIF()
    with field_error("blocks.0.mlp.hidden.neuron", "SoftLIF", "LIF"):
        check_as_configured(model, "save")


@pytest.mark.parametrize("overrides", [{}, {"neuron": "plif"}, {"learnable_scale": True}, {"attention": "none"}])
def test_what_the_config_builds_is_taken(overrides: dict) -> None:
    model = small(**overrides).requires_grad_(False)
    model.blocks[0].mlp.hidden.norm.momentum = None
    model.blocks[0].mlp.note = "a user's own"
    model.head.register_full_backward_hook(lambda *_: None)
    assert check_as_configured(model, "save") is None  # raises for what it does not take


PATCHES: dict[str, Callable[[sf.Spikformer], tuple[nn.Module, str]]] = {
    "gain": lambda model: (model.blocks[0].mlp.hidden.neuron, "gain"),
    "pooled": lambda model: (model.blocks[0].attention.mixing, "pooled"),
    "encode": lambda model: (model, "encode"),
}


@pytest.mark.parametrize("find", PATCHES.values(), ids=PATCHES)
def test_methods_replaced_on_an_instance_raise(find: Callable, tmp_path: Path) -> None:
    model = small()
    module, name = find(model)
    setattr(module, name, getattr(module, name))
    with mistake(FieldError, name):
        sf.save(model, tmp_path / "x.safetensors")
    with mistake(FieldError, name):
        sf.compile_engine(model)


def test_other_norms_watching_and_a_plain_linear_head_are_taken(tmp_path: Path) -> None:
    model, x = small(), frames_for(small().config, batch_size=2)
    expected = sf.compile_engine(model)(x)
    head = nn.Linear(32, 10).double()
    head.load_state_dict(model.head.state_dict())
    model.head = head
    for change in (sync_norms, nn.SyncBatchNorm.convert_sync_batchnorm):
        other = copy.deepcopy(model)
        other = change(other) or other
        with sf.record(other):
            sf.save(other, tmp_path / "x.safetensors")
            assert (sf.compile_engine(other)(x) == expected).all()
        assert torch.allclose(sf.load(tmp_path / "x.safetensors")(x), model(x))


WRAPPERS: dict[str, Callable[[nn.Module], nn.Module]] = {
    "AveragedModel": AveragedModel,
    "DataParallel": nn.DataParallel,
    "torch.compile": lambda model: torch.compile(model, backend="eager"),
    "both": lambda model: nn.DataParallel(AveragedModel(model)),
}


@pytest.mark.parametrize("wrap", WRAPPERS.values(), ids=WRAPPERS)
def test_wrapped_models_are_measured_saved_and_compiled_as_themselves(wrap: Callable, tmp_path: Path) -> None:
    model = small()
    x = frames_for(model.config, batch_size=2)
    wrapped = wrap(model)
    assert sf.measure_energy(wrapped, [x]).to_dict() == sf.measure_energy(model, [x]).to_dict()
    sf.save(wrapped, tmp_path / "x.safetensors")
    assert (sf.compile_engine(wrapped)(x) == sf.compile_engine(model)(x)).all()
    assert type(unwrap(wrapped, "test")) is sf.Spikformer


def test_what_is_no_network_of_ours_is_an_error() -> None:
    with field_error("model", "measure_energy", "Linear"):
        sf.measure_energy(nn.Linear(2, 2), [])


@pytest.mark.parametrize("wrap", [lambda model: model, AveragedModel], ids=["plain", "wrapped"])
@pytest.mark.parametrize("measure", [sf.measure_energy, measure_firing])
def test_every_module_keeps_its_mode(measure: Callable, wrap: Callable) -> None:
    model = wrap(small()).train()
    unwrap(model, "test").stem.eval()
    before = [module.training for module in model.modules()]
    measure(model, [frames_for(unwrap(model, "test").config, batch_size=2)])
    assert [module.training for module in model.modules()] == before
    with field_error("batches"):
        measure(model, [])
    assert [module.training for module in model.modules()] == before


def test_the_mode_comes_back_after_an_error() -> None:
    model = small().train()
    model.head.eval()

    def fail() -> None:
        with eval_mode(model):
            assert not any(module.training for module in model.modules())
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert [module.training for module in (model, model.stem, model.head)] == [True, True, False]


@pytest.mark.parametrize("head", [nn.Identity(), nn.Sequential(nn.Linear(32, 8), nn.ReLU(), nn.Linear(8, 3)).double()])
def test_another_head_runs(head: nn.Module) -> None:
    model = small()
    x = frames_for(model.config, batch_size=2)
    plain = model.forward_steps(x)
    original, model.head = model.head, head
    size = 32 if isinstance(head, nn.Identity) else 3
    assert model(x).shape == (2, size)
    assert model.resting_readout().shape == (size,)
    logits, _ = model.step(x, model.initial_state(2))
    assert torch.allclose(logits, model.forward_steps(x)[0])
    if isinstance(head, nn.Identity):
        assert torch.allclose(original(model.forward_steps(x)), plain)
    assert measure_firing(model, [x]).num_samples == 2
