"""Taps show what neurons did, and interventions change what the rest of the network sees."""

import numpy as np
import pytest
from tests.engine.drawn import NEURONS, assert_same_bits, draw_floats
from tests.mistakes import field_error, mistake, unknown_name

from spikformer.engine.engine import Engine
from spikformer.engine.ops import Add, Convolve, Fire, ReadOut
from spikformer.engine.program import Program


@pytest.fixture(scope="module")
def small() -> Engine:
    rng = np.random.default_rng(0)
    ops = (
        Convolve("conv", (0,), draw_floats(rng, 4, 3, 3, 1), draw_floats(rng, 4)),
        Fire("fire", (1,), NEURONS[0]),
        Convolve("second", (2,), draw_floats(rng, 4, 1, 1, 4), draw_floats(rng, 4)),
        Fire("last", (3,), NEURONS[0]),
        Add("sum", (4, 4)),
        ReadOut("head", (5,), np.ones((2, 4), np.float32), np.zeros(2, np.float32)),
    )
    return Engine(Program(ops, in_channels=1, time_steps=2, image_size=(4, 4)))


IMAGES = draw_floats(np.random.default_rng(1), 3, 1, 4, 4)


def test_taps_of_some_neurons(small: Engine) -> None:
    spikes, membranes = small.spikes(IMAGES, ["last"]), small.membranes(IMAGES, ["last"])
    assert list(spikes) == list(membranes) == ["last"]
    np.testing.assert_array_equal(spikes["last"], membranes["last"] >= 1)
    with unknown_name("op with neurons", "conv", "fire", "last"):
        small.membranes(IMAGES, ["conv"])


def test_silence_and_noise(small: Engine) -> None:
    before = small.spikes(IMAGES)["fire"]
    with small.intervene("fire", silence=[1, 2]):
        silenced = small.spikes(IMAGES)["fire"]
    with small.intervene("fire", noise=0.3, seed=1):
        noisy, again = small.spikes(IMAGES)["fire"], small.spikes(IMAGES[:2])["fire"]
    np.testing.assert_array_equal(silenced, before & np.array([True, False, False, True]))
    assert (noisy >= before).all()
    assert 0.1 < (noisy & ~before).mean() / (~before).mean() < 0.5
    np.testing.assert_array_equal(noisy[:, :2], again)  # whatever else is in the batch
    np.testing.assert_array_equal(small.spikes(IMAGES)["fire"], before)


def test_replaced_spikes_are_what_the_rest_of_the_network_sees(small: Engine) -> None:
    logits, before = small.forward_steps(IMAGES), small.spikes(IMAGES)
    other = np.random.default_rng(2).random(before["fire"].shape) < 0.5
    with small.intervene("fire", replace=other):
        after = small.spikes(IMAGES)
        np.testing.assert_array_equal(after["fire"], other)
        assert (after["last"] != before["last"]).any()
        with small.intervene("fire", replace=before["fire"]):  # the last one counts
            assert_same_bits(small.forward_steps(IMAGES), logits)
        with mistake(ValueError, "fire"):
            small(IMAGES[:2])
        with small.intervene("fire", silence=[0]):
            np.testing.assert_array_equal(small.spikes(IMAGES)["fire"], other & (np.arange(4) > 0))
    assert_same_bits(small.forward_steps(IMAGES), logits)


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("silence", {}),
        ("silence", {"silence": [4]}),
        ("noise", {"noise": 1.5}),
        ("replace", {"replace": np.zeros((2, 3, 16, 4))}),
        ("replace", {"replace": np.zeros((2, 3, 16, 5), bool)}),
        ("replace", {"replace": np.zeros((3, 16, 4), bool)}),
        ("replace", {"replace": np.zeros((2, 0, 16, 4), bool)}),
    ],
)
def test_interventions_that_cannot_be(small: Engine, field: str, wrong: dict) -> None:
    with field_error(field), small.intervene("fire", **wrong):
        pass


def test_interventions_name_neurons(small: Engine) -> None:
    with unknown_name("op with neurons", "conv", "fire", "last"), small.intervene("conv", noise=0.1):
        pass
