"""The paper's own energy figures: which come out, which do not, and why."""

import pytest
from tests.mistakes import field_error

from spikformer.analysis.published import PublishedFigure, energy_at_rate, implied_mean_rates, published_figures
from spikformer.analysis.specimens import shrunk
from spikformer.presets import get_preset, list_models
from spikformer.successors import ROWS

# Why a figure of the paper is another when it is counted plainly.
_ROUNDED = "T N² D is 78.7 M, and the paper prints 77"
_MEAN_RATE = "attention fires less than the mean of all layers"
_SOFTMAX = "the paper adds something for the softmax that it does not explain"
_FIRST_CONV = "the paper takes the first convolution of D = 512 for every size"
_ATTENTION = "the paper counts 4 N² D for the attention of eight blocks, and no head"
_EVERY_STEP = "the paper counts SEW-ResNet's first convolution once, and its own at every step"
DISAGREE = {
    ("Fig. 1, VSA", "OPs", "T N² D"): ("79", _ROUNDED),
    ("Fig. 1, VSA", "P", "T N² D"): ("361.9", _ROUNDED),
    ("Fig. 1, SSA", "OPs", "fr T N² D at fr = 33.3%, the mean of all layers by Tab. 2"): ("26.2", _MEAN_RATE),
    ("Tab. 1, CIFAR10-DVS, A_softmax", "OPs", "T N² D; the softmax itself is not counted"): ("16.8", _SOFTMAX),
    ("Tab. 1, CIFAR10-DVS, A_softmax", "P", "T N² D; the softmax itself is not counted"): ("77", _SOFTMAX),
    ("Tab. 1, CIFAR10, A_softmax", "OPs", "T N² D; the softmax itself is not counted"): ("6.3", _SOFTMAX),
    ("Tab. 1, CIFAR10, A_softmax", "P", "T N² D; the softmax itself is not counted"): ("29", _SOFTMAX),
    ("Tab. 1, CIFAR100, A_softmax", "OPs", "T N² D; the softmax itself is not counted"): ("6.3", _SOFTMAX),
    ("Tab. 1, CIFAR100, A_softmax", "P", "T N² D; the softmax itself is not counted"): ("29", _SOFTMAX),
    ("Tab. 2, SEW-ResNet-34", "Power", "first convolution at every step"): ("5.663", _EVERY_STEP),
    ("Tab. 2, SEW-ResNet-50", "Power", "first convolution at every step"): ("6.518", _EVERY_STEP),
    ("Tab. 2, SEW-ResNet-101", "Power", "first convolution at every step"): ("10.541", _EVERY_STEP),
    ("Tab. 2, SEW-ResNet-152", "Power", "first convolution at every step"): ("14.519", _EVERY_STEP),
    ("Tab. 2, Spikformer-8-384", "Power", "its own first convolution, of 48 channels"): ("7.335", _FIRST_CONV),
    ("Tab. 2, Spikformer-8-768", "Power", "its own first convolution, of 96 channels"): ("22.274", _FIRST_CONV),
    ("Tab. 2, Transformer-8-512", "OPs", "every product"): ("8.57", _ATTENTION),
    ("Tab. 2, Transformer-8-512", "Power", "every product"): ("39.428", _ATTENTION),
}


@pytest.fixture(scope="module")
def figures() -> list[PublishedFigure]:
    return published_figures()


def test_all_but_these_agree_to_the_last_digit(figures: list[PublishedFigure]) -> None:
    found = {(each.where, each.what, each.counted): each.shown for each in figures if not each.agrees}
    assert found == {key: shown for key, (shown, _) in DISAGREE.items()}
    assert sum(each.agrees for each in figures) == 52
    assert len(figures) == 69


def test_every_printed_number_is_reached_by_some_count_but_for_the_softmax(figures: list[PublishedFigure]) -> None:
    reached = {(each.where, each.what) for each in figures if each.agrees}
    missed = {(each.where, each.what) for each in figures} - reached
    assert missed == {("Fig. 1, VSA", "OPs")} | {
        (f"Tab. 1, {data}, A_softmax", what) for data in ("CIFAR10-DVS", "CIFAR10", "CIFAR100") for what in ("OPs", "P")
    }


def test_spikingformers_power_is_of_its_own_first_convolution(figures: list[PublishedFigure]) -> None:
    found = {each.where: each for each in figures if each.where.startswith("README") and each.what == "Power"}
    assert {where: each.printed for where, each in found.items()} == {
        "README, Spikingformer-8-384": "4.69",
        "README, Spikingformer-8-512": "7.46",
        "README, Spikingformer-8-768": "13.68",
    }
    for each, giga, channels in zip(found.values(), (3.88, 6.52, 12.54), (48, 64, 96), strict=True):
        by_hand = 0.9 * giga + 4.6 * 4 * 27 * channels * 224**2 / 1e9
        assert each.computed == pytest.approx(by_hand, rel=1e-12)


