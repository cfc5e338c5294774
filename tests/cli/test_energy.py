"""`spikformer energy`: the auditor's figures, whole and as the API has them, and its errors."""

import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest
from tests.mistakes import shows

import spikformer as sf
from spikformer.analysis.energy import Constants, measure_energy
from spikformer.analysis.published import implied_mean_rates, published_figures
from spikformer.cli.energy import Options
from spikformer.data import open_dataset
from spikformer.runs.measure import batches
from spikformer.successors import ROWS

FEW = ("--max-samples", 6, "--batch-size", 4)


def as_measured(weights: Path, split: str = "test", **options: object) -> dict[str, object]:
    model = sf.load(weights)
    samples = batches(model, open_dataset("digits"), split, 6, 4)
    return json.loads(json.dumps(measure_energy(model, samples, **options).to_dict()))


def test_figures_are_those_of_the_api(weights: Path, run_here) -> None:
    said = run_here("energy", weights, *FEW, "--json")
    figures = json.loads(said.stdout)
    engine = figures.pop("engine")
    assert figures == as_measured(weights)
    by_engine = as_measured(weights, runtime="engine")
    assert engine == {name: by_engine[name] for name in ("attention_order", "operations", "energy_mj")}
    assert (figures["attention_order"], engine["attention_order"]) == ("query_key_first", "key_value_first")
    assert said.stderr == ""
    assert sorted(path.name for path in weights.parent.iterdir()) == ["best.safetensors"], "nothing is written"


def test_default_costs_are_those_of_the_api() -> None:
    options = {field.name: field.default for field in fields(Options)}
    assert Constants() == Constants(**{field.name: options[field.name] for field in fields(Constants)})


def test_event_networks(event_weights: Path, run_here) -> None:
    found = json.loads(run_here("energy", event_weights, *FEW, "--json").stdout)
    assert (found["num_samples"], found["time_steps"]) == (6, 8)
    for by_convention in found["energy_mj"].values():
        assert by_convention["every_step"] == by_convention["once"]


