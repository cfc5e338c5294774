"""Engines by the command: compiled, evaluated, asked, timed."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.mistakes import shows

import spikformer as sf
from spikformer.engine.file import read_compiled, write_compiled


@pytest.fixture
def engine(weights: Path, run_here) -> Path:
    text = run_here("compile", weights).stdout
    path = weights.with_suffix(".engine")
    assert f"Wrote {path}" in text.replace("\n", "")
    assert re.match(r"Engine\(\d+ ops, T = 4, ", text)
    return path


def test_compile_writes_what_the_weights_answer(weights: Path, tmp_path: Path, run_here) -> None:
    output = tmp_path / "net.engine"
    described = json.loads(run_here("compile", weights, "-o", output, "--json").stdout)
    assert described["output"] == str(output)
    assert described["bytes"] == output.stat().st_size
    x = np.random.default_rng(0).standard_normal((3, *_input(weights)), dtype=np.float32)
    np.testing.assert_array_equal(sf.load_engine(output)(x), sf.compile_engine(sf.load(weights))(x))


def test_compile_takes_a_run_folder(weights: Path, run_here) -> None:
    described = json.loads(run_here("compile", weights.parent, "--json").stdout)
    assert Path(described["output"]) == weights.with_suffix(".engine")
    assert weights.with_suffix(".engine").is_file()


def _input(weights: Path) -> tuple[int, int, int]:
    config = sf.load(weights).config
    return (config.in_channels, *config.image_size)


def test_evaluate_measures_an_engine_as_it_does_its_weights(weights: Path, engine: Path, run_here) -> None:
    of_weights = json.loads(run_here("evaluate", weights, "--json").stdout)
    of_engine = json.loads(run_here("evaluate", engine, "--json").stdout)
    assert of_engine.pop("figure") != of_weights.pop("figure")
    assert of_engine.pop("loss") == pytest.approx(of_weights.pop("loss"), rel=1e-4)
    assert of_engine.pop("num_samples") == of_weights.pop("num_samples") == 359
    for name in ("top1", "top5"):
        assert of_engine[name] == pytest.approx(of_weights[name], abs=0.01), name
    assert shows(run_here("evaluate", engine, "--accelerator", "gpu", code=2).stderr, "CPU")


def test_predict_asks_an_engine(weights: Path, engine: Path, tmp_path: Path, run_here) -> None:
    picture = tmp_path / "seven.png"
    Image.fromarray(np.arange(64, dtype=np.uint8).reshape(8, 8) * 4).save(picture)
    (asked,) = json.loads(run_here("predict", engine, picture, "--json").stdout)
    (expected,) = json.loads(run_here("predict", weights, picture, "--json").stdout)
    assert [row["class"] for row in asked["classes"]] == [row["class"] for row in expected["classes"]]
    assert asked["classes"][0]["probability"] == pytest.approx(expected["classes"][0]["probability"], abs=1e-4)


def test_bench_times_both(weights: Path, engine: Path, run_here) -> None:
    arguments = ("--seconds", 0.05, "--batch-sizes", 1, 3, "--threads", 1)
    found = json.loads(run_here("bench", engine, *arguments, "--json").stdout)
    assert [speed["batch_size"] for speed in found["speeds"]] == [1, 3]
    assert all(0 < speed["fastest_ms"] <= speed["median_ms"] <= speed["p99_ms"] for speed in found["speeds"])
    assert all(speed["calls"] >= 5 for speed in found["speeds"])
    assert {layer["name"] for layer in found["layers"]} >= {"stem.stages.1", "blocks.1.mlp.output"}
    assert found["how"].startswith("engine, ")
    assert len(found["density_thresholds"]) == 3
    assert all(0 < density <= 1 for density in found["density_thresholds"])
    text = run_here("bench", weights, *arguments).stdout
    assert text.startswith("PyTorch, 1 thread")
    assert "Layer" not in text
    assert "Computed densely" in run_here("bench", engine, *arguments).stdout


@pytest.mark.parametrize(
    ("model", "overrides"),
    [
        ("cml_spikingformer_4_384_cifar10", {"image_size": 8, "embed_dim": 32, "num_heads": 4, "depth": 1}),
        ("spike_driven_transformer_2_512_cifar10", {"image_size": 8, "embed_dim": 32, "depth": 1}),
        ("maxformer_4_384_cifar10", {"image_size": 8, "embed_dim": 32, "num_heads": 4}),
        ("qkformer_4_384_cifar10", {"image_size": 8, "embed_dim": 32, "num_heads": 4}),
        ("sew_resnet_18_imagenet", {"image_size": 32, "widths": (8, 8, 16, 16), "depths": (1, 1, 1, 1)}),
    ],
)
def test_other_architectures_are_compiled_asked_and_timed(
    model: str, overrides: dict, write_weights, tmp_path: Path, run_here
) -> None:
    weights = write_weights(tmp_path / "net.safetensors", model, in_channels=1, num_classes=10, **overrides)
    run_here("compile", weights)
    engine, picture = tmp_path / "net.engine", tmp_path / "seven.png"
    Image.fromarray(np.arange(64, dtype=np.uint8).reshape(8, 8) * 4).save(picture)
    (asked,) = json.loads(run_here("predict", engine, picture, "--json").stdout)
    (expected,) = json.loads(run_here("predict", weights, picture, "--json").stdout)
    probabilities = [{row["class"]: row["probability"] for row in answer["classes"]} for answer in (asked, expected)]
    assert probabilities[0] == pytest.approx(probabilities[1], abs=1e-4)
    arguments = ("--seconds", 0.02, "--batch-sizes", 2, "--threads", 1, "--json")
    assert json.loads(run_here("bench", engine, *arguments).stdout)["layers"]


def test_bench_reports_a_threshold_that_the_file_sets(engine: Path, run_here) -> None:
    loaded = sf.load_engine(engine)
    loaded.density_threshold = 0.25
    loaded.save(engine)
    found = json.loads(
        run_here("bench", engine, "--seconds", 0.01, "--batch-sizes", 1, "--threads", 2, "--json").stdout
    )
    assert found["density_thresholds"] == [0.25, 0.25, 0.25]
    assert found["num_threads"] == 2


@pytest.mark.parametrize(
    ("option", "value"), [("--seconds", 0), ("--batch-sizes", 0), ("--batch-sizes", 100000), ("--threads", 0)]
)
def test_bench_names_the_value_that_is_wrong(option: str, value: int, engine: Path, run_here) -> None:
    assert str(value) in run_here("bench", engine, option, value, code=2).stderr


def test_what_needs_weights_rejects_an_engine(engine: Path, run_here) -> None:
    for verb in ("anytime", "energy", "firing", "attention"):
        assert shows(run_here(verb, engine, code=2).stderr, engine)


def test_compile_of_what_has_no_program(weights: Path, engine: Path, write_weights, tmp_path: Path, run_here) -> None:
    assert shows(run_here("compile", weights, "-o", tmp_path / "a.bin", code=2).stderr, "--output", ".engine")
    assert shows(run_here("compile", tmp_path / "none.safetensors", code=2).stderr, tmp_path / "none.safetensors")
    assert shows(run_here("compile", engine, "-o", tmp_path / "b.engine", code=2).stderr, engine)
    assert shows(run_here("compile", tmp_path, code=2).stderr, tmp_path)
    floats = write_weights(tmp_path / "floats.safetensors", attention="softmax")
    assert shows(run_here("compile", floats, code=2).stderr, floats, "attention='softmax'")
    assert not (tmp_path / "floats.engine").exists()


def test_names_of_ops_are_text(engine: Path, run_here) -> None:
    compiled = read_compiled(engine)
    first, *rest = compiled.program.ops
    program = replace(compiled.program, ops=(replace(first, name="[/]\n\x1b[2J"), *rest))
    write_compiled(replace(compiled, program=program), engine)
    said = run_here("bench", engine, "--seconds", 0.05, "--batch-sizes", 1)
    assert any(line.startswith("[/]\\n\\x1b[2J ") for line in said.stdout.splitlines())