def test_printed_is_what_the_paper_prints(figures: list[PublishedFigure]) -> None:
    def printed(where: str, what: str) -> set[str]:
        return {each.printed for each in figures if (each.where, each.what) == (where, what)}

    rows = {
        "8-384": ("6.82", "7.734"),
        "6-512": ("8.69", "9.417"),
        "8-512": ("11.09", "11.577"),
        "10-512": ("13.67", "13.899"),
        "8-768": ("22.09", "21.477"),
    }
    for name, (operations, power) in rows.items():
        assert printed(f"Tab. 2, Spikformer-{name}", "OPs") == {operations}
        assert printed(f"Tab. 2, Spikformer-{name}", "Power") == {power}
        assert float(power) == pytest.approx(0.9 * float(operations) + 1.596, abs=0.001), "the paper's own arithmetic"
    baseline = {"34": ("3.88", "4.035"), "50": ("4.83", "4.890"), "101": ("9.30", "8.913"), "152": ("13.72", "12.891")}
    for name, (operations, power) in baseline.items():
        assert printed(f"Tab. 2, SEW-ResNet-{name}", "OPs") == {operations}
        assert printed(f"Tab. 2, SEW-ResNet-{name}", "Power") == {power}
        first_conv = 112**2 * 7**2 * 3 * 64 / 1e9
        assert float(power) == pytest.approx(0.9 * float(operations) + 4.6 * first_conv, abs=0.001)
    assert printed("Tab. 2, Transformer-8-512", "Power") == {"38.340"}
    assert printed("Tab. 1, CIFAR10-DVS, A_SSA", "P") == {"0.594"}
    assert printed("Tab. 1, CIFAR100, A_SSA", "OPs") == {"1.3"}


def test_the_first_convolution_that_all_rows_share(figures: list[PublishedFigure]) -> None:
    """224×224 pixels, 3×3×3, 64 channels, 4 steps: 0.347 G as rounded, 1.596 mJ."""
    macs = 4 * 224**2 * 27 * 64
    assert round(macs, -6) == 347_000_000
    shared = [each for each in figures if each.what == "Power" and "as 0.347 G" in each.counted]
    assert len(shared) == 5
    for each in shared:
        giga = next(row.computed for row in figures if row.where == each.where and row.what == "OPs")
        assert each.computed == pytest.approx(0.9 * giga + 4.6 * 0.347, rel=1e-12)


def test_rates_that_the_paper_implies(figures: list[PublishedFigure]) -> None:
    rates = {each.where: each.counted for each in figures if "A_SSA" in each.where}
    assert rates == {
        "Tab. 1, CIFAR10-DVS, A_SSA": "fr T N² D at fr = 3.9%",
        "Tab. 1, CIFAR10, A_SSA": "fr T N² D at fr = 17.5%",
        "Tab. 1, CIFAR100, A_SSA": "fr T N² D at fr = 20.7%",
    }


def test_a_figure_is_rounded_as_it_is_printed() -> None:
    def figure(printed: str, computed: float) -> PublishedFigure:
        return PublishedFigure("", "", "", printed, computed, "")

    assert figure("7.734", 7.73449).agrees
    assert not figure("7.734", 7.7346).agrees
    assert figure("77", 77.28).shown == "77"
    assert not figure("77", 78.7).agrees


def test_one_rate_for_every_layer() -> None:
    config = shrunk("spikformer_tiny_digits", num_heads=4)
    report = energy_at_rate(config, 0.25)
    first, *others = report.layers
    assert first.kind == "conv"
    assert first.operations("paper").macs == 4 * first.macs
    assert first.operations("paper", "once").macs == first.macs
    for layer in others:
        operations = layer.operations("paper")
        if layer.kind == "attention":
            assert operations == (0, pytest.approx(0.25 * 4 * 12 * 12 * 64))
            met = 1 - (1 - 0.25**2) ** 16  # a row of Q and one of K, of 16 features
            pairs = 4 * 12 * 12 * 64 * (0.25**2 + 0.25 * met)
            assert layer.operations("strict") == (0, pytest.approx(pairs))
        else:
            assert operations == (0, pytest.approx(0.25 * 4 * layer.macs))
            assert layer.operations("strict") == layer.operations("entrywise") == operations


@pytest.mark.parametrize("num_heads", [4, 8])
def test_everything_fires_or_nothing(num_heads: int) -> None:
    config = shrunk("spikformer_tiny_digits", num_heads=num_heads)
    full, silent = energy_at_rate(config, 1.0), energy_at_rate(config, 0.0)
    assert full.operations("strict").acs == 4 * sum(layer.macs for layer in full.layers[1:])
    for convention in ("paper", "strict", "entrywise"):
        assert silent.operations(convention).acs == 0


def test_floats_in_attention_are_multiplied_whatever_the_rate() -> None:
    config = get_preset("spikformer_4_384_cifar10").config.override(depth=1, attention="identity")
    low, high = (energy_at_rate(config, rate).operations("paper").macs for rate in (0.1, 0.2))
    assert low == high == 4 * (32 * 32 * 27 * 48 + 64 * 64 * 384)


@pytest.mark.parametrize("rate", [-0.1, 1.01, float("nan")])
def test_an_impossible_rate_raises(rate: float) -> None:
    with field_error("rate", rate):
        energy_at_rate(shrunk("spikformer_tiny_digits"), rate)


def test_an_energy_without_operations_implies_a_rate() -> None:
    found = implied_mean_rates()
    assert [*found] == list_models("spike_driven_transformer_*_imagenet")
    for name, rates in found.items():
        for rate, first_conv in zip(rates, ("every_step", "once"), strict=True):
            report = energy_at_rate(get_preset(name).config, rate)
            assert 0.05 < rate < 0.25
            assert report.energy_mj("paper", first_conv) == pytest.approx(ROWS[name].energy_mj)
