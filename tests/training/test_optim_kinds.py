"""Optimisers: each against its formula by hand, their groups, and a run that resumes to the bit with any of them."""

from dataclasses import replace
from math import sqrt
from pathlib import Path

import pytest
import torch
from tests.mistakes import file_error
from torch import nn

import spikformer as sf
from spikformer.data.augmentation import Augmentation
from spikformer.training import Recipe, Trainer
from spikformer.training.optim import (
    Lamb,
    MuonWithAdamW,
    build_optimiser,
    learning_rate,
    orthogonalise,
    set_learning_rate,
    state_forms,
)
from spikformer.training.state import load_state

KINDS = ("adamw", "sgd", "lamb", "muon")


def test_lamb_is_its_formula_by_hand() -> None:
    """Two steps of a tensor of two numbers, in plain arithmetic."""
    weight = nn.Parameter(torch.tensor([3.0, 4.0], dtype=torch.float64))
    optimiser = Lamb([{"params": [weight]}], lr=0.1, betas=(0.9, 0.99), eps=1e-6, weight_decay=0.01)
    w, m, v = [3.0, 4.0], [0.0, 0.0], [0.0, 0.0]
    for count, gradient in enumerate(([0.5, -1.0], [-0.25, 2.0]), 1):
        weight.grad = torch.tensor(gradient, dtype=torch.float64)
        optimiser.step()
        m = [0.9 * old + 0.1 * g for old, g in zip(m, gradient, strict=True)]
        v = [0.99 * old + 0.01 * g * g for old, g in zip(v, gradient, strict=True)]
        adam = [(a / (1 - 0.9**count)) / (sqrt(b / (1 - 0.99**count)) + 1e-6) for a, b in zip(m, v, strict=True)]
        update = [step + 0.01 * each for step, each in zip(adam, w, strict=True)]
        ratio = sqrt(sum(each * each for each in w)) / sqrt(sum(each * each for each in update))
        w = [each - 0.1 * ratio * step for each, step in zip(w, update, strict=True)]
        assert weight.tolist() == pytest.approx(w, rel=1e-13)


@pytest.mark.parametrize("start", [0.0, 2.0])
def test_lamb_takes_adams_step_where_nothing_adapts_or_a_norm_is_zero(start: float) -> None:
    adapting, plain = (nn.Parameter(torch.full((3,), start, dtype=torch.float64)) for _ in range(2))
    adam = nn.Parameter(plain.detach().clone())
    lamb = Lamb([{"params": [adapting]}, {"params": [plain], "adapts": False}], lr=0.1)
    reference = torch.optim.Adam([adam], lr=0.1, eps=1e-6)
    for _ in range(3):
        for parameter in (adapting, plain, adam):
            parameter.grad = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
        lamb.step()
        reference.step()
        assert torch.allclose(plain, adam, rtol=1e-12)
        if start == 0:
            assert torch.allclose(adapting, adam, rtol=1e-12)
            break
    assert torch.allclose(adapting, adam) == (start == 0)


def test_sgd_has_momentum_and_decays_only_what_decays() -> None:
    model = sf.create_model("spikformer_tiny_digits").double()
    optimiser = build_optimiser(model, 0.5, "sgd")
    set_learning_rate(optimiser, 0.1)
    weight, bias = model.head.weight.detach().clone(), model.head.bias.detach().clone()
    speed = torch.zeros_like(weight)
    for _ in range(2):
        for parameter in model.parameters():
            parameter.grad = torch.ones_like(parameter)
        speed = 0.9 * speed + 1 + 0.5 * weight
        weight = weight - 0.1 * speed
        optimiser.step()
    assert torch.allclose(model.head.weight, weight, rtol=1e-12)
    assert torch.allclose(model.head.bias, bias - 0.1 - 0.19, rtol=1e-12)


def test_muon_takes_matrices_and_kernels_and_adamw_the_rest() -> None:
    model = sf.create_model("spikformer_tiny_digits")
    optimiser = build_optimiser(model, 0.06, "muon")
    assert isinstance(optimiser, MuonWithAdamW)
    names = {parameter: name for name, parameter in model.named_parameters()}
    hidden = {names[parameter] for parameter in optimiser.hidden}
    assert {name for name, parameter in model.named_parameters() if parameter.ndim > 1} - hidden == {"head.weight"}
    grouped = [names[parameter] for group in optimiser.param_groups for parameter in group["params"]]
    assert sorted(grouped) == sorted(names.values())


@pytest.mark.parametrize("shape", [(6, 20), (20, 6), (8, 8), (1, 5)])
def test_orthogonal_matrices_keep_directions_and_lose_sizes(shape) -> None:
    matrix = torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    left, sizes, right = torch.linalg.svd(matrix, full_matrices=False)
    sizes = sizes / sizes.norm()
    for _ in range(5):
        sizes = 3.4445 * sizes - 4.7750 * sizes**3 + 2.0315 * sizes**5
    assert torch.allclose(orthogonalise(matrix), left @ torch.diag(sizes) @ right, atol=1e-12)
    assert sizes.max() < 1.25


