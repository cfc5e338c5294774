"""Batches: the same order whatever reads them, each sample once, bad ones counted."""

import logging
import os
import subprocess
import sys
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from tests.mistakes import field_error, mistake, shows

from spikformer.data import ArraySamples, DataSet, Loader, SplitDataset, open_dataset
from spikformer.preprocessing import Preprocessing

PIXEL = Preprocessing(kind="image", size=(1, 1), channels=1)


def numbered(count: int) -> DataSet:
    """A set whose samples say their own index."""
    arrays = np.arange(count, dtype=np.uint8).reshape(count, 1, 1, 1)
    split = ArraySamples(arrays, np.arange(count) % 3, "numbers")
    return DataSet("numbers", ("a", "b", "c"), PIXEL, split, None, split)


def indices(loader: Loader, epoch: int = 0, first_batch: int = 0) -> list[list[int]]:
    found = []
    for batch in loader.epoch(epoch, first_batch):
        assert batch.samples.flatten().tolist() == batch.indices.tolist()
        assert torch.equal(batch.labels, batch.indices % 3)
        found.append(batch.indices.tolist())
    return found


@pytest.fixture
def photographs(tmp_path: Path) -> Path:
    """24 for training, of which 3 are damaged, and 6 for testing, of which 1 is."""
    for split, count, damaged in (("train", 12, {4, 5}), ("test", 3, {1})):
        for name in ("cat", "dog"):
            (tmp_path / split / name).mkdir(parents=True)
            for number in range(count):
                path = tmp_path / split / name / f"{number:02}.jpg"
                Image.new("RGB", (20, 20), (10 * number, 0, 0)).save(path)
                if name == "cat" and number in damaged:
                    path.write_bytes(path.read_bytes()[:300])
    (tmp_path / "train" / "dog" / "07.jpg").write_bytes(b"")
    return tmp_path


@pytest.mark.parametrize("training", [True, False])
def test_any_number_of_workers_gives_the_same_batches(training: bool) -> None:
    orders = []
    for workers in (0, 1, 2):
        loader = Loader(numbered(50), "train", 8, training=training, seed=3, workers=workers)
        orders.append([indices(loader, epoch) for epoch in (0, 1)])
    assert orders[0] == orders[1] == orders[2]


@pytest.mark.slow
def test_workers_deliver_where_the_temporary_path_is_long(tmp_path: Path) -> None:
    long = tmp_path / ("x" * 100)
    long.mkdir()
    code = """
from spikformer.data import Loader, open_dataset
for batch in Loader(open_dataset("digits"), "test", 64, training=False, workers=1):
    print(len(batch.labels))
"""
    environment = os.environ | {"TMPDIR": str(long)}
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout.split() == ["64"] * 5 + ["39"], done.stderr


