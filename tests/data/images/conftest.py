"""Tiny CIFAR files, written as Python 2 wrote the published ones, instruction by instruction."""

import io
import struct
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

CIFAR10_NAMES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
CIFAR100_NAMES = [f"fine_{number}" for number in range(100)]


def python2_value(value: Any) -> bytes:
    if isinstance(value, str):
        return b"U" + bytes([len(value)]) + value.encode()
    if isinstance(value, int):
        return b"M" + struct.pack("<H", value)
    if isinstance(value, list):
        return b"](" + b"".join(map(python2_value, value)) + b"e"
    if isinstance(value, dict):
        return b"}(" + b"".join(python2_value(key) + python2_value(item) for key, item in value.items()) + b"u"
    rows, columns = value.shape
    dtype = b"cnumpy\ndtype\nq\x0aU\x02u1K\x00K\x01\x87Rq\x0b(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    shape = python2_value(rows) + python2_value(columns) + b"\x86"
    content = b"T" + struct.pack("<i", value.size) + value.tobytes()
    made = b"cnumpy.core.multiarray\n_reconstruct\nq\x07cnumpy\nndarray\nq\x08K\x00\x85U\x01b\x87Rq\x09"
    return made + b"(K\x01" + shape + dtype + b"\x89" + content + b"tb"


@pytest.fixture(scope="session")
def python2_pickle() -> Callable[[Any], bytes]:
    return lambda value: b"\x80\x02" + python2_value(value) + b"."


def pixels(seed: int, count: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (count, 3072), np.uint8)


def labels(seed: int, count: int, num_classes: int) -> list[int]:
    return np.random.default_rng(seed).integers(0, num_classes, count).tolist()


@pytest.fixture(scope="session")
def tiny_cifar(python2_pickle) -> Callable[[str, str], dict[str, bytes]]:
    """The files of a tiny set by name: (which, version) in cifar10, cifar100 and python, binary.

    Each training file has 3 images, the test file 2; the file at place k holds pixels(k, n) and labels(k, n).
    """

    def files(which: str, version: str) -> dict[str, bytes]:
        num_classes = 10 if which == "cifar10" else 100
        names = CIFAR10_NAMES if which == "cifar10" else CIFAR100_NAMES
        train = [f"data_batch_{number}" for number in range(1, 6)] if which == "cifar10" else ["train"]
        test = "test_batch" if which == "cifar10" else "test"
        made = {}
        for seed, file in enumerate([*train, test]):
            count = 2 if file == test else 3
            data, label = pixels(seed, count), labels(seed, count, num_classes)
            if version == "binary":
                coarse = np.full((count, 0 if which == "cifar10" else 1), 19, np.uint8)
                rows = np.concatenate([coarse, np.array(label, np.uint8)[:, None], data], axis=1)
                made[f"{file}.bin"] = rows.tobytes()
            elif which == "cifar10":
                batch = {"batch_label": f"batch {seed}", "labels": label, "data": data, "filenames": ["a.png"] * count}
                made[file] = python2_pickle(batch)
            else:
                batch = {"filenames": ["a.png"], "fine_labels": label, "coarse_labels": [19] * count, "data": data}
                made[file] = python2_pickle(batch)
        if version == "binary":
            text = "\n".join(names) + "\n\n"
            made["batches.meta.txt" if which == "cifar10" else "fine_label_names.txt"] = text.encode()
        elif which == "cifar10":
            made["batches.meta"] = python2_pickle({"num_cases_per_batch": 3, "label_names": names, "num_vis": 3072})
        else:
            made["meta"] = python2_pickle({"fine_label_names": names, "coarse_label_names": ["coarse"] * 20})
        return made

    return files


@pytest.fixture
def write_folder(tmp_path: Path) -> Callable[[dict[str, bytes]], Path]:
    def write(files: dict[str, bytes], name: str = "cifar") -> Path:
        (tmp_path / name).mkdir()
        for file, content in files.items():
            (tmp_path / name / file).write_bytes(content)
        return tmp_path / name

    return write


@pytest.fixture
def write_archive(tmp_path: Path) -> Callable[..., Path]:
    def write(files: dict[str, bytes], name: str = "cifar.tar.gz", folder: str = "cifar/", mode: str = "w:gz") -> Path:
        with tarfile.open(tmp_path / name, mode) as archive:
            for file, content in files.items():
                member = tarfile.TarInfo(folder + file)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
        return tmp_path / name

    return write
