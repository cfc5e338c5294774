"""`spikformer figure`: each figure drawn from real runs, in every format, and the errors of each."""

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.mistakes import shows

import spikformer as sf
from spikformer.data import open_dataset
from spikformer.runs.writer import RunWriter

ROWS = [
    {"epoch": 1, "train_loss": 2.3, "train_accuracy": 0.2, "validation_accuracy": 0.3, "seconds": 1.0},
    {"epoch": 2, "train_loss": 1.1, "train_accuracy": 0.6, "validation_accuracy": 0.7, "seconds": 2.0},
]
TWIN = {"neuron": "relu", "attention": "softmax_float_value", "time_steps": 1}


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where figures are drawn unless another place is named."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., Path]:
    def make(*names: str) -> Path:
        folder = RunWriter(tmp_path.joinpath(*names))
        folder.open_new()
        folder.keep(sf.create_model("spikformer_tiny_digits"), ROWS, best=True)
        return folder.path

    return make


def assert_picture(path: Path) -> None:
    with Image.open(path) as picture:
        picture.load()
        assert picture.format == "PNG"
        assert len(np.unique(np.asarray(picture.convert("L")))) > 10, "something is drawn"


def drawn_here() -> list[str]:
    return sorted(os.listdir())


def test_surrogate(run_here) -> None:
    assert run_here("figure", "surrogate").stdout == "Drew surrogate.png\n"
    assert_picture(Path("surrogate.png"))
    reported = json.loads(run_here("figure", "surrogate", "--alpha", 2, "--output", "steep.svg", "--json").stdout)
    assert reported == {"figures": ["steep.svg"]}
    text = Path("steep.svg").read_text()
    assert "sigmoid" in text
    assert "arctan" in text
    assert drawn_here() == ["steep.svg", "surrogate.png"]


def test_curves_of_one_run_and_of_several(make_run: Callable[..., Path], run_here) -> None:
    one, other, namesake = make_run("first"), make_run("second"), make_run("more", "first")
    assert run_here("figure", "curves", one).stdout == "Drew curves.png\n"
    assert_picture(Path("curves.png"))
    run_here("figure", "curves", one, other, "--output", "two.svg")
    text = Path("two.svg").read_text()
    assert ">first<" in text
    assert ">second<" in text
    run_here("figure", "curves", one, namesake, "--output", "namesakes.svg")
    assert "more/first" in Path("namesakes.svg").read_text(), "told apart by their paths"


def test_products_of_several_networks(tmp_path: Path, write_weights: Callable[..., Path], run_here) -> None:
    ssa, again, identity = (
        write_weights(tmp_path / f"{name}.safetensors", attention=attention)
        for name, attention in (("ssa", "ssa"), ("again", "ssa"), ("identity", "identity"))
    )
    words = ("figure", "products", ssa, again, identity, "--max-samples", 4)
    assert run_here(*words).stdout == "Drew products.png\n"
    assert_picture(Path("products.png"))
    run_here(*words, "--output", "products.svg")
    text = Path("products.svg").read_text()
    assert "identity" in text
    assert "again" in text, "two of the same attention are told apart"


def test_raster_and_membranes(weights: Path, run_here) -> None:
    said = run_here("figure", "raster", weights, "--sample", 3)
    assert said.stdout == "Drew raster.png\nDrew raster_membranes.png\n"
    for name in drawn_here():
        assert_picture(Path(name))
    words = ("--layer", "stem.stages.1.neuron", "--traces", 5, 9, "--output", "r.svg", "--json")
    assert json.loads(run_here("figure", "raster", weights, *words).stdout) == {"figures": ["r.svg", "r_membranes.svg"]}
    raster, membranes = Path("r.svg").read_text(), Path("r_membranes.svg").read_text()
    digits = open_dataset("digits")
    assert ">stem.stages.1.neuron<" in raster
    assert f">test sample 0: {digits.class_names[digits.test.labels[0]]}, classified as" in raster
    assert "neuron 5" in membranes
    assert "neuron 9" in membranes
    assert "neuron 0" not in membranes


def test_titles_fit_into_a_raster(weights: Path, run_here) -> None:
    """The narrowest with the longest name: what is cut off would touch the edge of the picture."""
    run_here("figure", "raster", weights, "--layer", "blocks.1.attention.projection.neuron")
    with Image.open("raster.png") as picture:
        assert (np.asarray(picture)[:, -3:] == 255).all()


def test_raster_of_a_file(weights: Path, run_here) -> None:
    Image.new("L", (20, 20), 90).save("grey.png")
    run_here("figure", "raster", weights, "--file", "grey.png", "--output", "r.svg")
    text = Path("r.svg").read_text()
    assert ">blocks.1.attention.neuron<" in text
    assert ">grey.png: classified as" in text


def test_raster_of_other_neurons(tmp_path: Path, write_weights: Callable[..., Path], run_here) -> None:
    path = write_weights(tmp_path / "plif.safetensors", neuron="plif", v_reset=-0.5)
    run_here("figure", "raster", path)
    assert_picture(Path("raster_membranes.png"))


def test_events_above_their_spikes(event_weights: Path, run_here) -> None:
    run_here("figure", "events", event_weights, "--sample", 4, "--output", "e.svg")
    text = Path("e.svg").read_text()
    for word in ("test sample 4: ", "stem.stages.0", "stem.stages.1", "step 8"):
        assert word in text


