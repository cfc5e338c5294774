"""The norm over all processes: of one process it is torch's own, to rounding, in every direction."""

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path

import pytest
import torch
import torch.distributed
from torch import Tensor, nn
from torch.optim.swa_utils import update_bn

import spikformer as sf
from spikformer.layers.conv import batch_norm
from spikformer.layers.sync_norm import SyncedBatchNorm, sync_norms


@pytest.fixture(scope="module", autouse=True)
def _one_process(tmp_path_factory) -> Iterator[None]:
    store: Path = tmp_path_factory.mktemp("group") / "store"
    torch.distributed.init_process_group("gloo", init_method=f"file://{store}", rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


SHAPES = {nn.BatchNorm1d: [(6, 5), (6, 5, 7)], nn.BatchNorm2d: [(3, 5, 4, 6), (1, 5, 2, 2)]}
CASES = [(kind, shape) for kind, shapes in SHAPES.items() for shape in shapes]


def pair(kind: type[nn.Module], **options) -> tuple[nn.Module, nn.Module]:
    """Torch's norm and ours, with the same weights and buffers."""
    plain = kind(5, eps=1e-3, **{"momentum": 0.2, **options}).double()
    for tensor in (plain.weight, plain.bias, plain.running_mean):
        if tensor is not None:
            nn.init.normal_(tensor)
    holder = nn.Sequential(deepcopy(plain))
    sync_norms(holder)
    assert isinstance(holder[0], SyncedBatchNorm)
    return plain, holder[0]


def buffers_agree(one: nn.Module, other: nn.Module) -> bool:
    ours, theirs = dict(one.named_buffers()), dict(other.named_buffers())
    same = (torch.allclose(ours[name], theirs[name], rtol=1e-12, atol=1e-14) for name in ours)
    return ours.keys() == theirs.keys() and all(same)


@pytest.mark.parametrize(("kind", "shape"), CASES)
def test_forward_backward_and_buffers_are_torchs(kind, shape: tuple[int, ...]) -> None:
    plain, synced = pair(kind)
    for seed in range(3):
        torch.manual_seed(seed)
        x = (torch.randn(shape, dtype=torch.float64) * 3 + 2).requires_grad_()
        twin = x.detach().clone().requires_grad_()
        weight = torch.randn(shape, dtype=torch.float64)
        expected, found = plain(x), synced(twin)
        (expected * weight).sum().backward()
        (found * weight).sum().backward()
        assert torch.allclose(found, expected, rtol=1e-10, atol=1e-12)
        assert torch.allclose(twin.grad, x.grad, rtol=1e-8, atol=1e-11)
    assert torch.allclose(synced.weight.grad, plain.weight.grad, rtol=1e-10)
    assert torch.allclose(synced.bias.grad, plain.bias.grad, rtol=1e-10)
    assert buffers_agree(plain, synced)
    assert synced.num_batches_tracked == 3


@pytest.mark.parametrize(("kind", "shape"), CASES)
def test_in_eval_mode_it_reads_its_buffers_and_changes_none(kind, shape: tuple[int, ...]) -> None:
    plain, synced = pair(kind)
    x = torch.randn(shape, dtype=torch.float64)
    assert torch.equal(synced.eval()(x), plain.eval()(x))
    assert buffers_agree(plain, synced)


@pytest.mark.parametrize("repeats", [1, 2, 4, 16])
def test_copies_of_a_still_image_are_counted_as_elsewhere(repeats: int) -> None:
    plain, synced = pair(nn.BatchNorm2d)
    copies = deepcopy(plain)
    for _ in range(3):
        x = torch.randn(3, 5, 4, 4, dtype=torch.float64)
        expected = copies(x.repeat(repeats, 1, 1, 1))[:3]
        assert torch.allclose(batch_norm(plain, x, repeats), expected, atol=1e-12)
        assert torch.allclose(batch_norm(synced, x, repeats), expected, atol=1e-12)
    assert buffers_agree(synced, plain)
    assert buffers_agree(synced, copies)


OPTIONS = [{"momentum": None}, {"track_running_stats": False}, {"affine": False}]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("repeats", [1, 4])
def test_other_norms_are_torchs_on_all_copies(options: dict, repeats: int) -> None:
    """A cumulative average, as update_bn wants it; batch statistics alone; no weights."""
    plain, synced = pair(nn.BatchNorm2d, **options)
    copies = deepcopy(plain)
    for _ in range(3):
        x = torch.randn(3, 5, 4, 4, dtype=torch.float64)
        expected = copies(x.repeat(repeats, 1, 1, 1))[:3]
        for norm in (plain, synced):
            assert torch.allclose(batch_norm(norm, x, repeats), expected, atol=1e-12)
    assert buffers_agree(plain, copies)
    assert buffers_agree(synced, copies)
    for norm in (plain, synced):
        assert torch.allclose(batch_norm(norm.eval(), x, 1), copies.eval()(x), atol=1e-12)


@pytest.mark.parametrize("synced", [False, True])
def test_update_bn_is_the_mean_over_batches(synced: bool) -> None:
    model, batches = network(), [torch.randn(6, 1, 8, 8, dtype=torch.float64) for _ in range(3)]
    if synced:
        sync_norms(model)
    conv, norm, time_steps = model.stem.stages[0].conv, model.stem.stages[0].norm, model.config.time_steps
    update_bn(batches, model)
    seen = [conv(x).repeat(time_steps, 1, 1, 1).transpose(0, 1).flatten(1) for x in batches]
    assert torch.allclose(norm.running_mean, torch.stack([x.mean(1) for x in seen]).mean(0), atol=1e-12)
    assert torch.allclose(norm.running_var, torch.stack([x.var(1) for x in seen]).mean(0), atol=1e-12)
    assert norm.momentum == 0.1
    assert norm.num_batches_tracked == 3


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_halves_are_summed_in_float32_and_come_back_as_halves(dtype: torch.dtype) -> None:
    """As autocast hands them over, with weights in float32."""
    plain, synced = (norm.float() for norm in pair(nn.BatchNorm2d))
    x = (torch.randn(64, 5, 8, 8) * 3 + 20).to(dtype).requires_grad_()
    twin = x.detach().clone().requires_grad_()
    expected, found = plain(x), synced(twin)
    assert found.dtype is expected.dtype is dtype
    assert torch.allclose(found.float(), expected.float(), atol=0.05)
    assert torch.allclose(synced.running_mean, plain.running_mean, rtol=1e-5)
    assert torch.allclose(synced.running_var, plain.running_var, rtol=1e-4)
    found.float().square().sum().backward()
    assert torch.isfinite(twin.grad).all()


def network() -> nn.Module:
    return sf.create_model("spikformer_tiny_digits").double()


def gradients(model: nn.Module, x: Tensor) -> dict[str, Tensor]:
    model.train()(x).square().sum().backward()
    return {name: parameter.grad for name, parameter in model.named_parameters()}


def test_a_whole_network_computes_the_same_with_them() -> None:
    plain = network()
    synced = deepcopy(plain)
    sync_norms(synced)
    x = torch.randn(6, 1, 8, 8, dtype=torch.float64)
    ours, theirs = gradients(synced, x), gradients(plain, x)
    assert all(torch.allclose(ours[name], theirs[name], rtol=1e-6, atol=1e-10) for name in theirs)
    assert buffers_agree(synced, plain)


def test_every_norm_is_replaced_and_names_weights_and_modes_stay() -> None:
    model = network().eval()
    model.blocks[0].train()
    parameters, names = dict(model.named_parameters()), list(model.state_dict())
    modes = {name: module.training for name, module in model.named_modules()}
    sync_norms(model)
    assert not any(isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d) for module in model.modules())
    assert sum(isinstance(module, SyncedBatchNorm) for module in model.modules()) > 10
    assert list(model.state_dict()) == names
    assert all(parameter is parameters[name] for name, parameter in model.named_parameters())
    assert {name: module.training for name, module in model.named_modules()} == modes


def test_a_synced_network_can_be_saved_and_loaded_without_any_group(tmp_path: Path) -> None:
    model = network().eval()
    x = torch.randn(2, 1, 8, 8, dtype=torch.float64)
    expected = model(x)
    sync_norms(model)
    sf.save(model, tmp_path / "model.safetensors")
    loaded = sf.load(tmp_path / "model.safetensors")
    assert not any(isinstance(module, SyncedBatchNorm) for module in loaded.modules())
    assert torch.equal(loaded(x), expected)
