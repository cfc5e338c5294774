"""The presets are the published models: names, sizes, docstrings."""

import pytest
import torch
from tests.mistakes import field_error, mistake

import spikformer as sf
from spikformer.analysis.specimens import distinct_models
from spikformer.errors import UnknownNameError
from spikformer.models import build_model
from spikformer.presets import PRESETS, get_preset
from spikformer.successors import COUNTED_PARAMETERS, CountedParameters

pytestmark = pytest.mark.core

EXPECTED = {  # weights that the authors' network never uses excluded
    "spikformer_4_384_imagenet": 9.701,
    "spikformer_8_384_imagenet": 16.816,
    "spikformer_6_512_imagenet": 23.373,
    "spikformer_8_512_imagenet": 29.689,
    "spikformer_10_512_imagenet": 36.005,
    "spikformer_8_768_imagenet": 66.339,
    "spikformer_2_256_cifar10dvs": 2.567,
    "spikformer_2_256_dvs128": 2.567,
    "transformer_8_512_imagenet": 29.689,
}
RESIDUAL = {f"sew_resnet_{layers}_imagenet" for layers in (18, 34, 50, 101, 152)}
RESIDUAL |= {"sew_wide_7b_net_cifar10dvs", "sew_7b_net_dvs128"}
OWN = ("spikformer_4_384_imagenet", "spike_driven_transformer_2_256_cifar10")  # without a published accuracy
OWN += tuple(sf.list_models("ms_qkformer_*"))


def parameters(name: str) -> int:
    with torch.device("meta"):
        return sum(p.numel() for p in sf.create_model(name).parameters())


def test_every_name_of_the_design_is_there() -> None:
    imagenet = {f"spikformer_{size}_imagenet" for size in ("4_384", "8_384", "6_512", "8_512", "10_512", "8_768")}
    cifar = {f"spikformer_{size}_{data}" for size in ("4_256", "2_384", "4_384") for data in ("cifar10", "cifar100")}
    events = {"spikformer_2_256_cifar10dvs", "spikformer_2_256_dvs128"}
    twins = {"transformer_4_384_cifar10", "transformer_4_384_cifar100", "transformer_8_512_imagenet"}
    tiny = {"spikformer_tiny_digits", "spikformer_tiny_digits_dvs"}
    small = {"spikformer_small_cifar10", "transformer_small_cifar10", "spikformer_small_events"}
    ours = imagenet | cifar | events | twins | tiny | small
    assert {name for name in sf.list_models() if name.startswith(("spikformer_", "transformer_"))} == ours
    for family in ("spikingformer", "cml_spikingformer", "cml_spikformer"):
        sizes = {f"{family}_{size}_imagenet" for size in ("8_384", "8_512", "8_768")}
        sizes |= {f"{family}_{size}_{data}" for size in ("4_256", "2_384", "4_384") for data in ("cifar10", "cifar100")}
        sizes |= {f"{family}_2_256_cifar10dvs", f"{family}_2_256_dvs128"}
        if family == "cml_spikingformer":
            sizes |= {
                f"{family}_{size}"
                for size in ("tiny_digits", "tiny_digits_dvs", "small_cifar10", "small_fashion_mnist")
            }
        assert set(sf.list_models(f"{family}_*")) == sizes
    assert len(sf.list_models("spike_driven_transformer_*")) == 10
    assert set(sf.list_models("sew_*")) == {*RESIDUAL, "sew_resnet_small_cifar10"}
    assert set(sf.list_models("max_resnet_*")) == {"max_resnet_18_cifar10", "max_resnet_18_cifar100"}
    hierarchical = {f"{size}_imagenet" for size in ("10_384", "10_512", "10_768")} | {"4_384_cifar10", "4_384_cifar100"}
    events = {"2_256_cifar10dvs", "2_256_dvs128"}
    ours = {"tiny_digits", "tiny_digits_dvs", "small_cifar10"}
    for family, sizes in (
        ("ms_qkformer", hierarchical),
        ("qkformer", hierarchical | events),
        ("maxformer", hierarchical | events | ours),
    ):
        assert set(sf.list_models(f"{family}_*")) == {f"{family}_{size}" for size in sizes}
    assert set(sf.list_models("transformer_?_*")) == twins
    assert sf.list_models("nothing*") == []


@pytest.mark.parametrize(("name", "millions"), EXPECTED.items())
def test_parameters_in_millions(name: str, millions: float) -> None:
    assert round(parameters(name) / 1e6, 3) == millions


@pytest.mark.parametrize(("name", "counted"), COUNTED_PARAMETERS.items())
def test_parameters_are_the_authors_but_for_those_never_used(name: str, counted: CountedParameters) -> None:
    assert parameters(name) == counted.total - counted.unused
    config = get_preset(name).config
    if name.startswith("spikingformer"):
        assert counted.unused == config.depth * 4 * config.embed_dim  # two layer norms, of two numbers for each feature
        assert parameters(f"cml_{name}") == parameters(name)
    else:
        assert counted.unused == (config.depth * config.num_heads**2 if name.startswith("spike_driven") else 0)


@pytest.mark.parametrize("name", sf.list_models())
def test_a_config_knows_its_number_of_parameters(name: str) -> None:
    assert get_preset(name).config.num_parameters == parameters(name)


@pytest.mark.parametrize(
    "name", [name for name in distinct_models() if get_preset(name).config.neuron in ("lif", "if")]
)
def test_time_constants_are_parameters(name: str) -> None:
    config = get_preset(name).config.override(neuron="plif")
    with torch.device("meta"):
        assert config.num_parameters == sum(each.numel() for each in build_model(config).parameters())


def test_small_networks_are_small() -> None:
    assert parameters("maxformer_small_cifar10") < 2e6
    assert parameters("cml_spikingformer_small_cifar10") == pytest.approx(1.77e6, rel=0.01)
    assert parameters("cml_spikingformer_small_fashion_mnist") == pytest.approx(0.45e6, rel=0.01)
    for name in sf.list_models("*_tiny_digits*"):
        assert parameters(name) < 3e5


@pytest.mark.parametrize("name", sf.list_models("cml_spikformer_*"))
def test_a_pool_before_the_neuron_changes_no_size(name: str) -> None:
    assert parameters(name) == parameters(name.removeprefix("cml_"))


def test_the_exact_count_of_4_384() -> None:
    assert parameters("spikformer_4_384_cifar10") == parameters("transformer_4_384_cifar10") == 9_324_730


@pytest.mark.parametrize("name", sf.list_models())
def test_a_docstring_tells_the_papers_row(name: str) -> None:
    text, paper = PRESETS[name].__doc__, get_preset(name).paper
    assert text
    if paper is None:
        assert "tiny" in name or "small" in name or name in OWN
        return
    for value in (paper.parameters_millions, paper.accuracy_percent, paper.operations_giga, paper.energy_mj):
        assert value is None or any(float(word) == value for word in text.replace(",", " ").split() if _number(word))


def _number(word: str) -> bool:
    return word.replace(".", "", 1).isdecimal()


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with mistake(UnknownNameError, kind="model", name="spikformer_4_384_cifar") as caught:
        sf.create_model("spikformer_4_384_cifar")
    assert caught.value.suggestion.startswith("spikformer_4_384_cifar10")


def test_an_override_reaches_the_network() -> None:
    model = sf.create_model("spikformer_tiny_digits", num_classes=3, time_steps=2, in_channels=2, image_size=(8, 12))
    assert model(torch.randn(2, 2, 8, 12)).shape == (2, 3)
    with field_error("num_class", "'num_classes'"):
        sf.create_model("spikformer_tiny_digits", num_class=3)
