"""The paper's numbers: consistent with each other, and each network of the tables a preset."""

import pytest

from spikformer.paper import (
    ABLATED,
    ABLATIONS,
    ACCURACY_AFTER_400_EPOCHS,
    ATTENTION_COSTS,
    FIGURE_1,
    NETWORKS,
    NETWORKS_BY_DATA_SET,
    TRANSFER_ACCURACY,
    VariantKey,
)
from spikformer.presets import get_preset, list_models
from spikformer.successors import ROWS

pytestmark = pytest.mark.core


def test_every_network_is_a_preset_with_its_row() -> None:
    assert len(NETWORKS) == sum(map(len, NETWORKS_BY_DATA_SET.values())) == 16
    for name, row in NETWORKS.items():
        assert get_preset(name).paper is row
    assert {name for name in list_models() if get_preset(name).paper} == set(NETWORKS) | set(ROWS)
    assert set(ACCURACY_AFTER_400_EPOCHS) < set(NETWORKS)
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
