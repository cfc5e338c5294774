"""`spikformer report` as users run it: one run, several, one in training; and its errors."""

import csv
import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.browser import open_browser
from tests.mistakes import shows

import spikformer as sf
from spikformer.cli import main
from spikformer.data import open_dataset
from spikformer.runs.report import _paper_row
from spikformer.training import evaluate, get_recipe

QUICK = ("--max-samples", "16", "--samples", "2", "--accelerator", "cpu")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "digits"
    assert main(["train", "--epochs", "2", "--output", str(folder), "--accelerator", "cpu"]) == 0
    return folder


@pytest.fixture
def copy(trained: Path, tmp_path: Path) -> Callable[..., Path]:
    """The run in a folder of its own, to be damaged."""

    def copy(name: str = "run") -> Path:
        return Path(shutil.copytree(trained, tmp_path / name, ignore=shutil.ignore_patterns("report.html")))

    return copy


def edit(path: Path, change: Callable[[dict], None]) -> None:
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def error_of(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 2) -> str:
    """The one line that answers wrong use."""
    assert main(["report", *map(str, arguments)]) == code
    said = capsys.readouterr()
    assert said.out == ""
    (line,) = said.err.splitlines()
    assert line.startswith("spikformer report: ")
    return line


@pytest.mark.parametrize("name", ["recipe.json", "metrics.csv", "last.safetensors", "best.safetensors"])
def test_a_pipe_in_place_of_a_file_is_not_waited_for(copy, capsys, name: str) -> None:
    run = copy()
    (run / name).unlink()
    os.mkfifo(run / name)
    assert name in error_of(capsys, run, *QUICK)


