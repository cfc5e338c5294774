"""Which figures a run has."""

from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from spikformer.visualise.attention import BlockMaps
from spikformer.visualise.report.drawing import (
    draw_attention,
    draw_attention_rates,
    draw_curves_of,
    draw_events,
    draw_rates,
    draw_run,
    layer_title,
)


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("stem.stages.0.conv", "stem, stage 1"),
        ("stem.stages.11.neuron", "stem, stage 12"),
        ("stem.position.conv", "stem, position"),
        ("stem.neuron", "stem"),
        ("downsampling.0.neuron", "down-sampling 1"),
        ("downsampling.1.branch.0.conv", "down-sampling 2, branch 1"),
        ("stem.branch.1.neuron", "stem, branch 2"),
        ("stem.shortcut.conv", "stem, shortcut"),
        ("blocks.0.conv.neuron", "block 1, conv"),
        ("blocks.0.conv.conv", "block 1, conv"),
        ("blocks.2.attention.input_neuron", "block 3, input"),
        ("layers.1.layers.0.conv", "layer 2, layer 1"),
        ("head_neuron", "head"),
        ("blocks.0.attention.query.linear", "block 1, query"),
        ("blocks.9.attention.neuron", "block 10, attention"),
        ("blocks.1.attention.mixing", "block 2, mixing"),
        ("blocks.1.mlp.hidden.neuron", "block 2, hidden"),
        ("stages.0.1.layers.0.conv", "stage 1, block 2, layer 1"),
        ("stages.2.0.shortcut.neuron", "stage 3, block 1, shortcut"),
        ("layers.3.layers.1.neuron", "layer 4, layer 2"),
        ("output_neuron", "output"),
        ("neuron", "neuron"),
        ("0.neuron", "block 1"),
        ("head", "head"),
    ],
)
def test_layers_have_names_for_people(name: str, title: str) -> None:
    assert layer_title(name) == title


def texts(svg: str) -> list[str]:
    return [element.text for element in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


def test_a_spiking_run_has_every_figure_but_events(make_run) -> None:
    drawn = draw_run(make_run())
    for name in ("curves", "confusion", "rates", "attention_rates", "inputs", "raster", "membranes"):
        drawing = getattr(drawn, name)
        assert drawing.svg.startswith("<svg"), name
        assert 300 < drawing.width < 1300, name
    assert drawn.events is None
    assert "block 2, attention" in texts(drawn.rates.svg)
    assert len(drawn.attention) == 2


def test_a_run_on_events_shows_them_beside_spikes(make_run) -> None:
    drawing = draw_events(make_run(events=True))
    assert {"events", "stem, stage 1", "step 4"} <= set(texts(drawing.svg))


def test_what_does_not_spike_has_no_rates(make_run) -> None:
    ann = make_run(model={"neuron": "relu", "time_steps": 1, "attention": "softmax_float_value"}).firing
    assert draw_rates(ann) is draw_attention_rates(ann) is None
    floats = make_run(model={"attention": "identity"}).firing  # its Q and K are no spikes, its other layers are
    assert draw_rates(floats) is not None
    drawn = set(texts(draw_attention_rates(floats).svg))
    assert ("Q" in drawn, "K" in drawn, "V" in drawn) == (False, False, True)


def test_deep_and_long_networks_are_shown_from_first_to_last(make_run) -> None:
    maps = [BlockMaps(block, "attention", np.random.rand(16, 4, 4)) for block in range(1, 11)]
    sample = replace(make_run().samples[0], attention=maps)
    written = texts(draw_attention(sample).svg)
    assert [text for text in written if text.startswith("block")] == ["block 1", "block 4", "block 7", "block 10"]
    steps = [text for text in written if text.startswith("step")]
    assert (len(steps), steps[0], steps[-1]) == (8, "step 1", "step 16")


def test_a_sample_without_attention_has_no_map(make_run) -> None:
    assert draw_attention(replace(make_run().samples[0], attention=[])) is None


def test_masks_and_stages_of_other_grids_have_rows_of_their_own(make_run) -> None:
    maps = [
        BlockMaps(2, "mask", np.ones((4, 8, 8))),
        BlockMaps(5, "masked Q", np.ones((4, 4, 4))),
        BlockMaps(7, "attention", np.zeros((4, 2, 2))),
    ]
    written = texts(draw_attention(replace(make_run().samples[0], attention=maps)).svg)
    rows = [text for text in written if text.startswith("block")]
    assert rows == ["block 2, mask", "block 5, masked Q", "block 7"]
    assert written.count("silent") == 4


def test_common_curves_name_every_run_and_escape_it(make_run) -> None:
    svg = draw_curves_of([make_run(), make_run(name="<b>second</b>")]).svg
    assert {"first", "<b>second</b>"} <= set(texts(svg))
    assert "<b>" not in svg
