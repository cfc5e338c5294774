"""Checkpoints and files of another architecture than the one named: an error that names what was expected."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from tests.mistakes import shows

import spikformer as sf
from spikformer.analysis.golden import FAMILY, IN_PACKAGE, load_golden
from spikformer.analysis.specimens import shrunk, specimen
from spikformer.errors import FieldError, UserError
from spikformer.models.files import read_safetensors
from spikformer.models.importers import recognise

WITHOUT_HEADS = ("sew_resnet_add",)


@pytest.mark.parametrize("name", IN_PACKAGE)
def test_a_preset_of_another_family_raises(name: str, tmp_path: Path) -> None:
    golden = load_golden(name)
    heads = {} if name in WITHOUT_HEADS else {"num_heads": golden.num_heads}
    path = tmp_path / "model_best.pth.tar"
    torch.save({"state_dict": {f"module.{key}": x for key, x in golden.state.items()}}, path)
    title = recognise(golden.state).title
    for other in {FAMILY[recording] for recording in IN_PACKAGE} - {FAMILY[name]}:
        with pytest.raises(FieldError) as error:
            sf.from_official(path, preset=other, **heads)
        assert error.value.field == "preset"
        assert all(word in str(error.value) for word in (str(path), title, other, FAMILY[name]))


def test_heads_are_for_networks_that_have_them() -> None:
    with pytest.raises(FieldError) as error:
        sf.from_official(load_golden("sew_resnet_add").state, num_heads=8)
    assert error.value.field == "num_heads"
    assert "SEW-ResNet" in str(error.value)


def test_a_file_of_an_unknown_architecture_or_of_another_one(tmp_path: Path) -> None:
    path = tmp_path / "net.safetensors"
    sf.save(specimen(shrunk("qkformer_2_256_cifar10dvs"), torch.float32), path)
    metadata, tensors = read_safetensors(path)
    for architecture, expected in (("swinformer", "swinformer"), ("maxformer", "MaxFormerConfig")):
        save_file(tensors, path, metadata | {"architecture": architecture})
        with pytest.raises(UserError) as caught:
            sf.load(path)
        assert shows(str(caught.value), expected)


def test_an_engine_file_of_an_unknown_architecture(tmp_path: Path) -> None:
    path = tmp_path / "net.engine"
    sf.compile_engine(specimen(shrunk("spikingformer_4_384_cifar10"), torch.float32)).save(path)
    path.write_bytes(path.read_bytes().replace(b"spikingformer", b"swinningforme"))
    with pytest.raises(UserError) as caught:
        sf.load_engine(path)
    assert shows(str(caught.value), "swinningforme")
