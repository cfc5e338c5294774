"""What every architecture offers: features, heads, files with options, the registry."""

from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from tests.mistakes import field_error, file_error, unknown_name
from torch import nn

import spikformer as sf
from spikformer.analysis.specimens import frames_for, shrunk, specimen
from spikformer.config import ModelConfig
from spikformer.models.registry import architecture_of, build_model, get_architecture, register_architecture

pytestmark = pytest.mark.core


def small(**overrides) -> sf.Spikformer:
    return specimen(shrunk("spikformer_tiny_digits", depth=1, embed_dim=32, num_heads=4, **overrides), torch.float32)


def test_features_are_what_the_head_reads() -> None:
    model = small()
    x = frames_for(model.config, batch_size=2, dtype=torch.float32)
    tokens = model.forward_features(x)
    assert tokens.shape == (model.config.time_steps, 2, model.config.num_tokens, model.num_features)
    assert torch.equal(model.head(tokens.mean(2)), model.forward_steps(x))


def test_without_classes_the_model_returns_features() -> None:
    model = small(num_classes=0)
    x = frames_for(model.config, batch_size=2, dtype=torch.float32)
    assert torch.allclose(model(x), model.forward_features(x).mean((0, 2)))
    assert model.resting_readout().tolist() == [0.0] * 32
    assert "head.weight" not in model.state_dict()


@pytest.mark.parametrize("num_classes", [0, 3])
def test_a_reset_classifier_leaves_the_rest(num_classes: int, tmp_path: Path) -> None:
    model = small().double()
    x = frames_for(model.config, batch_size=2)
    before = model.forward_features(x)
    model.reset_classifier(num_classes)
    assert model.config.num_classes == num_classes
    assert torch.equal(model.forward_features(x), before)
    assert model(x).shape == (2, num_classes or 32)
    assert not model.head.training
    sf.save(model, tmp_path / "model.safetensors")
    assert torch.equal(sf.load(tmp_path / "model.safetensors")(x), model(x))


def test_a_new_head_starts_as_a_fresh_models() -> None:
    model = sf.create_model("spikformer_2_384_cifar10")
    model.reset_classifier(100)
    assert model.head.weight.std().item() == pytest.approx(0.02, rel=0.05)
    assert not model.head.bias.any()


def test_loading_with_options(tmp_path: Path) -> None:
    model = small()
    sf.save(model, tmp_path / "model.safetensors")
    loaded = sf.load(tmp_path / "model.safetensors", dtype=torch.float64, device="cpu", time_steps=7)
    assert {parameter.dtype for parameter in loaded.parameters()} == {torch.float64}
    assert loaded.config == model.config.override(time_steps=7)
    x = frames_for(model.config, batch_size=2)
    assert loaded.forward_steps(x).shape[0] == 7
    assert sf.load(tmp_path / "model.safetensors", device="meta").like.is_meta


def test_decay_leaves_what_has_one_axis_or_none() -> None:
    kept = sf.create_model("spikformer_tiny_digits", neuron="plif", learnable_scale=True).no_weight_decay()
    assert {"head.bias", "blocks.0.attention.mixing.scale", "stem.stages.0.neuron.gain_logit"} <= kept
    assert "head.weight" not in kept


def test_the_registry_knows_an_architecture_by_name_and_by_config() -> None:
    architecture = get_architecture("spikformer")
    assert architecture.config_type is ModelConfig
    assert architecture_of(ModelConfig()) is architecture
    assert type(build_model(shrunk("spikformer_tiny_digits"))) is sf.Spikformer


def test_a_config_belongs_to_one_architecture() -> None:
    @dataclass(frozen=True)
    class OtherConfig(ModelConfig):
        """Of nobody's."""

    with field_error("config_type", "'spikformer'"):
        register_architecture("another", sf.Spikformer, ModelConfig)
    with field_error("config", "OtherConfig"):
        architecture_of(OtherConfig())
    with unknown_name("architecture", "spikformr", suggestion="spikformer"):
        get_architecture("spikformr")


def test_a_file_names_its_architecture_and_older_ones_are_spikformers(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    sf.save(small(), path)
    with safe_open(path, "pt") as file:
        tensors, metadata = {name: file.get_tensor(name) for name in file.keys()}, dict(file.metadata())
    assert metadata.pop("architecture") == "spikformer"
    save_file(tensors, path, metadata)
    assert isinstance(sf.load(path), sf.Spikformer)
    save_file(tensors, path, metadata | {"architecture": "resnet"})
    with file_error(path, "unsupported", "'resnet'"):
        sf.load(path)


def test_layers_of_ours_work_in_a_sequence() -> None:
    model = small().double()  # where sums have an order of ours
    encoder = nn.Sequential(model.stem, *model.blocks)
    x = frames_for(model.config, batch_size=2)
    frames = x.expand(model.config.time_steps, *x.shape)
    assert torch.equal(encoder(frames), model.forward_features(x))
