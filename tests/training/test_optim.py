"""AdamW's groups, the learning rate in closed form, and the moving average against its formula."""

from dataclasses import replace
from math import cos, pi

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

import spikformer as sf
from spikformer.neurons import PLIF
from spikformer.training import Recipe, get_recipe
from spikformer.training.optim import WeightAverage, build_optimiser, learning_rate, set_learning_rate

pytestmark = pytest.mark.core


def groups(model: nn.Module, weight_decay: float = 0.06) -> tuple[set[str], set[str]]:
    """Names of parameters that decay, and of those that do not."""
    names = {parameter: name for name, parameter in model.named_parameters()}
    decaying: set[str] = set()
    others: set[str] = set()
    for group in build_optimiser(model, weight_decay).param_groups:
        assert group["weight_decay"] in (weight_decay, 0.0)
        (decaying if group["weight_decay"] else others).update(names[parameter] for parameter in group["params"])
    return decaying, others


@pytest.mark.parametrize("name", ["spikformer_tiny_digits", "spikformer_tiny_digits_dvs"])
@pytest.mark.parametrize("overrides", [{}, {"neuron": "plif"}, {"learnable_scale": True}, {"neuron": "relu"}], ids=str)
def test_weights_of_products_decay_and_nothing_else(name: str, overrides: dict) -> None:
    model = sf.create_model(name, **overrides)
    products = {
        f"{path}.weight"
        for path, module in model.named_modules()
        if isinstance(module, nn.Linear | nn.Conv2d | nn.Conv1d)
    }
    decaying, others = groups(model)
    assert decaying == products
    assert others == {path for path, _ in model.named_parameters()} - products


def test_biases_norms_scales_and_neurons_are_among_the_others() -> None:
    model = sf.create_model("spikformer_tiny_digits", neuron="plif", learnable_scale=True)
    _, others = groups(model)
    assert {"head.bias", "stem.stages.0.norm.weight", "stem.stages.0.norm.bias"} <= others
    assert "blocks.0.attention.mixing.scale" in others
    neurons = {f"{path}.gain_logit" for path, module in model.named_modules() if isinstance(module, PLIF)}
    assert neurons
    assert neurons <= others


def test_frozen_queries_and_keys_are_left_out() -> None:
    model = sf.create_model("spikformer_tiny_digits", attention="random")
    decaying, others = groups(model)
    frozen = {name for name, parameter in model.named_parameters() if not parameter.requires_grad}
    assert any("query.linear.weight" in name for name in frozen)
    assert any("key.norm.bias" in name for name in frozen)
    assert not frozen & (decaying | others)
    assert frozen | decaying | others == {name for name, _ in model.named_parameters()}


def test_a_step_without_gradient_shrinks_only_what_decays() -> None:
    model = sf.create_model("spikformer_tiny_digits")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(1.0)
            parameter.grad = torch.zeros_like(parameter)
    optimiser = build_optimiser(model, weight_decay=0.5)
    set_learning_rate(optimiser, 0.1)
    optimiser.step()
    assert torch.all(model.head.weight == 1 - 0.1 * 0.5)
    assert torch.all(model.head.bias == 1)
    assert torch.all(model.stem.stages[0].norm.weight == 1)


def test_the_rate_is_set_everywhere() -> None:
    optimiser = build_optimiser(sf.create_model("spikformer_tiny_digits"), 0.1)
    set_learning_rate(optimiser, 0.025)
    assert [group["lr"] for group in optimiser.param_groups] == [0.025, 0.025]


PLAIN = Recipe(epochs=100, cooldown_epochs=10, warmup_epochs=10, learning_rate=1.0, final_learning_rate=0.1)


def test_the_published_cifar_schedule_at_a_few_moments() -> None:
    recipe = get_recipe("spikformer_4_384_cifar10")
    assert learning_rate(recipe, 0) == 1e-5
    assert learning_rate(recipe, 10) == pytest.approx((1e-5 + 5e-4) / 2)
    assert learning_rate(recipe, 20) == pytest.approx(1e-5 + 4.9e-4 * (1 + cos(pi * 20 / 300)) / 2)
    assert learning_rate(recipe, 150) == pytest.approx((1e-5 + 5e-4) / 2)
    assert learning_rate(recipe, 299.999) == pytest.approx(1e-5, rel=1e-5)
    assert [learning_rate(recipe, epoch) for epoch in (300, 305.5, 310)] == [1e-5] * 3


def test_without_warm_up_it_begins_at_the_peak() -> None:
    recipe = replace(PLAIN, warmup_epochs=0)
    assert learning_rate(recipe, 0) == 1.0
    assert learning_rate(recipe, 50) == pytest.approx(0.55)


