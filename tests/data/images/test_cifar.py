"""CIFAR in every form it is published in; what is missing, damaged or forged gets an error message."""

import gzip
import io
import logging
import os
import pickle
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.mistakes import field_error, file_error, mistake

from spikformer.data.images.cifar import Cifar, read_cifar
from spikformer.errors import FileError

pytestmark = pytest.mark.core

FORMS = [(which, version) for which in ("cifar10", "cifar100") for version in ("python", "binary")]
TEST_FILES = {"cifar10": "test_batch", "cifar100": "test"}
FOLDERS = {
    ("cifar10", "python"): "cifar-10-batches-py",
    ("cifar10", "binary"): "cifar-10-batches-bin",
    ("cifar100", "python"): "cifar-100-python",
    ("cifar100", "binary"): "cifar-100-binary",
}
ARCHIVES = {
    (which, version): f"cifar-{which.removeprefix('cifar')}-{version}.tar.gz" for which, version in FORMS
}  # fmt: skip


def expected_split(seeds: range, count: int, num_classes: int) -> tuple[np.ndarray, np.ndarray]:
    images = [np.random.default_rng(seed).integers(0, 256, (count, 3072), np.uint8) for seed in seeds]
    labels = [np.random.default_rng(seed).integers(0, num_classes, count) for seed in seeds]
    return np.concatenate(images).reshape(-1, 3, 32, 32), np.concatenate(labels)


def outcome_of(read: Callable[[], Cifar]) -> Cifar | str:
    """What was read, or the error message; any other exception fails the test."""
    try:
        return read()
    except (ValueError, FileNotFoundError) as error:
        return str(error)


def assert_tiny_cifar(cifar: Cifar, which: str, num_batches: int | None = None) -> None:
    num_classes, batches = (10, 5) if which == "cifar10" else (100, 1)
    for split, (images, labels) in (
        (cifar.train, expected_split(range(num_batches or batches), 3, num_classes)),
        (cifar.test, expected_split(range(batches, batches + 1), 2, num_classes)),
    ):
        np.testing.assert_array_equal(split.images, images)
        np.testing.assert_array_equal(split.labels, labels)
        assert split.images.dtype == np.uint8
        assert split.labels.dtype == np.int64
        assert split.images.flags.writeable
    assert len(cifar.class_names) == num_classes
    assert cifar.class_names[:2] == (("airplane", "automobile") if which == "cifar10" else ("fine_0", "fine_1"))


@pytest.mark.parametrize(("which", "version"), FORMS)
def test_a_folder_is_read(which: str, version: str, tiny_cifar, write_folder) -> None:
    assert_tiny_cifar(read_cifar(write_folder(tiny_cifar(which, version)), which), which)


@pytest.mark.parametrize(("which", "version"), FORMS)
def test_the_archive_itself_is_read_and_nothing_written(
    which: str, version: str, tiny_cifar, write_archive, tmp_path: Path
) -> None:
    path = write_archive(tiny_cifar(which, version) | {"readme.html": b"<html>"})
    assert_tiny_cifar(read_cifar(path, which), which)
    assert_tiny_cifar(read_cifar(str(path), which), which)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(("which", "version"), FORMS)
def test_the_folder_above_is_enough(which: str, version: str, tiny_cifar, write_folder, write_archive) -> None:
    archive = write_archive(tiny_cifar(which, version), ARCHIVES[which, version])
    assert_tiny_cifar(read_cifar(archive.parent, which), which)
    archive.unlink()
    folder = write_folder(tiny_cifar(which, version), FOLDERS[which, version])
    assert_tiny_cifar(read_cifar(folder.parent, which), which)


def test_a_tar_without_gzip_and_without_folder_is_read(tiny_cifar, write_archive) -> None:
    assert_tiny_cifar(
        read_cifar(write_archive(tiny_cifar("cifar10", "python"), "x", folder="", mode="w"), "cifar10"), "cifar10"
    )


@pytest.mark.parametrize("version", ["python", "binary"])
def test_some_batches_are_read(version: str, tiny_cifar, write_folder, caplog) -> None:
    files = {
        name: content for name, content in tiny_cifar("cifar10", version).items() if name[11:12] not in tuple("345")
    }
    with caplog.at_level(logging.WARNING):
        assert_tiny_cifar(read_cifar(write_folder(files), "cifar10"), "cifar10", num_batches=2)
    assert "holds 2 of 5 training batches" in caplog.text


