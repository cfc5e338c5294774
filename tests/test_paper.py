"""The paper's numbers: consistent with each other, and each network of the tables a preset."""

import pytest

from spikformer.paper import (
    ABLATED,
    ABLATIONS,
    ACCURACY_AFTER_400_EPOCHS,
    ACCURACY_AT_10_STEPS,
    ACCURACY_AT_288,
    ATTENTION_COSTS,
    FIGURE_1,
    NETWORKS,
    NETWORKS_BY_DATA_SET,
    SUCCESSORS,
    TRANSFER_ACCURACY,
    VariantKey,
)
from spikformer.presets import PRESETS, get_preset, list_models

pytestmark = pytest.mark.core


def test_every_network_is_a_preset_with_its_row() -> None:
    assert len(NETWORKS) == sum(map(len, NETWORKS_BY_DATA_SET.values())) == 16
    for name, row in NETWORKS.items():
        assert get_preset(name).paper is row
    assert {name for name in list_models() if get_preset(name).paper} == set(NETWORKS) | set(SUCCESSORS)
    assert set(ACCURACY_AFTER_400_EPOCHS) < set(NETWORKS) | set(SUCCESSORS)
    assert set(TRANSFER_ACCURACY) < set(list_models("*_imagenet"))


@pytest.mark.parametrize("data_set", ABLATED)
def test_ablations_hold_the_network_that_they_ablate(data_set: str) -> None:
    name = ABLATED[data_set]
    config = get_preset(name).config
    unchanged = VariantKey(config.attention, config.neuron, config.time_steps)
    assert ABLATIONS[data_set][unchanged] == NETWORKS[name].accuracy_percent
    assert name in NETWORKS_BY_DATA_SET[data_set]


def test_every_table_of_ablations_is_whole() -> None:
    """Cells of Tab. 1, 5 and 6, and the second time step of Tab. 4."""
    counts = {data_set: len(accuracies) for data_set, accuracies in ABLATIONS.items()}
    assert counts == {"cifar10": 14, "cifar100": 14, "imagenet": 9, "cifar10dvs": 6, "dvs128": 2}


@pytest.mark.parametrize("data_set", ATTENTION_COSTS)
def test_energy_follows_from_operations_as_far_as_they_are_printed(data_set: str) -> None:
    for attention, cost in ATTENTION_COSTS[data_set].items():
        picojoules = 0.9 if attention == "ssa" else 4.6
        assert float(cost.energy_uj) == pytest.approx(picojoules * float(cost.operations_millions), abs=0.51)
    assert float(FIGURE_1["softmax"].energy_uj) == pytest.approx(4.6 * float(FIGURE_1["softmax"].operations_millions))


@pytest.mark.parametrize("name", SUCCESSORS)
def test_every_row_of_a_successor_is_of_a_preset(name: str) -> None:
    assert get_preset(name).paper is SUCCESSORS[name]
    assert name not in NETWORKS


@pytest.mark.parametrize("further", [ACCURACY_AFTER_400_EPOCHS, ACCURACY_AT_10_STEPS, ACCURACY_AT_288])
def test_further_results_are_in_the_docstrings(further: dict[str, float]) -> None:
    assert set(further) - set(NETWORKS) <= set(SUCCESSORS)
    for name in set(further) - set(NETWORKS):
        percent = further[name]
        assert f"{percent} %" in (PRESETS[name].__doc__ or ""), name


@pytest.mark.parametrize("name", SUCCESSORS)
def test_docstrings_tell_the_time_steps(name: str) -> None:
    assert f"T = {get_preset(name).config.time_steps}" in (PRESETS[name].__doc__ or "")