def test_without_a_folder_for_sockets_workers_are_an_error_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may write anywhere, so the other folders are some that are not there."""
    long = tmp_path / ("x" * 100)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    monkeypatch.setattr("spikformer.data.loader._OTHER_SOCKET_FOLDERS", (str(tmp_path / "a"),))
    with pytest.raises(OSError):  # noqa: PT011
        Loader(numbered(8), "train", 4, training=True, workers=1)
    assert len(indices(Loader(numbered(8), "train", 4, training=True))) == 2, "one process needs no socket"


def test_the_seed_and_the_epoch_decide_the_order() -> None:
    def order(seed: int, epoch: int) -> list[list[int]]:
        return indices(Loader(numbered(50), "train", 10, training=True, seed=seed), epoch)

    assert order(0, 0) == order(0, 0)
    assert order(0, 0) != order(0, 1)
    assert order(0, 0) != order(1, 0)
    assert order(0, 1) != order(1, 0)
    assert sorted(chain(*order(0, 0))) == list(range(50))


def test_training_drops_the_last_part_and_evaluation_keeps_it() -> None:
    training = Loader(numbered(50), "train", 8, training=True)
    evaluation = Loader(numbered(50), "test", 8, training=False)
    assert [len(batch) for batch in indices(training)] == [8] * 6
    assert list(chain(*indices(evaluation))) == list(range(50))
    assert (len(training), len(evaluation)) == (6, 7)


def test_repeats_follow_each_other_and_an_epoch_keeps_its_length() -> None:
    whole = list(chain(*indices(Loader(numbered(48), "train", 8, training=True, seed=2, repeats=3), epoch=1)))
    assert len(whole) == 48
    assert whole[::3] == whole[1::3] == whole[2::3]
    assert len(set(whole)) == 16
    plain = list(chain(*indices(Loader(numbered(48), "train", 8, training=True, seed=2), epoch=1)))
    assert whole[::3] == plain[:16], "the first of the epoch's own order"
    ranks = [
        list(
            chain(
                *indices(Loader(numbered(48), "train", 4, training=True, seed=2, repeats=3, rank=rank, world_size=2), 1)
            )
        )
        for rank in (0, 1)
    ]
    assert [index for pair in zip(*ranks, strict=True) for index in pair] == whole


@pytest.mark.parametrize("world_size", [2, 3])
def test_processes_share_every_training_batch(world_size: int) -> None:
    alone = indices(Loader(numbered(50), "train", 4 * world_size, training=True, seed=5), epoch=2)
    parts = [
        indices(Loader(numbered(50), "train", 4, training=True, seed=5, rank=rank, world_size=world_size), epoch=2)
        for rank in range(world_size)
    ]
    together = [sorted(chain(*batches)) for batches in zip(*parts, strict=True)]
    assert together == [sorted(batch) for batch in alone]


@pytest.mark.parametrize("count", [1, 7, 50])
def test_processes_evaluate_each_sample_once(count: int) -> None:
    loaders = [Loader(numbered(count), "test", 4, training=False, rank=rank, world_size=3) for rank in range(3)]
    seen = [index for loader in loaders for batch in indices(loader) for index in batch]
    assert sorted(seen) == list(range(count))
    assert sum(len(loader) for loader in loaders) == sum(1 for loader in loaders for _ in loader.epoch(0))


def test_an_epoch_can_go_on_in_its_middle() -> None:
    loader = Loader(numbered(50), "train", 8, training=True, workers=1)
    whole = indices(loader, epoch=1)
    assert indices(loader, epoch=1, first_batch=4) == whole[4:]
    assert indices(loader, epoch=1) == whole


@pytest.mark.parametrize("workers", [0, 2])
def test_bad_samples_in_training_are_replaced_reported_once_and_counted(
    workers: int, photographs: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = open_dataset("image_folder", photographs, size=(16, 16), validation_share=0)
    loader = Loader(data, "train", 8, training=True, workers=workers)
    with caplog.at_level(logging.WARNING):
        for epoch in range(2):
            batches = list(loader.epoch(epoch))
            assert [len(batch.labels) for batch in batches] == [8, 8, 8]
            used = sorted(torch.cat([batch.indices for batch in batches]).tolist())
            assert not {4, 5, 19} & set(used)
            assert used.count(6) == 3  # it stands in for both of its neighbours
    assert len(caplog.messages) == 1
    assert shows(caplog.messages[0], "image_folder", "train")
    assert len(loader.unreadable) == 3
    assert {Path(message.split()[0]).name for message in loader.unreadable} == {"04.jpg", "05.jpg", "07.jpg"}


@pytest.mark.parametrize("workers", [0, 2])
def test_bad_samples_in_evaluation_are_left_out_and_counted(workers: int, photographs: Path) -> None:
    data = open_dataset("image_folder", photographs, size=(16, 16))
    loader = Loader(data, "test", 1, training=False, workers=workers)
    assert [batch.indices.tolist() for batch in loader.epoch(0)] == [[0], [2], [3], [4], [5]]
    assert loader.unreadable.total() == 1


@pytest.mark.parametrize("workers", [0, 2])
def test_strict_stops_at_the_first(workers: int, photographs: Path) -> None:
    data = open_dataset("image_folder", photographs, size=(16, 16))
    with mistake(ValueError, "01.jpg"):
        list(Loader(data, "test", 2, training=False, workers=workers, strict=True).epoch(0))


@pytest.mark.parametrize("workers", [0, 2])
def test_a_set_that_is_all_bad_ends(workers: int, photographs: Path) -> None:
    for path in photographs.glob("train/*/*.jpg"):
        path.write_bytes(b"")
    data = open_dataset("image_folder", photographs, validation_share=0)
    with mistake(ValueError, 16, photographs):
        next(Loader(data, "train", 8, training=True, workers=workers).epoch(0))


def test_one_epoch_at_a_time() -> None:
    loader = Loader(numbered(50), "train", 8, training=True)
    first = loader.epoch(0)
    next(first)
    next(loader.epoch(1))
    with pytest.raises(RuntimeError, match="Another epoch of this loader"):
        next(first)


@pytest.mark.parametrize("workers", [0, 1])
def test_the_global_random_state_is_left_alone(workers: int) -> None:
    before = torch.random.get_rng_state()
    list(Loader(numbered(50), "train", 8, training=True, workers=workers).epoch(0))
    assert torch.equal(torch.random.get_rng_state(), before)


def test_memory_is_pinned_where_that_is_asked_for() -> None:
    assert Loader(numbered(50), "train", 8, training=True, pin_memory=True)._loader.pin_memory
    assert not Loader(numbered(50), "train", 8, training=True)._loader.pin_memory


def test_a_sample_of_nan_is_a_bad_sample() -> None:
    arrays = np.zeros((4, 1, 1, 1), np.float32)
    arrays[2] = np.nan
    split = ArraySamples(arrays, np.arange(4) % 3, "numbers")
    loader = Loader(DataSet("numbers", ("a", "b", "c"), PIXEL, split, None, split), "test", 4, training=False)
    (batch,) = loader.epoch(0)
    assert batch.indices.tolist() == [0, 1, 3]
    assert loader.unreadable.total() == 1


def test_a_file_that_vanishes_is_a_bad_sample(photographs: Path) -> None:
    data = open_dataset("image_folder", photographs, size=(16, 16))
    loader = Loader(data, "test", 6, training=False, quiet=True)
    Path(data.test.source(5)).unlink()
    (batch,) = loader.epoch(0)
    assert batch.indices.tolist() == [0, 2, 3, 4]
    assert any(shows(reason, data.test.source(5)) for reason in batch.reasons)


def test_wrong_use() -> None:
    with field_error("batch_size", 64, "numbers", 50, "train"):
        Loader(numbered(50), "train", 32, training=True, world_size=2)
    for options in ({"batch_size": 0}, {"workers": -1}, {"rank": 1}, {"world_size": 0}):
        with field_error(*next(iter(options.items()))):
            Loader(numbered(50), "train", **{"batch_size": 4, "training": True} | options)


def test_a_loader_is_iterable_epoch_after_epoch() -> None:
    loader = Loader(numbered(12), "train", 4, training=True, seed=3)
    first = [batch.indices.tolist() for batch in loader]
    second = [batch.indices.tolist() for batch in loader]
    assert (first, second) == (indices(loader, 0), indices(loader, 1))
    assert first != second


def test_a_split_is_a_dataset_of_pytorch() -> None:
    data = open_dataset("digits")
    split = SplitDataset(data, "test")
    assert isinstance(split, torch.utils.data.Dataset)
    samples, labels = next(iter(torch.utils.data.DataLoader(split, batch_size=5)))
    assert torch.equal(data.prepare(samples), data.prepare(np.stack([data.test[index] for index in range(5)])))
    assert labels.tolist() == data.test.labels[:5].tolist()
    assert SplitDataset(data, "test", transform=lambda sample: sample.sum().item())[3][0] == int(data.test[3].sum())
    assert len(list(split)) == len(split) == len(data.test)