def test_a_whole_set_is_read_without_a_word(tiny_cifar, write_folder, caplog) -> None:
    read_cifar(write_folder(tiny_cifar("cifar10", "python")), "cifar10")
    assert not caplog.text


@pytest.mark.parametrize(("which", "version"), FORMS)
def test_missing_files_are_named(which: str, version: str, tiny_cifar, tmp_path: Path, write_archive) -> None:
    files = tiny_cifar(which, version)
    (tmp_path / "empty").mkdir()
    with mistake(FileNotFoundError, tmp_path / "empty", f"cifar-{which[5:]}-python.tar.gz"):
        read_cifar(tmp_path / "empty", which)
    test = next(name for name in files if name.startswith("test"))
    with mistake(FileError, test, reason="unfit", at=test):
        read_cifar(write_archive({name: files[name] for name in files if name != test}), which)
    archive = write_archive({test: files[test]})
    with mistake(FileNotFoundError, archive):
        read_cifar(archive, which)
    names = next(name for name in files if "meta" in name or "names" in name)
    with mistake(FileError, names, reason="unfit", at=names):
        read_cifar(write_archive({name: files[name] for name in files if name != names}), which)


def test_wrong_arguments(tiny_cifar, write_archive, tmp_path: Path) -> None:
    with field_error("which", "cifar10", "cifar100", "'cifar1000'"):
        read_cifar(tmp_path, "cifar1000")
    with mistake(FileNotFoundError, tmp_path / "none"):
        read_cifar(tmp_path / "none", "cifar10")
    with mistake(FileNotFoundError, "CIFAR-10", "cifar-10-python.tar.gz"):
        read_cifar(write_archive(tiny_cifar("cifar100", "python")), "cifar10")


@pytest.mark.parametrize(
    ("batch", "reason", "at", "shown"),
    [
        ({"labels": [0, 1, 10], "data": np.zeros((3, 3072), np.uint8)}, "damaged", 2, 10),
        ({"labels": [0, 1], "data": np.zeros((3, 3072), np.uint8)}, "damaged", "labels", 3),
        ({"labels": ["cat"] * 3, "data": np.zeros((3, 3072), np.uint8)}, "damaged", "labels", 3),
        ({"fine_labels": [1], "data": np.zeros((1, 3072), np.uint8)}, "damaged", "labels", 1),
        ({"labels": [1], "data": np.zeros((1, 1024), np.uint8)}, "damaged", "data", 3072),
        ({"labels": [1], "data": [0] * 3072}, "damaged", "data", 3072),
        ({"labels": [1]}, "damaged", "data", 3072),
        ([1, 2], "foreign", None, "list"),
    ],
)
def test_a_wrong_batch_is_rejected(batch, reason, at, shown, tiny_cifar, write_folder, python2_pickle) -> None:
    folder = write_folder(tiny_cifar("cifar10", "python") | {"data_batch_3": python2_pickle(batch)})
    with file_error(folder / "data_batch_3", reason, shown, at=at):
        read_cifar(folder, "cifar10")


@pytest.mark.parametrize(
    ("content", "reason", "at", "shown"),
    [
        (bytes(3072), "truncated", None, 3072),
        (b"", "truncated", None, 0),
        (bytes(3073) + b"\x0a" + bytes(3072), "damaged", 1, 10),
    ],
)
def test_wrong_rows_are_rejected(content, reason, at, shown, tiny_cifar, write_folder) -> None:
    folder = write_folder(tiny_cifar("cifar10", "binary") | {"data_batch_2.bin": content})
    with file_error(folder / "data_batch_2.bin", reason, shown, at=at):
        read_cifar(folder, "cifar10")


@pytest.mark.parametrize("names", [["a", "b"], ["a"] * 10, [str(n) for n in range(9)] + [7], "names"])
def test_wrong_class_names_are_rejected(names, tiny_cifar, write_folder, python2_pickle) -> None:
    folder = write_folder(tiny_cifar("cifar10", "python") | {"batches.meta": python2_pickle({"label_names": names})})
    with file_error(folder / "batches.meta", "damaged", 10):
        read_cifar(folder, "cifar10")


