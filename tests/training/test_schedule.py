"""The learning rate: warm-up, cosine and cool-down, in closed form."""

from dataclasses import replace
from math import cos, pi

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spikformer.training import Recipe, get_recipe
from spikformer.training.schedule import learning_rate

pytestmark = pytest.mark.core

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