def test_a_warm_up_longer_than_the_run_only_rises_until_the_cool_down() -> None:
    recipe = replace(PLAIN, warmup_epochs=200, warmup_learning_rate=0.0)
    assert learning_rate(recipe, 50) == pytest.approx(0.25)
    assert learning_rate(recipe, 99.9) == pytest.approx(0.4995)
    assert learning_rate(recipe, 100) == learning_rate(recipe, 109) == 0.1


rates = st.floats(0, 1, allow_subnormal=False)


@st.composite
def schedules(draw: st.DrawFn) -> Recipe:
    return Recipe(
        epochs=draw(st.integers(1, 400)),
        cooldown_epochs=draw(st.integers(0, 20)),
        warmup_epochs=draw(st.floats(0, 500)),
        learning_rate=draw(st.floats(1e-6, 1)),
        final_learning_rate=draw(rates),
        warmup_learning_rate=draw(rates),
    )


@given(recipe=schedules(), moment=st.floats(0, 1))
def test_it_stays_between_its_three_rates(recipe: Recipe, moment: float) -> None:
    bounds = (recipe.learning_rate, recipe.final_learning_rate, recipe.warmup_learning_rate)
    rate = learning_rate(recipe, moment * recipe.total_epochs)
    assert min(bounds) * (1 - 1e-9) <= rate <= max(bounds) * (1 + 1e-9)


@given(recipe=schedules(), moments=st.tuples(st.floats(0, 1), st.floats(0, 1)))
def test_it_rises_in_the_warm_up_and_falls_after_it(recipe: Recipe, moments: tuple[float, float]) -> None:
    peak = recipe.learning_rate
    recipe = replace(
        recipe,
        final_learning_rate=min(peak, recipe.final_learning_rate),
        warmup_learning_rate=min(peak, recipe.warmup_learning_rate),
    )
    end = min(recipe.warmup_epochs, recipe.epochs)
    for begin, length, sign in ((0.0, end, 1), (end, recipe.total_epochs - end, -1)):
        earlier, later = sorted(begin + moment * length * (1 - 1e-9) for moment in moments)
        if sign == 1 and later >= end:
            continue
        assert sign * (learning_rate(recipe, later) - learning_rate(recipe, earlier)) >= -1e-12


@given(recipe=schedules(), moment=st.floats(0, 1, exclude_max=True))
def test_it_does_not_look_at_the_batch(recipe: Recipe, moment: float) -> None:
    epoch = moment * recipe.total_epochs
    assert learning_rate(replace(recipe, batch_size=4096), epoch) == learning_rate(recipe, epoch)


def test_it_is_the_formula_with_a_quick_beginning() -> None:
    model = sf.create_model("spikformer_tiny_digits").double()
    average = WeightAverage(model, decay=0.5)
    expected = model.head.weight.detach().clone()
    for step in range(12):
        with torch.no_grad():
            model.head.weight.copy_(torch.randn_like(model.head.weight))
        average.update(model, step)
        decay = min(0.5, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * model.head.weight.detach()
        assert torch.allclose(average.model.head.weight, expected, atol=1e-12)


def test_statistics_of_norms_are_averaged_and_batches_counted() -> None:
    model = sf.create_model("spikformer_tiny_digits").double()
    average = WeightAverage(model, decay=0.9)
    expected = model.stem.stages[0].norm.running_var.clone()
    for step in range(3):
        model.train()(torch.randn(4, 1, 8, 8, dtype=torch.float64))
        average.update(model, step)
        decay = (1 + step) / (10 + step)
        expected = decay * expected + (1 - decay) * model.stem.stages[0].norm.running_var
    norm = average.model.stem.stages[0].norm
    assert torch.allclose(norm.running_var, expected, atol=1e-12)
    assert norm.num_batches_tracked == 3


def test_it_learns_nothing_itself_and_shares_nothing() -> None:
    model = sf.create_model("spikformer_tiny_digits", attention="random")
    model.card = replace(model.card, data_set="digits")
    average = WeightAverage(model, decay=0.9).model
    assert not any(parameter.requires_grad for parameter in average.parameters())
    assert model.head.weight.requires_grad
    assert average.card == model.card
    before = average.head.weight.clone()
    with torch.no_grad():
        model.head.weight.add_(1)
    assert torch.equal(average.head.weight, before)


def test_weights_that_stand_still_are_their_own_average() -> None:
    model = sf.create_model("spikformer_tiny_digits", neuron="plif")
    average = WeightAverage(model, decay=0.999)
    for step in range(20):
        average.update(model, step)
    for name, tensor in model.state_dict().items():
        assert torch.equal(average.model.state_dict()[name], tensor), name
