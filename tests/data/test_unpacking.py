"""Archives unpacked: all or nothing, and nothing outside."""

import errno
import io
import os
import signal
import subprocess
import sys
import tarfile
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.data.test_bombs import tar_header
from tests.mistakes import file_error, mistake

from spikformer.data.unpacking import unpack
from spikformer.errors import FileError
from spikformer.io import umask


def tar(path: Path, files: dict[str, bytes], *others: tarfile.TarInfo) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
        for other in others:
            archive.addfile(other)
    return path


def zipped(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


UNPACK = (
    "import sys; from pathlib import Path; from spikformer.data.unpacking import unpack\n"
    "unpack(Path(sys.argv[1]), Path(sys.argv[2]), ('.bin',))"
)
PACKERS = pytest.mark.parametrize("pack", [tar, zipped])
FILES = {"top/a/1.bin": b"one", "top/b/2.BIN": b"two", "top/readme.txt": b"no"}


@PACKERS
@pytest.mark.parametrize(("kept_parts", "expected"), [(1, {"1.bin", "2.BIN"}), (2, {"a/1.bin", "b/2.BIN"})])
def test_wanted_files_keep_the_end_of_their_paths(pack, kept_parts: int, expected: set[str], tmp_path: Path) -> None:
    folder = unpack(pack(tmp_path / "archive", FILES), tmp_path / "out", (".bin",), kept_parts)
    assert {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()} == expected
    assert folder.stat().st_mode & 0o777 == 0o777 & ~umask()


@PACKERS
def test_a_folder_that_is_there_is_taken_as_it_is(pack, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    assert list(unpack(pack(tmp_path / "archive", FILES), tmp_path / "out", (".bin",)).iterdir()) == []


@PACKERS
@pytest.mark.parametrize(
    "name", ["../../escaped.bin", "/elsewhere/escaped.bin", "..\\..\\escaped.bin", "a/../../escaped.bin"]
)
def test_no_member_lands_outside(pack, name: str, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    folder = unpack(pack(tmp_path / "in" / "archive", {name: b"x"}), tmp_path / "in" / "out", (".bin",), 2)
    found = list(tmp_path.rglob("*escaped.bin"))
    assert len(found) == 1
    assert found[0].is_relative_to(folder)


def test_links_are_left_out(tmp_path: Path) -> None:
    link = tarfile.TarInfo("link.bin")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    folder = unpack(tar(tmp_path / "archive", {"1.bin": b"one"}, link), tmp_path / "out", (".bin",))
    assert [path.name for path in folder.iterdir()] == ["1.bin"]


@PACKERS
def test_damage_leaves_nothing_and_is_reported(pack, tmp_path: Path) -> None:
    archive = pack(tmp_path / "archive", {f"{n}.bin": bytes([n]) * 50_000 for n in range(20)})
    whole = archive.read_bytes()
    for damaged in (whole[: len(whole) // 2], b"", b"garbage", whole[:40] + b"\xff" * 40 + whole[80:]):
        archive.write_bytes(damaged)
        with file_error(tmp_path / "archive"):
            unpack(archive, tmp_path / "out", (".bin",))
        assert [path.name for path in tmp_path.iterdir()] == ["archive"]


@PACKERS
def test_other_archives_are_rejected(pack, tmp_path: Path) -> None:
    with file_error(tmp_path / "archive", "foreign", ".aedat", ".csv"):
        unpack(pack(tmp_path / "archive", FILES), tmp_path / "out", (".aedat", ".csv"))
    with file_error(tmp_path / "twice", at="1.bin"):
        unpack(pack(tmp_path / "twice", {"a/1.bin": b"", "b/1.bin": b""}), tmp_path / "out", (".bin",))
    with mistake(FileNotFoundError, tmp_path / "nothing.zip"):
        unpack(tmp_path / "nothing.zip", tmp_path / "out", (".bin",))
    assert not (tmp_path / "out").exists()


def test_a_kill_leaves_no_folder_under_the_name(tmp_path: Path) -> None:
    coins = np.random.default_rng(0).integers(0, 2, 200_000, np.uint8).tobytes()
    archive = zipped(tmp_path / "archive", {f"{n}.bin": coins for n in range(100)})
    process = subprocess.Popen([sys.executable, "-c", UNPACK, archive, tmp_path / "out"])
    while not list(tmp_path.glob(".out-*/*.bin")):
        assert process.poll() is None
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert not (tmp_path / "out").exists()
    (half,) = tmp_path.glob(".out-*")
    os.utime(half, (0, 0))
    assert len(list(unpack(archive, tmp_path / "out", (".bin",)).iterdir())) == 100
    assert not half.exists(), "what a killed run has left is swept away in time"


def test_two_processes_may_unpack_at_a_time(tmp_path: Path) -> None:
    archive = zipped(tmp_path / "archive", {f"{n}.bin": bytes(300_000) for n in range(50)})  # below 16 MiB
    command = [sys.executable, "-c", UNPACK, archive, tmp_path / "out"]
    processes = [subprocess.Popen(command, stderr=subprocess.PIPE) for _ in range(2)]
    errors = [process.communicate(timeout=60)[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], errors
    assert len(list((tmp_path / "out").iterdir())) == 50
    assert not list(tmp_path.glob(".out-*"))


def test_a_single_wrong_bit_in_a_tar_is_noticed(tmp_path: Path) -> None:
    """The checksum of a gzip is its last word, and tarfile does not read that far."""
    noise = np.random.default_rng(0).bytes(100_000)
    archive = tar(tmp_path / "archive.tar.gz", {"1.bin": noise})
    content = bytearray(archive.read_bytes())
    content[50_000] ^= 1
    archive.write_bytes(content)
    with file_error(archive):
        unpack(archive, tmp_path / "out", (".bin",))
    assert not (tmp_path / "out").exists()


@given(st.binary(max_size=300), st.sampled_from(["", "PK\x03\x04", "\x1f\x8b\x08"]))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_are_rejected_with_a_message(tmp_path: Path, content: bytes, magic: str) -> None:
    archive = tmp_path / "archive"
    archive.write_bytes(magic.encode("latin-1") + content)
    with mistake(FileError, path=archive) as caught:
        unpack(archive, tmp_path / "out", (".bin",))
    assert caught.value.reason in ("damaged", "foreign")
    assert [path.name for path in tmp_path.iterdir()] == ["archive"]


def test_a_place_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    archive = zipped(tmp_path / "archive", FILES)
    with mistake(OSError, archive, os.strerror(errno.ENOTDIR)):
        unpack(archive, archive / "out", (".bin",))


def test_hidden_files_are_left_out(tmp_path: Path) -> None:
    archive = zipped(tmp_path / "archive", {"a/1.bin": b"", "__MACOSX/a/._1.bin": b"", "a/.2.bin": b""})
    assert [path.name for path in unpack(archive, tmp_path / "out", (".bin",)).iterdir()] == ["1.bin"]


@pytest.mark.parametrize("pack", [tar, zipped])
def test_a_member_without_a_name_is_left_out_and_one_that_cannot_be_shown_is_named(pack, tmp_path: Path) -> None:
    archive = pack(tmp_path / "archive", {"?": b"", "1.bin": b"one"})
    if pack is zipped:
        archive.write_bytes(archive.read_bytes().replace(b"?", b"\0"))
    folder = unpack(archive, tmp_path / "out", (".bin",))
    assert [path.name for path in folder.iterdir()] == ["1.bin"]
    with file_error(tmp_path / "archive2", "unsafe") as caught:
        unpack(pack(tmp_path / "archive2", {"a\x1b[31m.bin": b""}), tmp_path / "out2", (".bin",))
    assert str(caught.value).isprintable()


def test_a_damaged_header_does_not_end_a_tar_silently(tmp_path: Path) -> None:
    two = tar_header("1.bin", 0) + tar_header("2.bin", 0).replace(b"2.bin", b"3.bin") + tar_header("4.bin", 0)
    (tmp_path / "archive").write_bytes(two + bytes(1024))
    with file_error(tmp_path / "archive"):
        unpack(tmp_path / "archive", tmp_path / "out", (".bin",))
