"""`spikformer attention`: maps of the right block, head and step over the right sample, and its errors."""

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from tests.mistakes import shows

import spikformer as sf
from spikformer.analysis.recorder import record
from spikformer.data import open_dataset
from spikformer.models import SpikingNetwork
from spikformer.runs.measure import Watched, attention_maps, watch_samples

DIGITS = open_dataset("digits")


def letters(path: Path) -> list[str]:
    """The words of an SVG."""
    return [
        line.split(">")[1].split("<")[0] for line in path.read_text().splitlines() if line.strip().startswith("<text")
    ]


def grids_of(model: SpikingNetwork, watched: Watched, head: int | None = None) -> np.ndarray:
    """Of blocks with grids of one size, [blocks, T, n_h, n_w]."""
    return np.stack([block.grids for block in attention_maps(model, watched, head)])


def test_grids_are_how_much_each_patch_is_looked_at(weights: Path) -> None:
    model = sf.load(weights)
    (watched,) = watch_samples(model, DIGITS, "test", [5])
    with torch.no_grad(), record(model.eval()) as seen:
        model(DIGITS.prepare(DIGITS.test[5][None]))
    grids = grids_of(model, watched)
    assert grids.shape == (2, 4, 4, 4)
    for block in range(2):
        maps = seen.attention(f"blocks.{block}.attention").maps()[:, 0]  # [T, h, N, N]: who looks, and at whom
        np.testing.assert_allclose(grids[block].reshape(4, 16), maps.mean((1, 2)), rtol=1e-6)
        by_head = [grids_of(model, watched, head)[block] for head in range(1, 5)]
        np.testing.assert_allclose(np.mean(by_head, 0), grids[block], rtol=1e-5)
        np.testing.assert_allclose(by_head[2].reshape(4, 16), maps[:, 2].mean(1), rtol=1e-6)
    assert grids.max() > 0


def test_attention_with_a_sign_is_shown_by_its_size(tmp_path: Path, write_weights: Callable[..., Path]) -> None:
    model = sf.load(write_weights(tmp_path / "identity.safetensors", attention="identity"))
    (watched,) = watch_samples(model, DIGITS, "test", [5])
    maps = watched.seen.attention("blocks.0.attention").maps()[:, 0]
    assert (maps < 0).any()
    np.testing.assert_allclose(grids_of(model, watched)[0].reshape(4, 16), maps.abs().mean((1, 2)), rtol=1e-5)


def test_four_classes_beside_the_weights(weights: Path, run_here) -> None:
    drawn = json.loads(run_here("attention", weights, "--json").stdout)
    assert [Path(row["figure"]).name for row in drawn] == [f"best_attention_{number}.png" for number in range(1, 5)]
    assert [row["label"] for row in drawn] == ["0", "3", "6", "9"], "spread over all classes"
    for row in drawn:
        place = int(row["source"].removeprefix("test sample "))
        assert DIGITS.class_names[DIGITS.test.labels[place]] == row["label"]
        with Image.open(row["figure"]) as picture:
            picture.load()
            assert picture.format == "PNG"
            assert picture.width > picture.height > 300
    assert len(list(weights.parent.iterdir())) == 5


def test_one_sample_has_the_name_itself_and_is_reported(weights: Path, run_here) -> None:
    said = run_here("attention", weights, "--samples", 7, "--split", "validation")
    assert sorted(path.name for path in weights.parent.iterdir()) == ["best.safetensors", "best_attention.png"]
    label = DIGITS.class_names[DIGITS.validation.labels[7]]
    assert said.stdout.startswith(
        f"{weights.parent / 'best_attention.png'}: validation sample 7: {label}, classified as "
    )


