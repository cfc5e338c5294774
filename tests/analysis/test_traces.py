"""Single neurons for figures: spread over their layer, of different activity."""

import numpy as np
import pytest
import torch
from tests.mistakes import field_error

from spikformer.analysis.recorder import Record, record
from spikformer.analysis.specimens import frames_for, shrunk, specimen
from spikformer.analysis.traces import chosen_layer, evenly, stem_maps, trace_layer
from spikformer.models import Spikformer
from spikformer.presets import get_preset

LAYER = "blocks.1.attention.neuron"


@pytest.fixture(scope="module")
def model() -> Spikformer:
    return specimen(shrunk("spikformer_tiny_digits", attention_scale=0.5), torch.float32)


@pytest.fixture(scope="module")
def seen(model: Spikformer) -> Record:
    with torch.no_grad(), record(model) as seen:
        model(frames_for(model.config, 1, torch.float32))
    return seen


def test_numbers_are_spread_evenly_from_first_to_last() -> None:
    assert evenly(10, 4) == [0, 3, 6, 9]
    assert evenly(3, 10) == [0, 1, 2]
    assert evenly(1, 4) == [0]
    assert evenly(7, 1) == [0]


def test_a_raster_is_of_neurons_all_over_the_layer(model: Spikformer, seen: Record) -> None:
    found = trace_layer(model, seen, LAYER, 5)
    spikes = seen.spikes[LAYER].flatten(1)
    assert found.num_neurons == spikes.shape[1] == 12 * 64
    assert np.array_equal(found.raster, spikes[:, [0, 192, 384, 575, 767]])
    assert (found.v_threshold, found.v_reset) == (0.5, 0.0)
    assert trace_layer(model, seen, "stem.position.neuron", 5).v_threshold == 1.0
    assert trace_layer(model, seen, LAYER, 10**6).raster.shape == (4, 768)


def test_traces_are_of_different_activity_from_most_to_least(model: Spikformer, seen: Record) -> None:
    found = trace_layer(model, seen, LAYER, 5)
    counts = found.spikes.sum(0)
    assert list(counts) == sorted(set(counts), reverse=True)
    totals = seen.spikes[LAYER].flatten(1).sum(0)
    assert (counts[0], counts[-1]) == (totals.max(), totals.min())
    assert len(found.names) <= 4
    places = [int(name.removeprefix("neuron ")) for name in found.names]
    assert np.array_equal(found.spikes, seen.spikes[LAYER].flatten(1)[:, places])
    assert np.array_equal(found.membranes, seen.membrane(LAYER).flatten(1)[:, places])
    assert np.array_equal(found.membranes >= 0.5, found.spikes == 1)
    distance = (seen.membrane(LAYER).flatten(1).amax(0) - 0.5).abs()
    for place, count in zip(places, counts, strict=True):
        assert distance[place] == distance[totals == count].min(), "of equals, the one that came nearest"


def test_traces_may_be_chosen(model: Spikformer, seen: Record) -> None:
    found = trace_layer(model, seen, LAYER, 5, traces=(700, 3))
    assert found.names == ["neuron 700", "neuron 3"]
    assert np.array_equal(found.spikes, seen.spikes[LAYER].flatten(1)[:, [700, 3]])
    for place in (-1, 768):
        with field_error("traces", LAYER, 768, place):
            trace_layer(model, seen, LAYER, 5, traces=(0, place))


def test_the_layer_after_attention_is_shown_unless_there_is_none(model: Spikformer, seen: Record) -> None:
    assert chosen_layer(seen) == LAYER
    plain = specimen(shrunk("spikformer_tiny_digits", attention="none"))
    with torch.no_grad(), record(plain) as seen_plain:
        plain(frames_for(plain.config, 1))
    assert chosen_layer(seen_plain) == "blocks.1.mlp.output.neuron"
    with field_error("neuron"):
        chosen_layer(Record())


def test_maps_of_the_stem_are_sums_over_channels() -> None:
    model = specimen(get_preset("spikformer_tiny_digits_dvs").config, torch.float32)
    with torch.no_grad(), record(model) as seen:
        model(frames_for(model.config, 1, torch.float32))
    maps = stem_maps(seen)
    assert {name: counts.shape for name, counts in maps.items()} == {
        "stem.stages.0.neuron": (8, 16, 16),
        "stem.stages.1.neuron": (8, 8, 8),
    }
    for name, counts in maps.items():
        assert np.array_equal(counts, seen.spikes[name].sum(2)[:, 0])
        assert counts.sum() > 0
