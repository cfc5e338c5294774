"""Predicting a file shows a network the very sample that evaluating its data set showed it, for every kind of set."""

import json
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from spikformer.card import ModelCard
from spikformer.data import DataSet, open_dataset, read_sample
from spikformer.data.events.sets import CIFAR10_DVS_CLASSES

CIFAR10 = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
SIDES = st.tuples(st.integers(4, 40), st.integers(4, 40))
FEW = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def check(data: DataSet, files: list[Path], split: str = "test") -> None:
    """By the preprocessing of a card that went through a file, as sample and as input."""
    card = ModelCard.from_dict(json.loads(json.dumps(data.card("spikformer").to_dict())))
    seen = card.known_preprocessing
    assert seen == data.preprocessing
    evaluated = data.split(split)
    assert len(files) == len(evaluated) > 0
    for index, path in enumerate(files):
        sample = read_sample(path, seen)
        assert np.array_equal(sample, evaluated[index])
        assert sample.dtype == evaluated[index].dtype
        assert np.array_equal(seen.to_inputs(sample[None]), data.prepare(evaluated[index][None]).numpy())


def save_pictures(data: DataSet, folder: Path) -> list[Path]:
    """The pictures of a test split in its own size, as PNG files."""
    paths = [folder / f"{index}.png" for index in range(len(data.test))]
    for index, path in enumerate(paths):
        pixels = data.test[index]
        Image.fromarray(pixels[0] if len(pixels) == 1 else pixels.transpose(1, 2, 0)).save(path)
    return paths


@pytest.fixture
def mnist(tmp_path: Path) -> Path:
    (tmp_path / "mnist").mkdir()
    random = np.random.default_rng(0)
    for prefix in ("train", "t10k"):
        images, labels = random.integers(0, 256, (3, 28, 28)), np.arange(3)
        for name, values in (("images-idx3", images), ("labels-idx1", labels)):
            header = struct.pack(f">HBB{values.ndim}I", 0, 8, values.ndim, *values.shape)
            (tmp_path / "mnist" / f"{prefix}-{name}-ubyte").write_bytes(header + values.astype(np.uint8).tobytes())
    return tmp_path / "mnist"


