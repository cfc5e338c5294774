"""Image sets by name, from files as they are published, made small."""

import gzip
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from tests.mistakes import file_error, mistake, shows

from spikformer.data import DamagedFilesError, open_dataset
from spikformer.data.images.picture import read_picture
from spikformer.sampling import evaluation_crop, evaluation_size


def idx(values: np.ndarray) -> bytes:
    return struct.pack(f">HBB{values.ndim}I", 0, 8, values.ndim, *values.shape) + values.astype(np.uint8).tobytes()


def mnist_files(count: int = 40) -> dict[str, bytes]:
    files = {}
    for prefix, number in (("train", count), ("t10k", 10)):
        random = np.random.default_rng(number)
        files[f"{prefix}-images-idx3-ubyte"] = idx(random.integers(0, 256, (number, 28, 28)))
        files[f"{prefix}-labels-idx1-ubyte"] = idx(np.arange(number) % 10)
    return files


def write(folder: Path, files: dict[str, bytes]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def photograph(path: Path, colour: tuple[int, int, int], size: tuple[int, int] = (60, 40)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, colour).save(path)


@pytest.mark.parametrize("name", ["mnist", "fashion_mnist"])
@pytest.mark.parametrize("arrangement", ["plain", "gzipped", "raw below", "dotted"])
def test_mnist_in_every_arrangement(name: str, arrangement: str, tmp_path: Path) -> None:
    files = mnist_files()
    if arrangement == "gzipped":
        files = {f"{file}.gz": gzip.compress(content) for file, content in files.items()}
    if arrangement == "dotted":
        files = {file.replace("-idx", ".idx"): content for file, content in files.items()}
    write(tmp_path / "raw" if arrangement == "raw below" else tmp_path, files)
    data = open_dataset(name, tmp_path, validation_share=0.25)
    assert (data.channels, data.size, data.events, len(data.class_names)) == (1, (28, 28), False, 10)
    assert [len(data.split(split)) for split in ("train", "validation", "test")] == [30, 10, 10]
    expected = np.random.default_rng(10).integers(0, 256, (10, 28, 28))
    assert np.array_equal(data.test[3][0], expected[3])
    assert data.test.labels.tolist() == list(range(10))
    assert data.can_mirror == (name == "fashion_mnist")


def test_mnist_that_is_not_whole(tmp_path: Path) -> None:
    files = mnist_files()
    missing = {file: content for file, content in files.items() if not file.startswith("t10k-labels")}
    with mistake(FileNotFoundError, "t10k-labels-idx1-ubyte", "t10k-labels-idx1-ubyte.gz"):
        open_dataset("mnist", write(tmp_path / "missing", missing))
    files["t10k-labels-idx1-ubyte"] = idx(np.arange(10) + 1)
    with file_error(tmp_path / "label/t10k-labels-idx1-ubyte", "damaged", 10, at=9):
        open_dataset("mnist", write(tmp_path / "label", files))
    files["t10k-labels-idx1-ubyte"] = idx(np.arange(9))
    with file_error(tmp_path / "fewer/t10k-labels-idx1-ubyte", "unfit", "[9]", 10):
        open_dataset("mnist", write(tmp_path / "fewer", files))
    files["t10k-images-idx3-ubyte"] = idx(np.zeros(10))
    with file_error(tmp_path / "flat/t10k-images-idx3-ubyte", "damaged", "uint8", "[10]"):
        open_dataset("mnist", write(tmp_path / "flat", files))
    with mistake(FileNotFoundError, tmp_path / "nowhere"):
        open_dataset("mnist", tmp_path / "nowhere")


def test_all_damaged_files_are_reported_at_once(tmp_path: Path, tiny_cifar, write_folder) -> None:
    files = mnist_files()
    files = {name: content[:-1] if name.startswith("t10k") else content for name, content in files.items()}
    with pytest.raises(DamagedFilesError) as mnist:
        open_dataset("mnist", write(tmp_path / "mnist", files))
    assert [error.path.name[:11] for error in mnist.value.errors] == ["t10k-images", "t10k-labels"]
    assert shows(str(mnist.value), 1)  # more than the first, which is shown
    cifar = tiny_cifar("cifar10", "binary")
    cifar["data_batch_2.bin"] += b"x"
    cifar["test_batch.bin"] = b"\xff" * len(cifar["test_batch.bin"])
    with pytest.raises(DamagedFilesError) as damage:
        open_dataset("cifar10", write_folder(cifar))
    found = [(error.path.name, error.reason, error.at) for error in damage.value.errors]
    assert found == [("data_batch_2.bin", "truncated", None), ("test_batch.bin", "damaged", 0)]
    assert shows(str(damage.value.errors[0]), 9220)
    assert shows(str(damage.value.errors[1]), 255)


@pytest.mark.parametrize("name", ["cifar10", "cifar100"])
@pytest.mark.parametrize("version", ["python", "binary"])
@pytest.mark.parametrize("packed", [False, True])
def test_cifar(name: str, version: str, packed: bool, tiny_cifar, write_folder, write_archive) -> None:
    root = (write_archive if packed else write_folder)(tiny_cifar(name, version))
    data = open_dataset(name, root, validation_share=0)
    assert (data.channels, data.size, data.can_mirror) == (3, (32, 32), True)
    assert len(data.train) == (15 if name == "cifar10" else 3)
    assert data.validation is None
    assert data.test[1].shape == (3, 32, 32)
    assert data.preprocessing.mean == (0.4914, 0.4822, 0.4465)


def test_images_in_another_size(tiny_cifar, write_folder: Callable[..., Path]) -> None:
    root = write_folder(tiny_cifar("cifar10", "python"))
    data = open_dataset("cifar10", root, size=(48, 64))
    assert data.size == (48, 64)
    assert data.test[0].shape == (3, 48, 64)
    assert data.test[0].dtype == np.uint8
    small = open_dataset("cifar10", root)
    assert np.array_equal(data.test.labels, small.test.labels)
    assert abs(data.test[0].mean() - small.test[0].mean()) < 8  # the same picture, but for two cut-off rims
    assert open_dataset("digits", size=(16, 16)).train[0].shape == (1, 16, 16)


def test_every_set_has_its_own_names_and_normalisation(tmp_path: Path, tiny_cifar, write_folder) -> None:
    write(tmp_path / "mnist", mnist_files())
    mnist, fashion = (open_dataset(name, tmp_path / "mnist") for name in ("mnist", "fashion_mnist"))
    assert (mnist.preprocessing.mean, mnist.preprocessing.std, mnist.class_names[3]) == ((0.1307,), (0.3081,), "3")
    assert (fashion.preprocessing.mean, fashion.preprocessing.std) == ((0.2860,), (0.3530,))
    assert (fashion.class_names[0], fashion.class_names[9]) == ("t-shirt", "ankle boot")
    cifar = open_dataset("cifar10", write_folder(tiny_cifar("cifar10", "binary")))
    assert (cifar.preprocessing.mean, cifar.preprocessing.std) == ((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616))


def test_large_photographs_are_decoded_by_draft(tmp_path: Path) -> None:
    picture = np.random.default_rng(0).integers(0, 256, (1200, 1600, 3)).astype(np.uint8)
    (tmp_path / "test" / "a").mkdir(parents=True)
    Image.fromarray(picture).save(tmp_path / "test" / "a" / "1.jpg")
    data = open_dataset("image_folder", tmp_path, size=(112, 112))
    drafted = read_picture(data.test.source(0), evaluation_size((112, 112), 0.875))
    assert drafted.shape == (3, 150, 200)
    assert np.array_equal(data.test[0], evaluation_crop(drafted, (112, 112), 0.875))


def test_a_link_that_leads_nowhere_is_a_bad_sample(tmp_path: Path) -> None:
    photograph(tmp_path / "test/cat/0.jpg", (0, 0, 0))
    (tmp_path / "test/cat/1.jpg").symlink_to(tmp_path / "gone.jpg")
    data = open_dataset("image_folder", tmp_path)
    with mistake(FileNotFoundError, tmp_path / "test/cat/1.jpg"):
        data.test[1]


def test_a_folder_of_photographs(tmp_path: Path) -> None:
    for number in range(10):
        photograph(tmp_path / f"train/cat/{number}.jpg", (200, 0, 0))
        photograph(tmp_path / f"train/dog/{number}.png", (0, 0, 200), size=(30, 90))
    photograph(tmp_path / "val/dog/0.webp", (0, 200, 0))
    data = open_dataset("imagenet", tmp_path, size=(32, 32))
    assert (data.name, data.class_names, data.channels, data.size) == ("imagenet", ("cat", "dog"), 3, (32, 32))
    assert [len(data.split(split)) for split in ("train", "validation", "test")] == [18, 2, 1]
    assert data.train[0].shape == data.validation[0].shape == data.test[0].shape == (3, 32, 32)
    assert data.test.source(0).endswith("val/dog/0.webp")
    assert data.test.labels.tolist() == [1]
    x = data.prepare(np.stack([data.train[0]]))
    red = torch.tensor([(200 / 255 - 0.485) / 0.229, -0.456 / 0.224, -0.406 / 0.225])
    assert torch.allclose(x.mean((0, 2, 3)), red, atol=0.03)  # JPEG rounds colours


def test_training_sees_the_whole_short_side_and_evaluation_its_middle(tmp_path: Path) -> None:
    picture = np.zeros((64, 64, 3), np.uint8)
    picture[8:56, 8:56] = 255
    for split in ("train", "test"):
        (tmp_path / split / "a").mkdir(parents=True)
        Image.fromarray(picture).save(tmp_path / split / "a" / "1.png")
    data = open_dataset("image_folder", tmp_path, size=(48, 48), crop_ratio=0.75)
    assert np.array_equal(data.test[0], np.full((3, 48, 48), 255))
    assert data.train[0][:, 0].max() < 20
    held = open_dataset("image_folder", tmp_path, size=(48, 48), crop_ratio=0.75, validation_share=0.6)
    assert np.array_equal(held.validation[0], data.test[0])
    assert data.train[0][:, 24, 24].min() == 255
    assert np.array_equal(read_picture(data.test.source(0)), picture.transpose(2, 0, 1))


def test_folders_with_sides_in_their_names_are_not_to_be_mirrored(tmp_path: Path) -> None:
    photograph(tmp_path / "train/turn_left/1.png", (0, 0, 0))
    photograph(tmp_path / "train/turn_right/1.png", (0, 0, 0))
    assert not open_dataset("image_folder", tmp_path).can_mirror


def test_a_part_of_imagenet_is_labelled_by_the_models_classes(tmp_path: Path) -> None:
    photograph(tmp_path / "val/n02/1.png", (0, 0, 0))
    data = open_dataset("imagenet", tmp_path, class_names=["n01", "n02", "n03"])
    assert data.test.labels.tolist() == [1]
    assert data.class_names == ("n01", "n02", "n03")
    assert data.train is None
