"""`spikformer firing`: rates and inputs as the API has them, three figures, and its errors."""

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from PIL import Image
from tests.mistakes import shows

import spikformer as sf
from spikformer.analysis.firing import FiringReport, measure_firing
from spikformer.data import open_dataset
from spikformer.runs.measure import batches

FEW = ("--max-samples", 6, "--batch-size", 4)


def as_measured(weights: Path) -> FiringReport:
    model = sf.load(weights)
    return measure_firing(model, batches(model, open_dataset("digits"), "test", 6, 4))


def test_figures_are_those_of_the_api(weights: Path, run_here) -> None:
    found, firing = json.loads(run_here("firing", weights, *FEW, "--json").stdout), as_measured(weights)
    assert (found["num_samples"], found["time_steps"]) == (6, 4)
    assert found["rates"] == {name: rates.tolist() for name, rates in firing.rates.items()}
    assert found["num_neurons"] == firing.num_neurons
    for name, seen in firing.inputs.items():
        reported = found["inputs"][name]
        assert reported["mean"] == seen.mean.tolist()
        assert reported["density"] == seen.density.tolist()
        assert reported["histogram"] == seen.histogram.tolist()
        assert reported["num_fractions"] == seen.num_fractions.tolist()
        assert reported["binary"] == seen.binary
    assert found["inputs"].keys() == firing.inputs.keys()
    query = firing.attentions["blocks.1.attention"].rates["Q"].tolist()
    assert found["attention"]["blocks.1.attention"]["Q"] == query


def test_three_pictures_beside_the_weights(weights: Path, run_here) -> None:
    said = run_here("firing", weights, *FEW)
    names = ["best_firing.png", "best_firing_attention.png", "best_firing_inputs.png"]
    assert sorted(path.name for path in weights.parent.glob("*.png")) == names
    for name in names:
        assert str(weights.parent / name) in said.stdout
        with Image.open(weights.parent / name) as picture:
            picture.load()
            assert picture.format == "PNG"
            assert min(picture.size) > 200
    line = next(line for line in said.stdout.splitlines() if line.startswith("blocks.0.mlp.hidden.neuron"))
    rates = as_measured(weights).rates["blocks.0.mlp.hidden.neuron"]
    assert line.split()[1:] == ["4,096", f"{rates.mean():.1%}", *(f"{rate:.1%}" for rate in rates)]
    assert shows(said.stdout, "6 samples", "digits", "test")


def test_pictures_where_and_as_they_are_wanted(weights: Path, tmp_path: Path, run_here) -> None:
    output = tmp_path / "mine.svg"
    found = json.loads(run_here("firing", weights, *FEW, "--output", output, "--json").stdout)
    assert set(found["figures"]) == {str(tmp_path / f"mine{part}.svg") for part in ("", "_inputs", "_attention")}
    for picture in found["figures"]:
        assert ElementTree.parse(picture).getroot().tag == "{http://www.w3.org/2000/svg}svg"
    assert "blocks.1.mlp.hidden" in (tmp_path / "mine_inputs.svg").read_text()
    assert list(weights.parent.iterdir()) == [weights]


def test_without_attention_there_are_two(tmp_path: Path, write_weights: Callable[..., Path], run_here) -> None:
    path = write_weights(tmp_path / "none.safetensors", attention="none")
    found = json.loads(run_here("firing", path, *FEW, "--json").stdout)
    assert found["attention"] == {}
    assert sorted(Path(picture).name for picture in found["figures"]) == ["none_firing.png", "none_firing_inputs.png"]


@pytest.mark.slow
def test_as_users_run_it(event_weights: Path, run) -> None:
    text = run("firing", event_weights, *FEW).stdout
    line = next(line for line in text.splitlines() if line.startswith("stem.stages.0.neuron"))
    assert line.count("%") == 1 + 8
    assert (event_weights.parent / "best_firing.png").is_file()


def test_mistakes_leave_nothing(
    weights: Path, tmp_path: Path, write_weights: Callable[..., Path], error_message: Callable[..., str]
) -> None:
    twin = {"neuron": "relu", "attention": "softmax_float_value", "time_steps": 1}
    conventional = write_weights(tmp_path / "twin.safetensors", **twin)
    before = sorted(tmp_path.rglob("*"))
    assert shows(error_message("firing", conventional, *FEW), conventional)
    assert shows(
        error_message("firing", weights, "--output", tmp_path / "a.txt"), tmp_path / "a.txt", ".png", ".svg", ".pdf"
    )
    nowhere = error_message("firing", weights, "--output", tmp_path / "nowhere" / "a.png")
    assert shows(nowhere, tmp_path / "nowhere", "a.png")
    assert shows(error_message("firing", weights, "--max-samples", 0), "--max-samples", 1, 0)
    assert shows(error_message("firing", weights, "--data", tmp_path), "digits", tmp_path)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_full_disk_gets_an_error_message(weights: Path, full_disk, error_message: Callable[..., str]) -> None:
    with full_disk():
        message = error_message("firing", weights, *FEW, code=1)
    assert shows(message, weights.parent / "best_firing.png", os.strerror(errno.EFBIG))
    assert list(weights.parent.iterdir()) == [weights]