@pytest.fixture
def cifar(tmp_path: Path) -> Path:
    (tmp_path / "cifar").mkdir()
    rows = np.random.default_rng(0).integers(0, 10, (3, 3073)).astype(np.uint8) * 25
    rows[:, 0] //= 25
    for name in (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"):
        (tmp_path / "cifar" / f"{name}.bin").write_bytes(rows.tobytes())
    (tmp_path / "cifar" / "batches.meta.txt").write_text("\n".join(CIFAR10))
    return tmp_path / "cifar"


@FEW
@given(size=st.none() | SIDES)
def test_images_in_memory(size: tuple[int, int] | None, mnist: Path, cifar: Path, tmp_path: Path) -> None:
    for name, root in (("mnist", mnist), ("fashion_mnist", mnist), ("cifar10", cifar)):
        check(open_dataset(name, root, size=size), save_pictures(open_dataset(name, root), tmp_path))


def test_digits(tmp_path: Path) -> None:
    whole = open_dataset("digits")
    pictures = save_pictures(whole, tmp_path)
    check(whole, pictures)
    check(open_dataset("digits", size=(12, 16)), pictures)


@FEW
@given(size=SIDES, ratio=st.floats(0.25, 1), shape=st.tuples(st.integers(1, 120), st.integers(1, 120)))
def test_folders_of_pictures(
    size: tuple[int, int], ratio: float, shape: tuple[int, int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("pictures")
    random = np.random.default_rng(0)
    for number, (kind, label) in enumerate((("png", "ant"), ("jpg", "ant"), ("png", "bee"))):
        path = folder / "test" / label / f"{number}.{kind}"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(random.integers(0, 256, (*shape, 3)).astype(np.uint8)).save(path)
    data = open_dataset("image_folder", folder, size=size, crop_ratio=ratio)
    check(data, [Path(data.test.source(index)) for index in range(3)])


@FEW
@given(
    size=SIDES,
    time_steps=st.integers(1, 5),
    slicing=st.sampled_from(["count", "time"]),
    sensor=st.sampled_from([(34, 34), (128, 128), (40, 60)]),
    form=st.sampled_from(["npy", "npz", "nmnist", "dvs128", "prophesee"]),
)
@pytest.mark.parametrize("fit", ["resize", "crop"])
def test_folders_of_recordings(
    fit, size, time_steps, slicing, sensor, form, writers, some_rows, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("recordings")
    writer = writers.formats[form]
    for label in ("left", "right"):
        path = folder / "test" / label / f"1{writer.ending}"
        path.parent.mkdir(parents=True)
        path.write_bytes(writer.write(some_rows))
    size = (min(size[0], 34), min(size[1], 34)) if fit == "crop" else size
    options = {"size": size, "time_steps": time_steps, "slicing": slicing, "fit": fit, "cache_gb": 0}
    data = open_dataset("event_folder", folder, sensor=sensor, **options)
    check(data, [Path(data.test.source(index)) for index in range(2)])


def test_swapped_axes_of_cifar10dvs(tmp_path: Path, writers, some_rows) -> None:
    for label in CIFAR10_DVS_CLASSES:
        (tmp_path / label).mkdir()
        for number in range(2):
            (tmp_path / label / f"{number}.aedat").write_bytes(writers.formats["dvs128"].write(some_rows[number:]))
    data = open_dataset("cifar10dvs", tmp_path, time_steps=3, size=(32, 48), cache_gb=0, validation_share=0)
    assert data.preprocessing.swap_axes
    check(data, [Path(data.train.source(index)) for index in range(len(data.train))], "train")


def test_n_mnist(tmp_path: Path, writers, some_rows) -> None:
    for split in ("Train", "Test"):
        for digit in range(10):
            (tmp_path / split / str(digit)).mkdir(parents=True)
            (tmp_path / split / str(digit) / "1.bin").write_bytes(writers.formats["nmnist"].write(some_rows))
    data = open_dataset("n_mnist", tmp_path, time_steps=2, size=(17, 17), cache_gb=0)
    check(data, [Path(data.test.source(index)) for index in range(10)])


def test_a_gesture_that_fills_its_file(tmp_path: Path, writers, some_rows) -> None:
    """Of a longer recording evaluation sees stretches; a file with one of them alone is seen as that stretch was."""
    for user in (1, 2):
        name = f"user{user:02}_led"
        (tmp_path / f"{name}.aedat").write_bytes(writers.formats["aedat3"].write(some_rows))
        (tmp_path / f"{name}_labels.csv").write_text("class,startTime_usec,endTime_usec\n8,0,100000\n")
    (tmp_path / "trials_to_train.txt").write_text("user01_led.aedat\n")
    (tmp_path / "trials_to_test.txt").write_text("user02_led.aedat\n")
    data = open_dataset("dvs128", tmp_path, time_steps=3, size=(32, 32), cache_gb=0)
    check(data, [tmp_path / "user02_led.aedat"])


WITHOUT_TORCH = """
import sys
class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "lightning_fabric", "kornia", "sklearn", "matplotlib"):
            raise ImportError(f"{name} was asked for")
sys.meta_path.insert(0, Nothing())
import spikformer.card
from spikformer.data import DamagedFilesError, DataSet, list_datasets, open_dataset, open_for_model, read_sample
data = open_dataset("image_folder", sys.argv[1], size=(8, 8))
print(data.test[0].sum() - read_sample(data.test.source(0), data.preprocessing).sum())
"""


def test_card_and_readers_import_no_torch(tmp_path: Path) -> None:
    (tmp_path / "test" / "ant").mkdir(parents=True)
    Image.new("RGB", (9, 9), (1, 2, 3)).save(tmp_path / "test" / "ant" / "1.png")
    words = [sys.executable, "-c", WITHOUT_TORCH, str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr
