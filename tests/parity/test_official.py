"""Checkpoints of the authors' code: every layout is read, nothing in them is executed."""

import argparse
import logging
import os
import pickle
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file
from tests.mistakes import field_error, file_error, mistake

import spikformer as sf
from spikformer.analysis.golden import GOLDEN_FOLDER, VARIANTS, load_golden
from spikformer.errors import FileError
from spikformer.models.importers import STATE_DICT, recognise

CHECKPOINT = GOLDEN_FOLDER / "official_timm_checkpoint.pth.tar"


@pytest.fixture(autouse=True)
def _quiet(caplog) -> None:
    caplog.set_level(logging.WARNING, "spikformer")


def test_the_training_scripts_own_file() -> None:
    model, golden = sf.from_official(CHECKPOINT, num_heads=4), load_golden("cifar10")
    assert (model.config.image_size, model.config.time_steps, model.config.depth) == ((16, 16), 4, 2)
    assert next(model.parameters()).dtype == torch.float32
    with torch.no_grad():
        assert torch.allclose(model(golden.input.float()), golden.eval_logits.float(), atol=1e-4)


@pytest.mark.parametrize("variant", VARIANTS)
def test_variant_and_sizes_are_read_from_the_weights(variant: str) -> None:
    golden = load_golden(variant)
    config = sf.from_official(golden.state, num_heads=4).config
    expected = {
        "cifar10": ((False, False, True, True), 0.125, True, 3, 4, "trunc_normal", None),
        "imagenet": ((True, True, True, True), 0.125, False, 3, 4, "torch", None),
        "cifar10dvs": ((True, True, True, True), 0.25, False, 2, 16, "torch", (128, 128)),
    }[variant]
    got = (config.pool_stages, config.attention_scale, config.qkv_bias, config.in_channels, config.time_steps)
    assert (*got, config.linear_init, config.image_size) == expected
    assert (config.embed_dim, config.num_classes) == (32, golden.eval_logits.shape[1])


def test_the_dtype_is_kept() -> None:
    state = load_golden("imagenet").state
    for dtype in (torch.float64, torch.float32):
        cast = {k: v.to(dtype) if v.is_floating_point() else v for k, v in state.items()}
        assert sf.from_official(cast, num_heads=4).head.weight.dtype == dtype


def test_what_is_never_used_is_dropped_and_named(caplog) -> None:
    sf.from_official(load_golden("cifar10dvs").state, num_heads=4)
    assert "Dropped 7 tensors that the authors' network never uses" in caplog.text
    assert "block.*.norm1, block.*.norm2, norm, pos_embed" in caplog.text


@pytest.mark.parametrize("wrap", ["plain", "module", "state_dict", "model", "legacy", "parameters", "safetensors"])
def test_every_layout_of_a_file(wrap: str, tmp_path: Path) -> None:
    golden = load_golden("imagenet")
    state = {f"module.{k}" if wrap == "module" else k: v.contiguous() for k, v in golden.state.items()}
    path = tmp_path / ("weights.safetensors" if wrap == "safetensors" else "weights.pth")
    if wrap == "safetensors":
        save_file(state, path)
    else:
        if wrap == "parameters":
            state = {k: torch.nn.Parameter(v, requires_grad=v.is_floating_point()) for k, v in state.items()}
        content = {wrap: state, "epoch": 3} if wrap in ("state_dict", "model") else state
        torch.save(content, path, _use_new_zipfile_serialization=wrap != "legacy")
    model = sf.from_official(path, num_heads=4, time_steps=4)
    with torch.no_grad():
        assert torch.equal(model(golden.input), golden.model()(golden.input))


class Bomb:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


@pytest.mark.parametrize("new_format", [True, False])
def test_code_in_a_checkpoint_is_never_executed(tmp_path: Path, new_format: bool) -> None:
    mark, path = tmp_path / "executed", tmp_path / "bomb.pth"
    torch.save({"state_dict": Bomb(mark)}, path, _use_new_zipfile_serialization=new_format)
    with file_error(path, "unsafe", f"{os.system.__module__}.system"):
        sf.from_official(path, num_heads=4)
    assert not mark.exists()


@pytest.mark.parametrize("protocol", [2, 5])
def test_a_bare_pickle_is_never_executed(tmp_path: Path, protocol: int) -> None:
    mark, path = tmp_path / "executed", tmp_path / "bomb.pth"
    path.write_bytes(pickle.dumps(Bomb(mark), protocol=protocol))
    with mistake(FileError, path=path):
        sf.from_official(path, num_heads=4)
    assert not mark.exists()


@pytest.mark.parametrize("content", [b"", b"garbage", CHECKPOINT.read_bytes()[:5000], b"PK\x03\x04" + b"0" * 100])
def test_a_damaged_file_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "damaged.pth"
    path.write_bytes(content)
    with mistake(FileError, path=path):
        sf.from_official(path, num_heads=4)


def test_a_zip_of_something_else(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "other.pth", "w") as archive:
        archive.writestr("readme.txt", "hello")
    with file_error(tmp_path / "other.pth"):
        sf.from_official(tmp_path / "other.pth", num_heads=4)