def test_the_step_of_a_matrix_whose_gradient_is_zero_is_decay_alone() -> None:
    weight, bias = nn.Parameter(torch.ones(4, 3, 2, 2)), nn.Parameter(torch.ones(4))
    weight.grad, bias.grad = torch.zeros_like(weight), torch.zeros_like(bias)
    optimiser = MuonWithAdamW([weight], [{"params": [bias], "weight_decay": 0.0}], weight_decay=0.5)
    set_learning_rate(optimiser, 0.1)
    optimiser.step()
    assert torch.allclose(weight, torch.full_like(weight, 0.95))
    assert torch.equal(bias, torch.ones(4))


def test_muons_steps_are_torchs_on_the_kernel_as_a_matrix() -> None:
    """To the three digits of bfloat16, in which torch multiplies; AdamW's to the bit."""
    model = sf.create_model("spikformer_tiny_digits")
    optimiser = build_optimiser(model, 0.06, "muon")
    set_learning_rate(optimiser, 1e-2)
    kernel, bias = model.stem.stages[1].conv.weight, model.head.bias
    matrix = nn.Parameter(kernel.detach().clone().flatten(1))
    copy = nn.Parameter(bias.detach().clone())
    muon = torch.optim.Muon([matrix], lr=1e-2, weight_decay=0.06, adjust_lr_fn="match_rms_adamw")
    adamw = torch.optim.AdamW([copy], lr=1e-2, weight_decay=0.0)
    generator = torch.Generator().manual_seed(0)
    for _ in range(3):
        before, ours = matrix.detach().clone(), kernel.detach().flatten(1).clone()
        for parameter in model.parameters():
            parameter.grad = torch.randn(parameter.shape, generator=generator)
        assert kernel.grad is not None
        matrix.grad, copy.grad = kernel.grad.flatten(1).clone(), bias.grad.clone()
        optimiser.step()
        muon.step()
        adamw.step()
        step, theirs = kernel.flatten(1) - ours, matrix - before
        assert (step - theirs).norm() < 0.02 * theirs.norm()
        assert torch.equal(bias, copy)


@pytest.mark.parametrize("kind", KINDS)
def test_the_state_is_what_its_forms_say(kind) -> None:
    model = sf.create_model("spikformer_tiny_digits", attention="random")  # with parameters that do not learn
    optimiser = build_optimiser(model, 0.06, kind)
    model.train()(torch.rand(4, 1, 8, 8)).sum().backward()
    optimiser.step()
    for parameter in model.parameters():
        found = {key: (value.shape, value.dtype) for key, value in optimiser.state.get(parameter, {}).items()}
        assert found == (state_forms(optimiser, parameter) if parameter.requires_grad else {})


@pytest.mark.parametrize("kind", ["muon", *(pytest.param(kind, marks=pytest.mark.slow) for kind in KINDS[:-1])])
def test_it_learns_and_a_stopped_run_ends_as_one_that_was_not(kind, make_trainer, tmp_path: Path) -> None:
    settings = {"optimiser": kind, "epochs": 3, "clip_gradient": 5.0, "learning_rate": 0.1 if kind == "sgd" else 5e-3}
    settings |= {"augmentation": Augmentation(color_jitter=0.3, crop_scale=(0.5, 1.0), repeats=2)}
    path = tmp_path / "state.safetensors"

    def weights(trainer: Trainer) -> list[torch.Tensor]:
        return [tensor.clone() for tensor in trainer.model.state_dict().values()]

    whole = make_trainer(**settings)
    before = weights(whole)
    whole.start()
    list(whole.run())
    assert not any(torch.equal(old, new) for old, new in zip(before, weights(whole), strict=True) if old.ndim > 1)
    for stop_after in (1, 3):
        first = make_trainer(state_path=path, **settings)
        first.start()
        list(first.run(lambda trainer=first, count=stop_after: trainer.progress.iteration >= count))
        second = make_trainer(state_path=path, **settings)
        second.start(load_state(path))
        list(second.run())
        assert all(map(torch.equal, weights(second), weights(whole)))


def test_a_state_of_another_optimiser_does_not_fit(make_trainer, tmp_path: Path) -> None:
    path = tmp_path / "state.safetensors"
    first = make_trainer(state_path=path, epochs=1, optimiser="sgd")
    first.start()
    list(first.run())
    with file_error(path, "unfit"):
        make_trainer(epochs=1).start(load_state(path))


def test_a_staircase_falls_to_a_tenth_after_its_epochs() -> None:
    recipe = Recipe(epochs=192, warmup_epochs=0, learning_rate=1e-3, schedule="staircase", drop_epochs=64)
    expected = [1e-3, 1e-3, 1e-4, 1e-4, 1e-5, 1e-5]
    assert [learning_rate(recipe, epoch) for epoch in (0, 63.9, 64, 127.5, 128, 191.9)] == pytest.approx(expected)
    warm = replace(recipe, warmup_epochs=10, warmup_learning_rate=0.0, cooldown_epochs=5, final_learning_rate=3e-6)
    assert learning_rate(warm, 5) == pytest.approx(5e-4)
    assert learning_rate(warm, 193) == 3e-6
