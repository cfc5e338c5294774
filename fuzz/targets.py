"""Every reader of a file that someone else may have made: how to call it on bytes, and small valid files to start from.

A reader may return, or raise what it documents: ValueError or OSError. Anything else is a find, as is a case that takes
more memory or time than the driver allows.
"""

from __future__ import annotations

import gzip
import io
import json
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from PIL import Image
from tests.data.conftest import FORMATS, aedat2
from tests.data.images.conftest import CIFAR10_NAMES, labels, pixels, python2_value
from tests.engine.drawn import program_of_every_op

import spikformer as sf
from spikformer.analysis.golden import GOLDEN_FOLDER as GOLDEN
from spikformer.card import ModelCard
from spikformer.config import ModelConfig
from spikformer.data.events.formats import read_recording
from spikformer.data.events.samples import FrameCache, _encode
from spikformer.data.events.sets import read_gestures
from spikformer.data.images.cifar import read_cifar
from spikformer.data.images.mnist import read_idx
from spikformer.data.images.picture import read_picture
from spikformer.data.unpacking import unpack
from spikformer.engine.file import write_compiled
from spikformer.engine.program import Compiled
from spikformer.preprocessing import Preprocessing
from spikformer.runs.folder import Run
from spikformer.sampling import to_frames
from spikformer.training.recipe import Recipe
from spikformer.training.state import Progress, load_state, save_state

ROWS = [(5, 0, 0, 1), (7, 33, 0, 0), (7, 0, 33, 1), (19, 5, 9, 0), (4000, 33, 33, 1), (70000, 20, 30, 0)]
CONFIG = ModelConfig(
    image_size=8, in_channels=1, num_classes=2, embed_dim=8, depth=1, num_heads=2, mlp_ratio=1, time_steps=1
)  # of some kilobytes


CHECKPOINT = GOLDEN / "official_timm_checkpoint.pth.tar"


class Target(NamedTuple):
    """`read` gets bytes and an empty folder to put them into."""

    read: Callable[[bytes, Path], object]
    seeds: Callable[[Path], Iterator[bytes]]


def _file(read: Callable[[Path], object], name: str) -> Callable[[bytes, Path], object]:
    def write_and_read(content: bytes, folder: Path) -> object:
        (folder / name).write_bytes(content)
        return read(folder / name)

    return write_and_read


def _frames(path: Path) -> None:
    recording = read_recording(path)
    for slicing in ("count", "time"):
        frames = to_frames(recording, 3, size=(8, 8), slicing=slicing)
        assert frames.sum() == len(recording.x), "events got lost"


def _recordings(*names: str) -> Target:
    return Target(
        _file(_frames, f"sample{FORMATS[names[0]].ending}"),
        lambda _: iter([FORMATS[name].write(ROWS) for name in names]),
    )


def _aedat2_seeds(_: Path) -> Iterator[bytes]:
    yield from (FORMATS[name].write(ROWS) for name in ("dvs128", "davis240"))
    yield aedat2([(1, 2**32 - 1), (2, 3)], None)


# Checksums would stop nearly every mutation of a .zip, so columns of it and the pickle in it have targets of their own;
# so has what the checksum of cached frames covers.


def _read_npz_array(content: bytes, folder: Path) -> None:
    with zipfile.ZipFile(folder / "sample.npz", "w") as archive:
        for name in "txyp":
            archive.writestr(f"{name}.npy", content)
    _frames(folder / "sample.npz")


def _array_seeds(_: Path) -> Iterator[bytes]:
    for values in (np.array([1, 1]), np.array([0, 1], np.uint64), np.array([0, 1], bool), np.array([0.0, 1.0])):
        file = io.BytesIO()
        np.save(file, values)
        yield file.getvalue()


@cache
def _checkpoint_members() -> dict[str, bytes]:
    with zipfile.ZipFile(CHECKPOINT) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _pickle_of(content: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("data.pkl"))
        return archive.read(name)


def _read_checkpoint_pickle(content: bytes, folder: Path) -> None:
    with zipfile.ZipFile(folder / "weights.pth", "w") as archive:
        for name, stored in _checkpoint_members().items():
            archive.writestr(name, content if name.endswith("data.pkl") else stored)
    sf.from_official(folder / "weights.pth", num_heads=4)