def test_events_of_a_recording(event_weights: Path, run_here) -> None:
    events = np.zeros(200, [("t", "<i8"), ("x", "<i2"), ("y", "<i2"), ("p", "?")])
    events["t"], events["x"], events["y"] = np.arange(200), np.arange(200) % 16, np.arange(200) % 13
    np.save("moving.npy", events)
    assert run_here("figure", "events", event_weights, "--file", "moving.npy").stdout == "Drew events.png\n"
    assert_picture(Path("events.png"))
    run_here("figure", "events", event_weights, "--file", "moving.npy", "--output", "e.svg")
    assert "moving.npy: classified as" in Path("e.svg").read_text()


@pytest.mark.slow
def test_as_users_run_it(weights: Path, tmp_path: Path, run) -> None:
    result = run("figure", "raster", weights, "--output", tmp_path / "raster.pdf", "--json")
    assert json.loads(result.stdout)["figures"][1].endswith("raster_membranes.pdf")
    assert (tmp_path / "raster.pdf").read_bytes().startswith(b"%PDF")


def test_runs_without_metrics(tmp_path: Path, make_run: Callable[..., Path], error_message: Callable[..., str]) -> None:
    good, bad = make_run("good"), make_run("bad")
    (bad / "metrics.csv").write_text("epoch,train_loss\n1,much\n")
    assert shows(error_message("figure", "curves", good, bad), bad / "metrics.csv")
    (bad / "metrics.csv").unlink()
    assert shows(error_message("figure", "curves", good, bad), bad, "metrics.csv")
    assert shows(error_message("figure", "curves", tmp_path / "nowhere"), tmp_path / "nowhere", "metrics.csv")
    assert shows(error_message("figure", "curves"), "spikformer train")
    assert drawn_here() == []


def test_wrong_networks(
    weights: Path, tmp_path: Path, write_weights: Callable[..., Path], error_message: Callable[..., str]
) -> None:
    twin = write_weights(tmp_path / "twin.safetensors", **TWIN)
    none = write_weights(tmp_path / "none.safetensors", attention="none")
    assert shows(error_message("figure", "products"), "weights")
    for path in (twin, none):
        assert shows(error_message("figure", "products", weights, path), path)
    for words in ((), ("--layer", "stem.position.neuron")):
        assert shows(error_message("figure", "raster", twin, *words), twin)
    assert shows(error_message("figure", "events", weights), weights)
    assert drawn_here() == []


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (("raster", "--layer", "stem.stage.0.neuron"), ("'stem.stage.0.neuron'", "'stem.stages.0.neuron'")),
        (("raster", "--layer", "head"), ("'head'", "stem.stages.0.neuron")),
        (("raster", "--neurons", 0), ("--neurons", 1, 0)),
        (("raster", "--traces", 1024), ("blocks.1.attention.neuron", 1024)),
        (("raster", "--sample", 359), ("digits", "test", 359)),
        (("raster", "--file", "x.png"), ("x.png",)),
        (("raster", "--file", "x.png", "--data", "."), ("--file", "--data")),
        (("raster", "--output", "a.gif"), ("a.gif", ".png", ".svg", ".pdf")),
        (("products", "--max-samples", 0), ("--max-samples", 1, 0)),
        (("events", "--output", "nowhere/a.png"), ("nowhere", "a.png")),
    ],
    ids=lambda value: " ".join(map(str, value)),
)
def test_mistakes_leave_nothing(
    words: tuple[object, ...], shown: tuple[object, ...], weights: Path, error_message: Callable[..., str]
) -> None:
    kind, *options = words
    assert shows(error_message("figure", kind, weights, *options), *shown)
    assert drawn_here() == []
    assert list(weights.parent.iterdir()) == [weights]


def test_impossible_surrogates(error_message: Callable[..., str]) -> None:
    assert shows(error_message("figure", "surrogate", "--alpha", -1), "alpha", -1.0)
    assert shows(error_message("figure", "surrogate", "--arctan-alpha", 0), "alpha", 0.0)
    assert drawn_here() == []


def test_which_figure_has_to_be_said(run_here) -> None:
    for words in (("figure",), ("figure", "rasters")):
        boxed = run_here(*words, code=2).stderr.replace("│", " ")
        assert "surrogate, curves, products, raster, events" in " ".join(boxed.split()), "in any width"


def test_a_full_disk_gets_an_error_message(full_disk, error_message: Callable[..., str]) -> None:
    with full_disk():
        message = error_message("figure", "surrogate", code=1)
    assert shows(message, "surrogate.png", os.strerror(errno.EFBIG))
    assert drawn_here() == []


def test_a_failure_keeps_what_was_there(full_disk, error_message: Callable[..., str]) -> None:
    Path("surrogate.png").write_bytes(b"mine")
    with full_disk():
        error_message("figure", "surrogate", code=1)
    assert Path("surrogate.png").read_bytes() == b"mine"
    Path("surrogate.png").unlink()
    Path("surrogate.png").mkdir()
    assert shows(error_message("figure", "surrogate"), "surrogate.png")


def test_a_conventional_network_for_events(
    tmp_path: Path, write_weights: Callable[..., Path], error_message: Callable[..., str]
) -> None:
    model, data = "spikformer_tiny_digits_dvs", "digits_dvs"
    path = write_weights(tmp_path / "twin.safetensors", model, data, **TWIN | {"time_steps": 8})
    np.save("still.npy", np.zeros(9, [("t", "<i8"), ("x", "<i2"), ("y", "<i2"), ("p", "?")]))
    assert shows(error_message("figure", "events", path, "--file", "still.npy"), path)
