"""What a layer costs by each convention, by hand."""

from dataclasses import replace
from itertools import product

import pytest

from spikformer.analysis.conventions import AttentionLayer, Operations, WeightedLayer

pytestmark = pytest.mark.core

# 1,000 MACs in each of 4 steps; of its inputs half are 0, 0.3 are 1 and 0.2 are 2.
SUMS = WeightedLayer(
    "sums", "linear", 1000, 4, mean_input=0.7, density=0.5, ones=0.3, binary=False, spiking=True, once=False
)
SPIKES = replace(SUMS, mean_input=0.25, density=0.25, ones=0.25, binary=True)
PIXELS = replace(SUMS, kind="conv", mean_input=-0.1, density=0.9, ones=0.01, spiking=False, once=True)
# Two products of 600 and 400 MACs in each of 2 steps, in which 50 and 30 pairs coincide in all.
SSA = AttentionLayer(
    "ssa", 1000, 2, mean_input=0.2, density=0.04, binary=True, published_macs=500,
    products=((600, 50.0, True), (400, 30.0, True)),
)  # fmt: skip


def test_sums_of_spikes() -> None:
    assert SUMS.operations("paper") == Operations(macs=0, acs=pytest.approx(0.7 * 4000)), "a 2 is two accumulates"
    assert SUMS.operations("strict") == Operations(macs=4000, acs=0), "a 2 anywhere makes all of it MACs"
    assert SUMS.operations("entrywise") == pytest.approx((0.2 * 4000, 0.3 * 4000)), "a 2 is one MAC"


def test_spikes_cost_the_same_by_all() -> None:
    for convention, first_conv in product(("paper", "strict", "entrywise"), ("every_step", "once")):
        assert SPIKES.operations(convention, first_conv) == Operations(macs=0, acs=1000)


def test_the_first_convolution_of_a_still_image() -> None:
    for first_conv, dense in (("every_step", 4000), ("once", 1000)):
        assert PIXELS.operations("paper", first_conv) == Operations(macs=dense)
        assert PIXELS.operations("strict", first_conv) == Operations(macs=dense)
        assert PIXELS.operations("entrywise", first_conv) == pytest.approx((0.89 * dense, 0.01 * dense))


def test_frames_that_differ_are_never_computed_once() -> None:
    frames = replace(PIXELS, once=False)
    for convention in ("paper", "strict", "entrywise"):
        assert frames.operations(convention, "once") == frames.operations(convention, "every_step")
    assert frames.operations("paper", "once") == Operations(macs=4000)


def test_binary_frames_are_pixels_to_the_paper_and_spikes_to_the_others() -> None:
    frames = replace(SPIKES, kind="conv", spiking=False)
    assert frames.operations("paper") == Operations(macs=4000)
    assert frames.operations("strict") == frames.operations("entrywise") == Operations(acs=1000)


def test_spiking_attention() -> None:
    assert SSA.operations("paper") == Operations(acs=pytest.approx(0.2 * 500 * 2)), "rate · T · N² D"
    assert SSA.operations("strict") == SSA.operations("entrywise") == Operations(acs=80)


def test_attention_where_one_product_has_no_spikes() -> None:
    """As float Q and K with a spiking V: their product is MACs, and the second adds."""
    floats = replace(SSA, binary=False, products=((600, 1100.0, False), (400, 30.0, True)))
    assert floats.operations("paper") == Operations(macs=1000), "T N² D"
    assert floats.operations("strict") == Operations(macs=1200, acs=30), "all of it, over both steps"
    assert floats.operations("entrywise") == Operations(macs=1100, acs=30), "what is not zero"


def test_attention_is_computed_at_every_step() -> None:
    for convention in ("paper", "strict", "entrywise"):
        assert SSA.operations(convention, "once") == SSA.operations(convention, "every_step")


def test_the_paper_is_the_default() -> None:
    for layer in (SUMS, PIXELS, SSA):
        assert layer.operations() == layer.operations("paper", "every_step")


def test_operations_add_up_by_kind() -> None:
    assert Operations(1, 2).plus(Operations(10, 20)) == Operations(macs=11, acs=22)
    assert Operations() == Operations(macs=0, acs=0)