def test_rows_are_blocks_and_columns_are_steps(weights: Path, tmp_path: Path, run_here) -> None:
    def drawn(*words: object) -> list[str]:
        run_here("attention", weights, "--samples", 3, "--output", tmp_path / "maps.svg", *words)
        return letters(tmp_path / "maps.svg")

    everything = drawn()
    assert [word for word in everything if word.startswith("block")] == ["block 1", "block 2"]
    assert [word for word in everything if word.startswith("step")] == [f"step {step}" for step in range(1, 5)]
    assert not any("head" in word for word in everything)
    chosen = drawn("--block", 2, "--head", 3, "--step", 4)
    assert sorted(word for word in chosen if word.startswith(("block", "step"))) == ["block 2", "step 4"]
    assert any(word.endswith(", head 3") for word in chosen)


def test_a_choice_shows_another_picture(weights: Path, tmp_path: Path, run_here) -> None:
    contents = set()
    for number, words in enumerate(
        (("--block", 1), ("--block", 2), ("--block", 2, "--head", 1), ("--block", 2, "--head", 2))
    ):
        path = tmp_path / f"{number}.png"
        run_here("attention", weights, "--samples", 3, "--step", 4, "--output", path, *words)
        with Image.open(path) as picture:
            contents.add(np.asarray(picture)[-picture.height // 2 :].tobytes())
    assert len(contents) == 4


def test_events(event_weights: Path, tmp_path: Path, run_here) -> None:
    (drawn,) = json.loads(
        run_here("attention", event_weights, "--samples", 2, "--output", tmp_path / "a.svg", "--json").stdout
    )
    assert drawn["source"] == "test sample 2"
    assert "step 8" in letters(tmp_path / "a.svg")


def test_files_instead_of_samples(weights: Path, tmp_path: Path, run_here) -> None:
    paths = [tmp_path / "seven [7].png", tmp_path / "wide.png"]
    Image.fromarray(DIGITS.test[3][0]).save(paths[0])
    Image.new("RGB", (40, 20), (200, 30, 90)).save(paths[1])
    output = tmp_path / "maps.png"
    drawn = json.loads(run_here("attention", weights, "--files", *paths, "--output", output, "--json").stdout)
    assert [row["source"] for row in drawn] == ["seven [7].png", "wide.png"]
    assert [row["label"] for row in drawn] == [None, None]
    assert [Path(row["figure"]).name for row in drawn] == ["maps_1.png", "maps_2.png"]
    sample = json.loads(run_here("attention", weights, "--samples", 3, "--json").stdout)
    assert drawn[0]["answer"] == sample[0]["answer"], "the same pixels"
    text = run_here("attention", weights, "--files", paths[0], "--output", output).stdout
    assert text.startswith(f"{output}: seven [7].png: classified as ")


def test_recordings_instead_of_samples(event_weights: Path, tmp_path: Path, run_here) -> None:
    events = np.zeros(200, [("t", "<i8"), ("x", "<i2"), ("y", "<i2"), ("p", "?")])
    events["t"], events["x"], events["y"] = np.arange(200), np.arange(200) % 16, np.arange(200) % 13
    np.save(tmp_path / "moving.npy", events)
    (drawn,) = json.loads(run_here("attention", event_weights, "--files", tmp_path / "moving.npy", "--json").stdout)
    assert drawn["source"] == "moving.npy"
    assert (event_weights.parent / "best_attention.png").is_file()


@pytest.mark.slow
def test_as_users_run_it(weights: Path, run) -> None:
    text = run("attention", weights, "--samples", 1, 2).stdout
    assert text.count("test sample") == 2
    assert (weights.parent / "best_attention_2.png").is_file()


@pytest.mark.parametrize(
    ("words", "values"),
    [
        (("--block", 3), ("--block", 1, 2, 3)),
        (("--block", 0), ("--block", 1, 2, 0)),
        (("--head", 5), ("--head", 4, 5)),
        (("--head", -1), ("--head", 4, -1)),
        (("--step", 5), ("--step", 4, 5)),
        (("--step", 0), ("--step", 4, 0)),
        (("--samples", 0, 359), ("digits", 359)),
        (("--samples", -1), ("digits", 359, -1)),
        (("--files", "x.png", "--samples", 1), ("--files", "--samples")),
        (("--files", "x.png", "--data", "."), ("--files", "--data")),
        (("--files", "/nowhere/x.png"), ("/nowhere/x.png",)),
        (("--output", "a.gif"), ("a.gif", ".png", ".svg")),
        (("--output", "nowhere/a.png"), ("nowhere", "a.png")),
    ],
    ids=lambda value: " ".join(map(str, value)),
)
def test_mistakes_name_what_is_wrong_and_leave_nothing(
    words: tuple[object, ...], values: tuple[object, ...], weights: Path, error_message: Callable[..., str]
) -> None:
    assert shows(error_message("attention", weights, *words), *values)
    assert list(weights.parent.iterdir()) == [weights]


def test_where_there_is_nothing_to_look_at(
    tmp_path: Path, write_weights: Callable[..., Path], error_message: Callable[..., str]
) -> None:
    path = write_weights(tmp_path / "none.safetensors", attention="none")
    assert "no attention" in error_message("attention", path)


STAGES = {"image_size": 8, "in_channels": 1, "embed_dim": 32, "num_heads": 2}
MASKED = {
    "spike_driven_transformer_2_256_cifar10": (
        {**STAGES, "pool_stages": (True, False, False, False)},
        {1: ("masked Q", 4), 2: ("masked Q", 4)},
    ),
    "qkformer_4_384_cifar10": (STAGES, {1: ("mask", 8), 2: ("mask", 4), 3: ("attention", 2), 4: ("attention", 2)}),
    "ms_qkformer_4_384_cifar10": (STAGES, {1: ("mask", 8), 2: ("mask", 4), 3: ("attention", 2), 4: ("attention", 2)}),
    "maxformer_4_384_cifar10": (STAGES, {3: ("attention", 2), 4: ("attention", 2)}),
}


@pytest.mark.parametrize("name", MASKED)
def test_every_block_that_has_attention(
    name: str, tmp_path: Path, write_weights: Callable[..., Path], run_here, error_message: Callable[..., str]
) -> None:
    overrides, blocks = MASKED[name]
    path = write_weights(tmp_path / "best.safetensors", name, **overrides)
    (watched,) = watch_samples(model := sf.load(path), DIGITS, "test", [5])
    found = {block.block: block for block in attention_maps(model, watched)}
    assert {number: (block.shown, block.grids.shape[-1]) for number, block in found.items()} == blocks
    heads = [attention_maps(model, watched, head) for head in (1, 2)]
    for number, *by_head in zip(found, *heads, strict=True):
        np.testing.assert_allclose(np.mean([each.grids for each in by_head], 0), found[number].grids, rtol=1e-6)
        assert found[number].grids.max() > 0
        output = tmp_path / "maps.svg"
        run_here("attention", path, "--samples", 5, "--block", number, "--head", 2, "--output", output)
        assert [word for word in letters(output) if word.startswith("block")] == [found[number].title]
    for wrong in {1, 2, 5} - set(blocks):
        message = error_message("attention", path, "--block", wrong)
        assert ", ".join(map(str, blocks)) in message or str(max(blocks)) in message
    assert "2" in error_message("attention", path, "--head", 3)


def test_a_file_that_is_no_picture(weights: Path, tmp_path: Path, error_message: Callable[..., str]) -> None:
    good, bad = tmp_path / "good.png", tmp_path / "bad.png"
    Image.new("L", (8, 8)).save(good)
    bad.write_bytes(b"no picture")
    assert shows(error_message("attention", weights, "--files", good, bad), bad)
    assert list(weights.parent.iterdir()) == [weights], "not even of the good one"


def test_a_full_disk_gets_an_error_message(weights: Path, full_disk, error_message: Callable[..., str]) -> None:
    with full_disk():
        message = error_message("attention", weights, "--samples", 1, code=1)
    assert shows(message, weights.parent / "best_attention.png", os.strerror(errno.EFBIG))
    assert list(weights.parent.iterdir()) == [weights]