def _small_checkpoints(_: Path) -> Iterator[bytes]:
    weights = {"block.0.mlp.fc1_linear.weight": torch.zeros(4, 4), "pos_embed": torch.zeros(1, 4, 2).half()}
    parameter = torch.nn.Parameter(torch.ones(3).double())
    for content, is_zip in (
        (weights, True),
        ({"state_dict": weights, "epoch": 3, "metric": 0.5, "optimizer": {"state": {0: {"step": 1}}}}, True),
        ({"model": {"head.bias": parameter, "view": torch.zeros(4, 4).T[1:]}, "big": 1 << 70}, True),
        (weights, False),
    ):
        file = io.BytesIO()
        torch.save(content, file, _use_new_zipfile_serialization=is_zip)
        yield file.getvalue()


def _checkpoint_seeds(folder: Path) -> Iterator[bytes]:
    yield from _small_checkpoints(folder)
    yield CHECKPOINT.read_bytes()


def _pickle_seeds(folder: Path) -> Iterator[bytes]:
    yield from (_pickle_of(content) for content in _checkpoint_seeds(folder) if content.startswith(b"PK"))


def _read_cached(content: bytes, folder: Path) -> None:
    cache = FrameCache(folder, 10**6)
    cache._path("key").write_bytes(b"spikfrm1" + zlib.crc32(content).to_bytes(4, "little") + content)
    frames = cache.get("key")
    assert frames is None or (frames.ndim == 4 and frames.flags.writeable)


def _cached_seeds(_: Path) -> Iterator[bytes]:
    yield from (_encode(np.ones((2, 2, 3, 4), kind))[12:] for kind in (np.uint8, np.int16))


def _batch(seed: int, count: int) -> dict[str, Any]:
    return {"labels": labels(seed, count, 10), "data": pixels(seed, count), "batch_label": "one"}


def _pickled(value: Any) -> bytes:
    return b"\x80\x02" + python2_value(value) + b"."


def _read_cifar(content: bytes, folder: Path) -> None:
    """As one of the training files, and as the names of the classes."""
    whole = {"data_batch_1": _batch(0, 1), "test_batch": _batch(1, 1), "batches.meta": {"label_names": CIFAR10_NAMES}}
    for name, value in whole.items():
        (folder / name).write_bytes(_pickled(value))
    for name in ("data_batch_1", "batches.meta"):
        (folder / name).write_bytes(content)
        _allowed(read_cifar, folder, "cifar10")
        (folder / name).write_bytes(_pickled(whole[name]))


def _read_archive(content: bytes, folder: Path) -> None:
    (folder / "archive").write_bytes(content)
    _allowed(unpack, folder / "archive", folder / "out", (".bin", ".aedat"), 2)
    assert {path.name for path in folder.iterdir()} <= {"archive", "out"}, "something landed outside"
    _allowed(read_cifar, folder / "archive", "cifar10")


def _archive_seeds(_: Path) -> Iterator[bytes]:
    files = {"Train/1/a.bin": b"one", "Train/1/.hidden.bin": b"", "../up.bin": b"two", "data_batch_1": b"three"}
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", method) as archive:
            for name, content in files.items():
                archive.writestr(name, content)
        yield file.getvalue()
    for form in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        file = io.BytesIO()
        with tarfile.open(fileobj=file, mode="w", format=form) as packed:
            for name, content in {**files, "long/" * 25 + "ä.bin": b"x"}.items():
                member = tarfile.TarInfo(name)
                member.size, member.mtime = len(content), 1.5
                packed.addfile(member, io.BytesIO(content))
        yield file.getvalue()
        yield gzip.compress(file.getvalue())


def _idx_seeds(_: Path) -> Iterator[bytes]:
    yield struct.pack(">HBBII", 0, 8, 2, 2, 3) + bytes(6)
    yield struct.pack(">HBBI", 0, 0x0E, 1, 1) + bytes(8)
    yield gzip.compress(struct.pack(">HBBI", 0, 0x0B, 1, 2) + bytes(4))


def _picture_seeds(_: Path) -> Iterator[bytes]:
    for mode, kind in (
        ("RGB", "JPEG"), ("CMYK", "JPEG"), ("RGBA", "PNG"), ("P", "PNG"), ("I;16", "PNG"), ("P", "GIF"), ("1", "TIFF"),
        ("RGB", "BMP"), ("RGB", "WEBP"), ("L", "PPM"),
    ):  # fmt: skip
        file = io.BytesIO()
        Image.new(mode, (5, 3)).save(file, kind)
        yield file.getvalue()


def _weights_seeds(folder: Path) -> Iterator[bytes]:
    model = sf.Spikformer(CONFIG)
    seen = Preprocessing(kind="image", size=(8, 8), channels=1, mean=(0.5,), std=(0.5,))
    model.card = ModelCard(architecture="spikformer", data_set="digits", class_names=("a", "b"), preprocessing=seen)
    sf.save(model, folder / "w.safetensors")
    yield (folder / "w.safetensors").read_bytes()