def test_tables_show_every_layer_and_convention_and_cut_no_digit(weights: Path, run_here, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = run_here("energy", weights, *FEW, "--memory").stdout
    memory = json.loads(run_here("energy", weights, *FEW, "--memory", "--json").stdout)["memory"]
    found = as_measured(weights)
    assert "…" not in text
    lines = {line.split("  ")[0]: line for line in text.splitlines()}
    for layer in found["layers"]:
        line = lines[layer["name"]]
        assert f"{layer['macs']:,}" in line
        assert f"{layer['mean_input']:.3f}" in line
        assert ("spikes" if layer["binary"] else "numbers") in line
        for energies in layer["energy_pj"].values():
            assert f"{energies['every_step'] / 1e3:,.1f}" in line
    for name in ("paper", "strict", "entrywise"):
        for when, first_conv in (("at every step", "every_step"), ("once", "once")):
            (line,) = [line for line in text.splitlines() if line.startswith(name) and f" {when} " in line]
            energy = found["energy_mj"][name][first_conv]
            assert f"{1e3 * energy:,.3f}" in line
            assert f"{found['operations'][name][first_conv]['acs']:,.0f}" in line
            assert f" {found['twin']['energy_mj'] / energy:.2f} " in line
            assert line.endswith(f" {1e3 * (energy + memory['energy_mj'][name][first_conv]):,.3f}  ")
    twin = next(line for line in text.splitlines() if line.startswith("ANN twin"))
    assert f"{found['twin']['macs']:,}" in twin
    assert twin.endswith(f" {1e3 * (found['twin']['energy_mj'] + memory['twin_energy_mj']):,.3f}  ")
    assert shows(text, "6 samples", "digits", "T = 4", "4.6 pJ", "0.9 pJ", "10 pJ")
    assert "(Q Kᵀ) V" in text


def test_constants_and_memory_are_options(weights: Path, run_here) -> None:
    words = ("--mac-pj", 2, "--ac-pj", 0.5, "--memory", "--weight-pj", 7, "--membrane-pj", 0)
    found = json.loads(run_here("energy", weights, *FEW, *words, "--json").stdout)
    memory, _ = found.pop("memory"), found.pop("engine")
    assert found == as_measured(weights, constants=Constants(2, 0.5, 7, 0))
    assert memory["costs"] == {"weight_pj": 7, "membrane_pj": 0}
    strict = found["operations"]["strict"]["once"]
    assert memory["energy_mj"]["strict"]["once"] == pytest.approx(7e-9 * (strict["macs"] + strict["acs"]))
    assert memory["twin_energy_mj"] == pytest.approx(7e-9 * found["twin"]["macs"])
    assert "memory" not in json.loads(run_here("energy", weights, *FEW, "--json").stdout)
    default = json.loads(run_here("energy", weights, *FEW, "--memory", "--json").stdout)["memory"]
    assert default["costs"] == {"weight_pj": 10, "membrane_pj": 10}


def test_samples_come_from_all_over_a_split(weights: Path, run_here) -> None:
    everything, train = (
        json.loads(run_here("energy", weights, "--split", *words, "--json").stdout)
        for words in (("validation", "--max-samples", 10**6), ("train", *FEW))
    )
    assert (everything["num_samples"], train["num_samples"]) == (143, 6)
    del train["engine"]
    assert train == as_measured(weights, split="train") != as_measured(weights)


def test_conventional_networks_are_measured_too(tmp_path: Path, write_weights: Callable[..., Path], run_here) -> None:
    twin = {"neuron": "relu", "attention": "softmax_float_value", "time_steps": 1}
    path = write_weights(tmp_path / "twin.safetensors", **twin)
    found = json.loads(run_here("energy", path, *FEW, "--json").stdout)
    assert found["energy_mj"]["strict"]["once"] == pytest.approx(found["twin"]["energy_mj"])
    assert "ANN twin" in run_here("energy", path, *FEW).stdout


def test_the_papers_figures(run_here) -> None:
    figures = published_figures()
    rows = json.loads(run_here("energy", "--published", "--json").stdout)
    assert [row["printed"] for row in rows] == [figure.printed for figure in figures]
    assert [row["agrees"] for row in rows] == [figure.agrees for figure in figures]
    text = run_here("energy", "--published").stdout
    agreeing = sum(figure.agrees for figure in figures)
    assert text.splitlines()[-1].startswith(f"{agreeing} of {len(figures)} ")
    (line,) = [line for line in text.splitlines() if "Spikformer-8-768" in line and "96 channels" in line]
    assert "21.477  22.274  ≠" in line
    assert all(f"{row.energy_mj:.2f} mJ (" in text for name, row in ROWS.items() if name in implied_mean_rates())


@pytest.mark.slow
def test_as_users_run_it(weights: Path, run) -> None:
    text = run("energy", weights, *FEW).stdout
    assert "blocks.1.attention.projection.linear" in text
    assert "6 samples of digits" in text


def test_mistakes(weights: Path, tmp_path: Path, error_message: Callable[..., str]) -> None:
    assert shows(error_message("energy", "nowhere.safetensors"), "nowhere.safetensors")
    assert "--published" in error_message("energy")
    assert shows(error_message("energy", weights, "--published"), "--published")
    assert shows(error_message("energy", weights, "--mac-pj", "nan"), "mac_pj", "nan")
    assert shows(error_message("energy", weights, "--ac-pj", -1), "ac_pj", -1.0)
    assert shows(error_message("energy", weights, "--memory", "--membrane-pj", "inf"), "membrane_pj", "inf")
    assert shows(error_message("energy", weights, "--max-samples", 0), "--max-samples", 1, 0)
    assert shows(error_message("energy", weights, "--batch-size", -3), "--batch-size", 1, -3)
    assert shows(error_message("energy", weights, "--data", tmp_path), "digits", tmp_path)
    assert shows(error_message("energy", weights, "--accelerator", "gpu"), "GPU", "--accelerator cpu")


def test_wrong_options_are_rejected_by_name(weights: Path, run_here) -> None:
    assert "--max-sample" in run_here("energy", weights, "--max-sample", 3, code=2).stderr
    assert "validation" in run_here("energy", weights, "--split", "training", code=2).stderr
