"""Published numbers of the successors: each row is a preset's, and the presets' docstrings repeat them."""

import re

import pytest

from spikformer.paper import NETWORKS
from spikformer.presets import PRESETS, get_preset, list_models
from spikformer.successors import (
    ACCURACY_AFTER_400_EPOCHS,
    ACCURACY_AT_1_STEP,
    ACCURACY_AT_10_STEPS,
    ACCURACY_AT_288,
    ACCURACY_AT_384,
    ACCURACY_IN_LOGS,
    COUNTED_PARAMETERS,
    ROWS,
    CountedParameters,
)

pytestmark = pytest.mark.core


@pytest.mark.parametrize("name", ROWS)
def test_every_row_is_of_a_preset(name: str) -> None:
    assert get_preset(name).paper is ROWS[name]
    assert name not in NETWORKS


@pytest.mark.parametrize(
    "further",
    [
        ACCURACY_AFTER_400_EPOCHS,
        ACCURACY_AT_1_STEP,
        ACCURACY_AT_10_STEPS,
        ACCURACY_AT_288,
        ACCURACY_AT_384,
        ACCURACY_IN_LOGS,
    ],
)
def test_further_results_are_in_the_docstrings(further: dict[str, float]) -> None:
    assert set(further) <= set(ROWS)
    for name, percent in further.items():
        assert f"{percent} %" in (PRESETS[name].__doc__ or ""), name


@pytest.mark.parametrize("name", ROWS)
def test_docstrings_tell_the_time_steps(name: str) -> None:
    assert f"T = {get_preset(name).config.time_steps}" in (PRESETS[name].__doc__ or "")


@pytest.mark.parametrize("name", [*ROWS, *list_models("ms_qkformer_*")])
def test_docstrings_state_the_parameters(name: str) -> None:
    """As printed, otherwise as counted, including those that are never used."""
    stated = re.search(r": ([\d.]+) M parameters( counted)?", PRESETS[name].__doc__ or "")
    assert stated
    if stated[2]:
        counted = COUNTED_PARAMETERS.get(name, CountedParameters(get_preset(name).config.num_parameters))
        assert float(stated[1]) == round(counted.total / 1e6, 2)
    else:
        assert float(stated[1]) == ROWS[name].parameters_millions
