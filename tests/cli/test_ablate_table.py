"""What came out, as people read it: one unit a column, the paper beside it, and no column that is empty."""

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from spikformer.analysis.ablation import CellResult, check_grid, variants
from spikformer.cli.ablate import print_comparison
from spikformer.presets import get_preset
from spikformer.runs.cells import Comparison


def compare(tmp_path: Path, grid: str, model: str, data_set: str, *cells: CellResult) -> Comparison:
    rows = variants(check_grid(grid), get_preset(model).config, data_set)
    return Comparison(check_grid(grid), model, data_set, tmp_path, rows, cells)


def finished(name: str, seed: int, accuracy: float, energy_mj: float = 0.5, split: str = "test") -> CellResult:
    figures = {f"last_{split}_accuracy": accuracy, f"best_{split}_accuracy": accuracy + 0.01, "parameters": 9.32e6}
    figures |= {"operations": 7.1e8, "energy_mj": energy_mj}
    figures |= {"attention_operations": 1.2e6, "attention_energy_mj": 0.00108}
    return CellResult(name, seed, "finished", figures)


def shown(comparison: Comparison, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("COLUMNS", "140")
    print_comparison(comparison)
    return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]


def test_ours_and_the_papers_stand_side_by_side(tmp_path: Path, capsys, monkeypatch) -> None:
    cells = [finished("ssa", 0, 0.94), finished("ssa", 1, 0.96), CellResult("ssa", 2, "diverged")]
    cells += [CellResult("relu", 0, "diverged"), CellResult("none", 0, "failed"), finished("none", 1, 0.9)]
    lines = shown(compare(tmp_path, "attention", "spikformer_4_384_cifar10", "cifar10", *cells), capsys, monkeypatch)
    assert lines[0] == "Last Best Params OPs Energy QKV QKV Paper Paper Paper"
    assert lines[1] == "Attention Runs % % M M µJ M µJ % QKV M QKV µJ"
    assert lines[2] == "ssa 2, 1 ✗ 95.00 ± 1.41 96.00 ± 1.41 9.32 710 500 1.2 1.08 95.19 1.1 0.99"
    assert lines[3] == "relu 1 ✗ ✗ ✗ – – – – – 94.34 6.3 29"
    assert lines[4] == "none 1, 1 failed 90.00 91.00 9.32 710 500 1.2 1.08 – – –"
    assert "The paper's figures are of Spikformer-4-384." in lines


def test_large_networks_are_reported_in_millijoules_and_so_is_the_paper(tmp_path: Path, capsys, monkeypatch) -> None:
    cells = [finished("8-384", 0, 0.7, energy_mj=7.7), finished("8-768", 0, 0.74, energy_mj=21.4)]
    lines = shown(compare(tmp_path, "size", "spikformer_8_512_imagenet", "imagenet", *cells), capsys, monkeypatch)
    assert lines[1] == "Size Runs % % M M mJ % M mJ"
    assert lines[2] == "8-384 1 70.00 71.00 9.32 710 7.7 70.24 6820 7.73"
    assert lines[3] == "8-768 1 74.00 75.00 9.32 710 21.4 74.81 22090 21.5"


def test_without_a_row_of_the_paper_there_is_no_column(tmp_path: Path, capsys, monkeypatch) -> None:
    cells = [finished("lif", 0, 0.9, split="validation")]
    comparison = compare(tmp_path, "neuron", "spikformer_tiny_digits", "digits", *cells)
    lines = shown(comparison, capsys, monkeypatch)
    assert "Paper" not in lines[0]
    assert lines[2].startswith("lif 1 90.00 91.00")
    assert any("validation split of digits" in line for line in lines)
    assert comparison.to_dict()["split"] == "validation"


def test_files_have_every_cell(tmp_path: Path) -> None:
    cells = [finished("if", 1, 0.9), finished("lif", 0, 0.8), CellResult("if", 0, "diverged")]
    comparison = compare(tmp_path, "neuron", "spikformer_tiny_digits", "digits", *cells)
    comparison.write()
    rows = list(csv.DictReader((tmp_path / "ablation.csv").read_text().splitlines()))
    assert [(row["variant"], row["seed"], row["outcome"]) for row in rows] == [
        ("lif", "0", "finished"),
        ("if", "0", "diverged"),
        ("if", "1", "finished"),
    ]
    assert [row["last_test_accuracy"] for row in rows] == ["0.8", "", "0.9"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ablation.csv", "ablation.png", "ablation.svg"]


def test_architectures_have_every_convention_and_the_engine(tmp_path: Path, capsys, monkeypatch) -> None:
    costs = {"strict_energy_mj": 0.9, "entrywise_energy_mj": 0.6, "engine_ms": 0.31}
    first = finished("spikformer", 0, 0.94)
    cells = [replace(first, figures={**first.figures, **costs}), finished("max_resnet", 0, 0.9)]
    comparison = compare(tmp_path, "architecture", "spikformer_tiny_digits", "digits", *cells)
    lines = shown(comparison, capsys, monkeypatch)
    assert lines[0] == "Last Best Params OPs Energy Strict Entrywise Engine"
    assert lines[2] == "spikformer 1 94.00 95.00 9.32 710 500 900 600 0.31"
    assert lines[3] == "max_resnet 1 90.00 91.00 9.32 710 500 – – –"
    comparison.write()
    row, _ = csv.DictReader((tmp_path / "ablation.csv").read_text().splitlines())
    assert (row["strict_energy_mj"], row["engine_ms"]) == ("0.9", "0.31")
    first, second = comparison.to_dict()["variants"]
    assert first["engine_ms"]["mean"] == 0.31
    assert second["engine_ms"] is None
    assert second["model"]["widths"] == (32, 64)
