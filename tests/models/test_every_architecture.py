"""What works for one architecture works for every: compile, export, conventional twins, features, files."""

from dataclasses import fields
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

import spikformer as sf
from spikformer.analysis.specimens import frames_for, shrunk, specimen
from spikformer.models import SpikingNetwork, build_model
from spikformer.models.registry import architecture_of
from spikformer.presets import get_preset

NETWORKS = {
    "spikformer_4_384_cifar10": {},
    "cml_spikformer_2_256_dvs128": {},
    "spikingformer_2_256_cifar10dvs": {},
    "cml_spikingformer_4_384_cifar10": {},
    "spike_driven_transformer_2_512_cifar10": {},
    "spike_driven_transformer_2_256_cifar10dvs": {},
    "qkformer_4_384_cifar10": {},
    "ms_qkformer_10_384_imagenet": {},
    "maxformer_10_384_imagenet": {},
    "maxformer_2_256_cifar10dvs": {},
    "sew_resnet_18_imagenet": {"image_size": (32, 64)},
    "sew_resnet_50_imagenet": {"image_size": (32, 64), "join": "iand"},
    "sew_wide_7b_net_cifar10dvs": {"join": "and"},
    "max_resnet_18_cifar10": {},
}
OF_SPIKES = ("tau", "v_threshold", "v_reset", "attention_v_threshold", "surrogate", "surrogate_alpha", "join")


def small(name: str, dtype: torch.dtype = torch.float32, **overrides) -> SpikingNetwork:
    return specimen(shrunk(name, **{"time_steps": 2, "num_classes": 10} | NETWORKS[name] | overrides), dtype)


def twin_of(name: str, neuron: str) -> SpikingNetwork:
    """Without spikes, settings of theirs must be the defaults."""
    defaults = {field.name: field.default for field in fields(get_preset(name).config) if field.name in OF_SPIKES}
    return small(name, neuron=neuron, **defaults)


def frames(model: SpikingNetwork, batch_size: int = 3) -> torch.Tensor:
    return frames_for(model.config, batch_size, model.like.dtype)


def test_every_architecture_is_here() -> None:
    names = {architecture_of(get_preset(name).config).name for name in NETWORKS}
    assert names == {architecture_of(get_preset(name).config).name for name in sf.list_models()}


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_compiled_without_graph_breaks_in_training_and_inference(name: str) -> None:
    torch.compiler.reset()  # or the networks before this one count as its recompilations
    model, twin = small(name, torch.float64).train(), small(name, torch.float64).train()
    x = frames(model)
    for network in (torch.compile(model, fullgraph=True, backend="aot_eager"), twin):
        network(x).square().sum().backward()
    for (parameter, ours), theirs in zip(model.named_parameters(), twin.parameters(), strict=True):
        assert torch.allclose(ours.grad, theirs.grad, rtol=1e-6, atol=1e-9), parameter
    model.eval(), twin.eval()
    with torch.no_grad():
        assert torch.allclose(torch.compile(model, fullgraph=True, backend="aot_eager")(x), twin(x), atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_exported(name: str) -> None:
    model = small(name, torch.float64)
    x = frames(model)
    program = torch.export.export(model, (x,))
    with torch.no_grad():
        assert torch.allclose(program.module()(x), model(x), atol=1e-9)


@pytest.mark.parametrize("neuron", ["relu", "gelu"])
@pytest.mark.parametrize("name", NETWORKS)
def test_a_conventional_twin_learns_and_its_energy_is_multiplications(name: str, neuron: str) -> None:
    model = twin_of(name, neuron)
    x, before = frames(model), model.head.weight.detach().clone()
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    loss = F.cross_entropy(model.train()(x), torch.tensor([0, 1, 2]))
    loss.backward()
    assert all(torch.isfinite(parameter.grad).all() for parameter in model.parameters())
    optimiser.step()
    assert not torch.equal(model.head.weight, before)
    report = sf.measure_energy(model.eval(), [x])
    operations = [layer.operations("paper") for layer in report.layers]
    assert sum(count.macs for count in operations) > 0
    assert all(count.acs == 0 for count in operations)


@pytest.mark.parametrize("name", NETWORKS)
def test_features_and_another_head(name: str, tmp_path: Path) -> None:
    model = small(name, torch.float64)
    x = frames(model)
    with torch.no_grad():
        tokens, logits = model.forward_features(x), model(x)
        assert tokens.shape[:2] == (2, 3)
        assert model.pool(tokens).shape == (2, 3, model.num_features)
        model.reset_classifier(5)
        assert torch.equal(model.forward_features(x), tokens)
        answer = model(x)
        assert (answer.shape, logits.shape) == ((3, 5), (3, 10))
        sf.save(model, tmp_path / "net.safetensors")
        loaded = sf.load(tmp_path / "net.safetensors")
        assert (type(loaded), loaded.config) == (type(model), model.config)
        assert torch.equal(loaded(x), answer)
        model.reset_classifier(0)
        assert model(x).shape[0] == 3
        assert model.config.num_classes == 0


@pytest.mark.parametrize("name", NETWORKS)
def test_without_classes_it_can_be_built_and_saved(name: str, tmp_path: Path) -> None:
    model = build_model(shrunk(name, **NETWORKS[name] | {"num_classes": 0})).eval()
    sf.save(model, tmp_path / "features.safetensors")
    x = frames(model)
    with torch.no_grad():
        assert torch.equal(sf.load(tmp_path / "features.safetensors")(x), model(x))