@pytest.mark.parametrize(
    ("change", "reason", "at"),
    [
        (lambda s: s.pop("head.bias"), "unfit", "head.bias"),
        (lambda s: s.update({"block.0.attn.extra": torch.zeros(1)}), "unfit", "block.0.attn.extra"),
        (lambda s: s.update({"head.bias": torch.zeros(4)}), "unfit", "head.bias"),
        (lambda s: s.pop("block.0.mlp.fc1_linear.weight"), "foreign", None),
        (lambda s: s.pop("head.weight"), "damaged", "head.weight"),
        (lambda s: s.clear(), "empty", None),
        (lambda s: s.update(text="hello"), "empty", None),
    ],
)
def test_a_state_dict_that_does_not_fit(change, reason: str, at: str | None) -> None:
    state = dict(load_golden("cifar10").state)
    change(state)
    with file_error(STATE_DICT, reason, at=at):
        sf.from_official(state, num_heads=4)


def test_the_number_of_heads_must_fit() -> None:
    with field_error("num_heads", 32, "num_heads=5"):
        sf.from_official(load_golden("cifar10").state, num_heads=5)
    with field_error("num_heads", "num_heads=4", "num_heads=8"):
        sf.from_official(CHECKPOINT, num_heads=8)


def test_training_arguments_may_be_missing_or_other(tmp_path: Path) -> None:
    state = load_golden("cifar10").state
    path = tmp_path / "c.pth"
    torch.save({"state_dict": state, "args": argparse.Namespace(lr=0.1)}, path)
    assert sf.from_official(path, num_heads=4).config.image_size is None
    assert sf.from_official(path, num_heads=4, image_size=16, time_steps=6).config.time_steps == 6


def test_the_event_scripts_own_layout(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint_max_test_acc1.pth"
    torch.save({"model": load_golden("cifar10dvs").state, "args": argparse.Namespace(T=10), "epoch": 3}, path)
    assert sf.from_official(path, num_heads=4).config.time_steps == 10


@pytest.mark.parametrize("argument", ["time_steps", "image_size"])
def test_zero_is_no_default(argument: str) -> None:
    with field_error(argument):
        sf.from_official(load_golden("cifar10").state, num_heads=4, **{argument: 0})


@given(position=st.integers(0, 4000), value=st.integers(0, 255))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_pickle_is_rejected_with_a_message(tmp_path: Path, position: int, value: int) -> None:
    """Bytes of the pickle inside the archive, changed one at a time; its checksum is made anew."""
    path = tmp_path / "damaged.pth"
    with zipfile.ZipFile(CHECKPOINT) as source, zipfile.ZipFile(path, "w") as target:
        for name in source.namelist():
            data = bytearray(source.read(name))
            if name.endswith("data.pkl"):
                data[position % len(data)] = value
            target.writestr(name, bytes(data))
    with suppress(ValueError):  # anything else fails the test
        assert isinstance(sf.from_official(path, num_heads=4), sf.Spikformer)


@pytest.mark.parametrize(
    ("key", "tensor"),
    [
        ("pos_embed", torch.zeros(64)),
        ("pos_embed", torch.zeros(())),
        ("block.0.mlp.fc1_conv.weight", torch.zeros(())),
        ("block.0.mlp.fc1_conv.weight", torch.zeros(0, 0, 1)),
        ("block.0.mlp.fc1_conv.weight", torch.zeros(1).expand(1 << 40, 32, 1)),
        ("block.0.attn.q_bn.num_batches_tracked", torch.zeros(1 << 10)),
        ("head.weight", torch.zeros(())),
        ("head.bias", torch.empty(10, device="meta")),
        ("head.bias", torch.zeros(10).to_sparse()),
        ("head.bias", torch.zeros(1).expand(10)),
        ("head.bias\x1b[31m", torch.zeros(10)),
        ("block.99999999999999999999.attn.q_bn.bias", torch.zeros(10)),
        ("block.999999.attn.q_bn.bias", torch.zeros(10)),
    ],
)
@pytest.mark.parametrize("in_file", [False, True])
def test_a_tensor_that_cannot_be_a_weight_is_named(
    key: str, tensor: torch.Tensor, in_file: bool, tmp_path: Path
) -> None:
    state: dict | Path = {**load_golden("cifar10dvs").state, key: tensor}
    if in_file:
        torch.save(state, path := tmp_path / "weights.pth")
        state = path
    with mistake(FileError, path=tmp_path / "weights.pth" if in_file else Path(STATE_DICT)) as caught:
        sf.from_official(state, num_heads=4)
    assert str(caught.value).isprintable()


def test_training_arguments_that_are_no_numbers_are_ignored(tmp_path: Path) -> None:
    arguments = argparse.Namespace(num_heads=torch.zeros(3), T="many", img_size=None, time_step=[4])
    torch.save({"model": load_golden("cifar10dvs").state, "args": arguments}, tmp_path / "c.pth")
    config = sf.from_official(tmp_path / "c.pth", num_heads=4).config
    assert (config.time_steps, config.image_size) == (16, (128, 128))


def test_loaded_tensors_are_aligned_and_own_their_memory(tmp_path: Path) -> None:
    torch.save(load_golden("cifar10").state, path := tmp_path / "c.pth")
    model = sf.from_official(path, num_heads=4)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    path.write_bytes(bytes(path.stat().st_size))
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert all(tensor.data_ptr() % 64 == 0 for tensor in model.state_dict().values())


def test_names_of_neurons_translate_too() -> None:
    translate = recognise(load_golden("cifar10").state).translate
    assert translate("patch_embed.proj_lif2") == "stem.stages.2.neuron"
    assert translate("block.3.attn.attn_lif") == "blocks.3.attention.neuron"
    assert translate("block.0.attn.q_bn.bias") == "blocks.0.attention.query.norm.bias"