def _state_seeds(folder: Path) -> Iterator[bytes]:
    model = sf.Spikformer(CONFIG)
    optimiser = torch.optim.AdamW(model.parameters())
    progress = Progress(epoch=1, iteration=3, history=[{"epoch": 1, "train_loss": 2.0}])
    save_state(
        folder / "s.safetensors",
        Recipe(model=CONFIG, data_set="digits").to_dict(),
        progress,
        model,
        optimiser,
        None,
        None,
    )
    yield (folder / "s.safetensors").read_bytes()


def _engine_seeds(folder: Path) -> Iterator[bytes]:
    sf.compile_engine(sf.Spikformer(CONFIG).eval()).save(folder / "e.engine")
    yield (folder / "e.engine").read_bytes()
    write_compiled(Compiled(program_of_every_op()), folder / "every.engine")
    yield (folder / "every.engine").read_bytes()


def _read_run(content: bytes, folder: Path) -> None:
    """As recipe.json and as metrics.csv of a run."""
    (folder / "recipe.json").write_bytes(content)
    (folder / "metrics.csv").write_bytes(content)
    run = Run(folder)
    _allowed(lambda: run.metrics)
    _ = run.recipe


def _run_seeds(_: Path) -> Iterator[bytes]:
    settings = Recipe(model=CONFIG, data_set="digits").to_dict()
    described = {"recipe": "r", "data": None, "class_names": ["a"], "num_train_samples": 3, "launch": "x"}
    yield json.dumps({**described, "settings": settings}).encode()
    yield b"epoch,train_loss\n1,0.5\n2,0.25\n"


def _read_gestures(content: bytes, folder: Path) -> None:
    """As a list of trials, and as a label file."""
    (folder / "a.aedat").touch()
    (folder / "a_labels.csv").write_bytes(content)
    (folder / "trials.txt").write_bytes(content)
    _allowed(read_gestures, folder, "trials.txt")
    (folder / "trials.txt").write_text("a.aedat\n")
    read_gestures(folder, "trials.txt")


def _gesture_seeds(_: Path) -> Iterator[bytes]:
    yield b"class,startTime_usec,endTime_usec\n8,0,100000\n5,1000000,1100000\n"
    yield b"a.aedat\nb.aedat\n"


def _allowed(read: Callable[..., object], *arguments: object) -> None:
    try:
        read(*arguments)
    except (ValueError, OSError) as error:
        check_message(error)


def check_message(error: Exception) -> None:
    """Short, and fit for a terminal."""
    assert str(error).isprintable(), repr(str(error))
    assert len(str(error)) < 1000, str(error)


TARGETS = {
    "weights": Target(_file(sf.load, "w.safetensors"), _weights_seeds),
    "state": Target(_file(load_state, "s.safetensors"), _state_seeds),
    "engine": Target(_file(sf.load_engine, "e.engine"), _engine_seeds),
    "checkpoint": Target(_file(lambda path: sf.from_official(path, num_heads=4), "c.pth"), _checkpoint_seeds),
    "checkpoint_pickle": Target(_read_checkpoint_pickle, _pickle_seeds),
    "aedat2": Target(_file(_frames, "sample.aedat"), _aedat2_seeds),
    "aedat3": _recordings("aedat3"),
    "aedat4": _recordings("aedat4", "aedat4_lz4", "aedat4_zstd"),
    "nmnist": _recordings("nmnist"),
    "dat": _recordings("prophesee"),
    "npy": _recordings("npy"),
    "npz": _recordings("npz", "npz_compressed"),
    "npz_array": Target(_read_npz_array, _array_seeds),
    "gestures": Target(_read_gestures, _gesture_seeds),
    "frames": Target(_read_cached, _cached_seeds),
    "idx": Target(_file(read_idx, "images"), _idx_seeds),
    "cifar": Target(_read_cifar, lambda _: iter([_pickled(_batch(0, 1)), _pickled({"label_names": CIFAR10_NAMES})])),
    "archive": Target(_read_archive, _archive_seeds),
    "picture": Target(_file(read_picture, "picture"), _picture_seeds),
    "run": Target(_read_run, _run_seeds),
}


def run_once(name: str, content: bytes, folder: Path) -> None:
    """One case: anything but a return or a documented exception with a printable message is a find."""
    try:
        TARGETS[name].read(content, folder)
    except (ValueError, OSError) as error:
        check_message(error)
