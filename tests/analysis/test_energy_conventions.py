"""What a layer costs by each convention, by hand."""

from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from spikformer.analysis.energy import Layer, Operations, Product

pytestmark = pytest.mark.core


def with_input(layer: Layer, density: float, ones: float, *, binary: bool, **fields: Any) -> Layer:
    """The same layer of one product, reading something else."""
    product = Product(1000, density, ones, binary)
    return replace(layer, products=(product,), binary=binary, **fields)


# 1,000 MACs in each of 4 steps; of its inputs half are 0, 0.3 are 1 and 0.2 are 2.
SUMS = Layer(
    "sums", "linear", 4, (Product(1000, 0.5, 0.3, False),), mean_input=0.7, binary=False, spiking=True, paper_macs=1000
)
SPIKES = with_input(SUMS, 0.25, 0.25, binary=True, mean_input=0.25)
PIXELS = with_input(SUMS, 0.9, 0.01, binary=False, kind="conv", mean_input=-0.1, spiking=False, once=True)
# Two products of 600 and 400 MACs in each of 2 steps, in which 60 and 30 pairs coincide in all.
SSA = Layer(
    "ssa",
    "attention",
    2,
    (Product(600, 0.05, 0.05, True), Product(400, 0.0375, 0.0375, True)),
    mean_input=0.2,
    binary=True,
    spiking=True,
    paper_macs=500,
    order="query_key_first",
)


def test_sums_of_spikes() -> None:
    assert SUMS.operations("paper") == Operations(macs=0, acs=pytest.approx(0.7 * 4000)), "a 2 is two accumulates"
    assert SUMS.operations("strict") == Operations(macs=4000, acs=0), "a 2 anywhere makes all of it MACs"
    assert SUMS.operations("entrywise") == pytest.approx((0.2 * 4000, 0.3 * 4000)), "a 2 is one MAC"


def test_spikes_cost_the_same_by_all() -> None:
    for convention, first_conv in product(("paper", "strict", "entrywise"), ("every_step", "once")):
        assert SPIKES.operations(convention, first_conv) == Operations(macs=0, acs=1000)


def test_the_first_convolution_of_a_static_image() -> None:
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
    assert SSA.operations("strict") == SSA.operations("entrywise") == Operations(acs=pytest.approx(90))


def test_attention_where_one_product_has_no_spikes() -> None:
    """As float Q and K with a spiking V: their product is MACs, and the second adds."""
    products = (Product(600, 0.9, 0.0, False), Product(400, 0.0375, 0.0375, True))
    floats = replace(SSA, binary=False, spiking=False, products=products)
    assert floats.operations("paper") == Operations(macs=1000), "T N² D"
    assert floats.operations("strict") == pytest.approx((1200, 30)), "all of it, over both steps"
    assert floats.operations("entrywise") == pytest.approx((1080, 30)), "what is not zero"


def test_macs_and_density_are_of_all_products() -> None:
    assert (SUMS.macs, SUMS.density) == (1000, 0.5)
    assert (SSA.macs, SSA.density) == (1000, pytest.approx(90 / 2000))


def test_attention_is_computed_at_every_step() -> None:
    for convention in ("paper", "strict", "entrywise"):
        assert SSA.operations(convention, "once") == SSA.operations(convention, "every_step")


def test_the_paper_is_the_default() -> None:
    for layer in (SUMS, PIXELS, SSA):
        assert layer.operations() == layer.operations("paper", "every_step")


def test_operations_add_up_by_kind() -> None:
    assert Operations(1, 2).plus(Operations(10, 20)) == Operations(macs=11, acs=22)
    assert Operations() == Operations(macs=0, acs=0)