def test_a_run_becomes_a_page(trained: Path, capsys) -> None:
    assert main(["report", str(trained), *QUICK, "--json"]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    result = json.loads(said.out)
    page = trained / "report.html"
    assert result["report"] == str(page)
    (measured,) = result["runs"]
    for kind in ("last", "best"):
        accuracy = evaluate(sf.load(trained / f"{kind}.safetensors"), open_dataset("digits"), "test").top1
        assert measured["accuracy"][kind] == pytest.approx(accuracy)
        assert f"{accuracy:.2%}" in page.read_text()
    assert (measured["run"], measured["epochs"], measured["finished"]) == ("digits", 2, True)
    assert measured["energy"]["num_samples"] == 16
    assert page.stat().st_size < 1_000_000
    with open_browser() as browser:
        browser.open(page, width=380)
        assert browser.complaints == browser.requests == []
        assert browser.run("return document.documentElement.scrollWidth") <= 380
        assert browser.run("return document.querySelectorAll('figure.pictures').length") == 2


@pytest.mark.parametrize(
    ("recipe", "overrides", "data_set", "percent"),
    [
        ("spikformer_4_384_cifar10", {}, "cifar10", 95.19),
        ("spikformer_4_384_cifar10", {"depth": 2}, "cifar10", None),
        ("spikformer_4_384_cifar10", {"time_steps": 2}, "cifar10", None),
        ("spikformer_4_384_cifar10", {}, "image_folder", None),
        ("spikformer_8_384_cifar10_transfer", {}, "cifar10", None),
        ("spikformer_tiny_digits", {}, "digits", None),
    ],
)
def test_the_paper_is_quoted_for_its_own_model_and_data_only(recipe, overrides, data_set, percent) -> None:
    row = _paper_row(recipe, get_recipe(recipe).model.override(**overrides), data_set)
    assert (row and row.accuracy_percent) == percent


def test_a_run_in_training_is_reported_and_says_so(copy, capsys) -> None:
    folder = copy()
    edit(folder / "recipe.json", lambda run: run["settings"].update(epochs=50))
    (folder / "environment.json").unlink()
    header, *lines = (folder / "metrics.csv").read_text().splitlines()
    rows = csv.DictReader([header, *lines])
    levelled = [line.replace(row["validation_accuracy"], "0.5") for line, row in zip(lines, rows, strict=True)]
    (folder / "metrics.csv").write_text("\n".join([header, *levelled]))
    assert main(["report", str(folder), *QUICK, "--split", "validation", "--samples", "0"]) == 0
    said = capsys.readouterr().out
    assert shows(said, "2 of 50")
    assert f"report: {folder / 'report.html'}" in said.splitlines()
    page = (folder / "report.html").read_text()
    assert shows(page, "2 of 50")
    assert shows(page, "143 validation")
    assert "No samples were asked for." in page
    assert re.search(
        r"best</th><td class=\"number\">1</td>.*50\.00%", page
    )  # of equal epochs, training keeps the first


@pytest.mark.slow
def test_several_runs_share_a_page_in_the_present_folder(copy, tmp_path: Path, monkeypatch, capsys) -> None:
    runs = [copy("one/digits"), copy("two/digits")]
    edit(runs[1] / "recipe.json", lambda run: run["settings"].update(seed=99))
    (runs[1] / "best.safetensors").unlink()
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    assert main(["report", *map(str, runs), *QUICK, "--samples", "1", "--split", "validation"]) == 0
    assert "report: report.html" in capsys.readouterr().out
    assert [path.name for path in here.iterdir()] == ["report.html"]
    page = Path("report.html").read_text()
    assert re.search("<h1>one/digits · two/digits</h1>", page)  # as much of the path as tells them apart
    assert re.search(r"<th scope=\"row\">seed</th><td>0</td><td>99</td>", page)
    assert "The weights of the best epoch are not in the run's folder." in page


def test_runs_are_linked_to_their_pages(copy, tmp_path: Path, capsys) -> None:
    """`--page` writes them; one that is there is linked without being asked for."""
    first, second, output = copy("a run & more"), copy("second"), tmp_path / "report.html"
    assert main(["report", str(first), *QUICK, "--page", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["runs"][0]["page"] == "page.html"
    assert (first / "page.html").stat().st_size > 500_000
    assert 'href="page.html"' in (first / "report.html").read_text(encoding="utf-8")
    assert main(["report", str(first), str(second), *QUICK, "--output", str(output), "--json"]) == 0
    pages = [run["page"] for run in json.loads(capsys.readouterr().out)["runs"]]
    assert pages == ["a%20run%20%26%20more/page.html", None]
    assert output.read_text(encoding="utf-8").count("page.html") == 1


def test_what_is_no_run_is_rejected(copy, tmp_path: Path, capsys) -> None:
    assert shows(error_of(capsys), "spikformer train")
    assert shows(error_of(capsys, tmp_path / "nowhere"), tmp_path / "nowhere")
    assert shows(error_of(capsys, tmp_path), tmp_path, "metrics.csv")
    folder = copy()
    assert shows(error_of(capsys, folder / "last.safetensors"), folder / "last.safetensors", f"as {folder}")
    assert shows(error_of(capsys, folder, folder / ".." / "run"), "twice")
    assert shows(error_of(capsys, broken(folder, "recipe.json", "{}")), folder / "recipe.json")
    assert shows(error_of(capsys, broken(folder, "metrics.csv", "epoch,train_loss\n")), folder / "metrics.csv")
    (folder / "last.safetensors").unlink()
    (folder / "metrics.csv").write_text("epoch,train_loss\n1,2.0\n")
    assert shows(error_of(capsys, folder), folder, "last.safetensors")
    assert not list(tmp_path.rglob("report.html"))


def broken(folder: Path, name: str, content: str) -> Path:
    (folder / name).write_text(content)
    return folder


def test_files_that_do_not_fit_together_are_rejected(copy, capsys) -> None:
    folder = copy("classes")
    edit(folder / "recipe.json", lambda run: run["class_names"].pop())
    assert shows(error_of(capsys, folder), folder / "recipe.json", 9, 10)
    folder = copy("model")
    edit(folder / "recipe.json", lambda run: run["settings"]["model"].update(tau=3.0))
    assert shows(error_of(capsys, folder), folder / "last.safetensors", folder / "recipe.json")
    folder = copy("data")
    for name in ("last.safetensors", "best.safetensors"):
        model = sf.load(folder / name)
        model.card = replace(model.card, class_names=tuple("abcdefghij"))
        sf.save(model, folder / name)
    edit(folder / "recipe.json", lambda run: run.update(class_names=list("abcdefghij")))
    assert shows(error_of(capsys, folder), "10 classes", "10 others")
    assert shows(error_of(capsys, copy("embedded"), "--data", folder), "digits", folder)
    (folder / "last.safetensors").write_bytes(b"half")
    assert shows(error_of(capsys, folder), folder / "last.safetensors")


def test_wrong_options_are_rejected(trained: Path, tmp_path: Path, capsys) -> None:
    for option, least in (("--samples", 0), ("--max-samples", 1), ("--batch-size", 1)):
        assert shows(error_of(capsys, trained, option, "-1"), option, least, -1)
    before = (trained / "metrics.csv").read_bytes()
    assert shows(error_of(capsys, trained, "--output", trained / "metrics.csv"), trained / "metrics.csv", ".html")
    assert (trained / "metrics.csv").read_bytes() == before
    assert shows(error_of(capsys, trained, "--output", tmp_path), tmp_path / "report.html")
    assert shows(error_of(capsys, trained, "--output", tmp_path / "no" / "report.html"), tmp_path / "no")
    assert shows(error_of(capsys, trained, "--output", "/proc/report.html"), "/proc")