@pytest.mark.parametrize("file", ["data_batch_1", "test_batch", "batches.meta"])
def test_code_in_any_file_never_runs(file: str, tiny_cifar, write_archive, tmp_path: Path) -> None:
    marker = tmp_path / "marker"

    class Runs:
        def __reduce__(self) -> object:
            return os.system, (f"touch {marker}",)

    path = write_archive(tiny_cifar("cifar10", "python") | {file: pickle.dumps({"labels": Runs()}, 2)})
    with file_error(path / file, "unsafe", f"{os.system.__module__}.system"):
        read_cifar(path, "cifar10")
    assert not marker.exists()


def test_members_with_paths_that_lead_elsewhere_write_nothing(tiny_cifar, write_archive, tmp_path: Path) -> None:
    evil = {"../../evil": b"x", "/evil": b"x", "../sub/../evil": b"x"}
    path = write_archive(evil | tiny_cifar("cifar10", "python"), folder="")
    assert_tiny_cifar(read_cifar(path, "cifar10"), "cifar10")
    assert [file for folder in (tmp_path, tmp_path.parent) for file in folder.glob("evil*")] == []


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE])
def test_a_link_in_place_of_a_file_is_rejected(kind: bytes, tiny_cifar, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(tiny_cifar("cifar10", "python")["data_batch_1"])
    member = tarfile.TarInfo("cifar/data_batch_1")
    member.type, member.linkname = kind, str(secret)
    with tarfile.open(tmp_path / "link.tar.gz", "w:gz") as archive:
        archive.addfile(member)
    with file_error(tmp_path / "link.tar.gz", "unsafe", at="cifar/data_batch_1"):
        read_cifar(tmp_path / "link.tar.gz", "cifar10")


def test_a_member_twice_and_a_huge_one_are_rejected(tiny_cifar, tmp_path: Path) -> None:
    content = tiny_cifar("cifar10", "python")["data_batch_1"]
    member = tarfile.TarInfo("a/data_batch_1")
    member.size = len(content)
    with tarfile.open(tmp_path / "twice.tar", "w") as archive:
        archive.addfile(member, io.BytesIO(content))
        member.name = "b/data_batch_1"
        archive.addfile(member, io.BytesIO(content))
    with file_error(tmp_path / "twice.tar", "damaged", "b/data_batch_1", at="data_batch_1"):
        read_cifar(tmp_path / "twice.tar", "cifar10")
    member.size = 1 << 33
    (tmp_path / "huge.tar.gz").write_bytes(gzip.compress(member.tobuf() + bytes(2048)))
    with file_error(tmp_path / "huge.tar.gz", "too_large", 8589934592):
        read_cifar(tmp_path / "huge.tar.gz", "cifar10")


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[: len(content) // 2],
        lambda content: b"",
        lambda content: b"garbage" * 300,
        lambda content: content[:1000] + bytes(100) + content[1100:],
        lambda content: gzip.compress(b"not a tar"),
    ],
)
def test_a_damaged_archive_is_rejected(damage, tiny_cifar, write_archive) -> None:
    path = write_archive(tiny_cifar("cifar10", "python"))
    path.write_bytes(damage(path.read_bytes()))
    with mistake(FileError, path=path) as caught:
        read_cifar(path, "cifar10")
    assert caught.value.reason in ("damaged", "truncated")


@given(st.data())
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_mutated_archive_is_rejected_or_read(tiny_cifar, tmp_path: Path, data: st.DataObject) -> None:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for file, content in tiny_cifar("cifar100", "binary").items():
            member = tarfile.TarInfo(file)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
        headers = [0, *(member.offset for member in archive.getmembers())]
    mutated = bytearray(stream.getvalue())
    for _ in range(data.draw(st.integers(1, 4))):
        mutated[data.draw(st.sampled_from(headers)) + data.draw(st.integers(0, 511))] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):  # a right checksum lets the forged header through
        for start in headers:
            block = mutated[start : start + 512]
            block[148:156] = b" " * 8
            mutated[start + 148 : start + 156] = b"%06o\0 " % sum(block)
    path = tmp_path / "mutated.tar"
    path.write_bytes(mutated[: data.draw(st.integers(0, len(mutated)))] if data.draw(st.booleans()) else mutated)
    outcome = outcome_of(lambda: read_cifar(path, "cifar100"))
    assert isinstance(outcome, Cifar) or str(path) in outcome
