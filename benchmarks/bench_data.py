"""How many images and events a second every stage of the data path handles, on files it writes itself.

    python benchmarks/bench_data.py                      about a minute
    python benchmarks/bench_data.py --quick              fewer repeats, smaller files
    python benchmarks/bench_data.py --files A.aedat4 …   time these recordings, too

Each rate is the best of several. Everything but the loader with workers runs in one process on one thread.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import platform
import struct
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from PIL import Image

from spikformer.data import ArraySamples, DataSet, Loader, open_dataset
from spikformer.data.augmentation import CIFAR, CIFAR10_DVS, IMAGENET, Augmenter
from spikformer.data.events.formats import read_recording
from spikformer.data.images import read_picture
from spikformer.data.images.sets import CIFAR_NORMALISATION
from spikformer.preprocessing import Preprocessing
from spikformer.sampling import Recording, evaluation_crop, evaluation_size, to_frames

Stage = tuple[str, str, float]  # what, unit, rate


def best_seconds(function: Callable[[], object], repeats: int) -> float:
    seconds = []
    for _ in range(repeats + 1):  # the first warms up
        started = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - started)
    return min(seconds[1:])


def image_stages(folder: Path, repeats: int) -> Iterator[Stage]:
    """A photograph of 500×375, as most of ImageNet are, and one of 2000×1500."""
    from sklearn.datasets import load_sample_image

    photograph = Image.fromarray(load_sample_image("china.jpg"))
    for width, height in ((500, 375), (2000, 1500)):
        path = folder / f"{width}.jpg"
        photograph.resize((width, height)).save(path, quality=92)
        hint = evaluation_size((224, 224), 0.875)
        whole = best_seconds(partial(read_picture, path), repeats)
        drafted = best_seconds(partial(read_picture, path, hint), repeats)
        size = f"{width}×{height}"
        yield f"JPEG {size}, whole", "images/s", 1 / whole
        yield f"JPEG {size}, draft for 256", "images/s", 1 / drafted
    crop = best_seconds(partial(evaluation_crop, read_picture(folder / "500.jpg"), (224, 224), 0.875), repeats)
    yield "resize and crop 500×375 to 224×224", "images/s", 1 / crop


def batch_stages(repeats: int) -> Iterator[Stage]:
    """From arrays to what a model trains on."""
    random = np.random.default_rng(0)
    images = random.integers(0, 256, (4096, 3, 32, 32), dtype=np.uint8)
    labels = random.integers(0, 10, 4096)
    split = ArraySamples(images, labels, "noise")
    classes = tuple("0123456789")
    mean, std = CIFAR_NORMALISATION
    seen = Preprocessing(kind="image", size=(32, 32), channels=3, mean=mean, std=std)
    small = DataSet("noise", classes, seen, split, None, split, can_mirror=True)
    loader = Loader(small, "train", 128, training=True)
    yield "Loader, arrays 32×32", "images/s", 4096 / best_seconds(lambda: list(loader.epoch(0)), repeats)
    batch, targets = torch.as_tensor(images[:128]), torch.as_tensor(labels[:128])
    yield "scale and normalise 32×32", "images/s", 128 / best_seconds(partial(small.prepare, batch), repeats)
    augment = partial(Augmenter(CIFAR, small), batch, targets)
    yield "augment, CIFAR, 32×32", "images/s", 128 / best_seconds(lambda: augment(np.random.default_rng(0)), repeats)
    large = torch.randint(0, 256, (64, 3, 224, 224), dtype=torch.uint8)
    augment_large = partial(Augmenter(IMAGENET, small), large, targets[:64])
    seconds = best_seconds(lambda: augment_large(np.random.default_rng(0)), repeats)
    yield "augment, ImageNet, 224×224", "images/s", 64 / seconds
    frames = torch.randint(0, 2, (16, 16, 2, 128, 128), dtype=torch.uint8)
    seen = Preprocessing(kind="events", size=(128, 128), channels=2, time_steps=16)
    events = DataSet("noise", classes, seen, None, None, None, can_mirror=True)
    augment_events = partial(Augmenter(CIFAR10_DVS, events), frames, targets[:16])
    seconds = best_seconds(lambda: augment_events(np.random.default_rng(0)), repeats)
    yield "augment, CIFAR10-DVS, 16×128×128", "samples/s", 16 / seconds


def recording(count: int, size: tuple[int, int] = (128, 128)) -> Recording:
    random = np.random.default_rng(0)
    height, width = size
    x, y = (random.integers(0, side, count).astype(np.int16) for side in (width, height))
    return Recording(np.sort(random.integers(0, 1_300_000, count)), x, y, random.random(count) < 0.5, size)


def aedat2(events: Recording) -> bytes:
    address = (127 - events.y.astype(np.uint32)) << 8 | (127 - events.x.astype(np.uint32)) << 1 | ~events.on
    words = np.stack([address & 0xFFFF, events.time_us.astype(np.uint32)], 1).astype(">u4")
    return b"#!AER-DAT2.0\r\n# AEChip: DVS128\r\n" + words.tobytes()


def aedat3(events: Recording) -> bytes:
    data = events.x.astype(np.uint32) << 17 | events.y.astype(np.uint32) << 2 | events.on.astype(np.uint32) << 1 | 1
    words = np.stack([data, events.time_us.astype(np.uint32)], 1).astype("<u4")
    packets = [words[start : start + 4096] for start in range(0, len(words), 4096)]
    header = b"#!AER-DAT3.1\r\n#Format: RAW\r\n#Source 1: DVS128\r\n#!END-HEADER\r\n"
    headers = [struct.pack("<hhiiiiii", 1, 1, 8, 4, 0, len(packet), len(packet), len(packet)) for packet in packets]
    return header + b"".join(head + packet.tobytes() for head, packet in zip(headers, packets, strict=True))


def nmnist(events: Recording) -> bytes:
    time_us = events.time_us
    high = events.on.astype(np.int64) << 7 | time_us >> 16
    columns = (events.x, events.y, high, time_us >> 8 & 255, time_us & 255)
    return np.stack(columns, 1).astype(np.uint8).tobytes()


def prophesee(events: Recording) -> bytes:
    data = events.on.astype(np.uint32) << 28 | events.y.astype(np.uint32) << 14 | events.x.astype(np.uint32)
    words = np.stack([events.time_us.astype(np.uint32), data], 1).astype("<u4")
    return b"% Data file containing CD events\n% Version 2\n% Width 128\n% Height 128\n\x0c\x08" + words.tobytes()


def npy(events: Recording) -> bytes:
    table = np.zeros(len(events.x), [("t", "<i8"), ("x", "<i2"), ("y", "<i2"), ("p", "?")])
    table["t"], table["x"], table["y"], table["p"] = events[:4]
    file = io.BytesIO()
    np.save(file, table)
    return file.getvalue()


def format_stages(folder: Path, repeats: int, count: int, others: list[Path]) -> Iterator[Stage]:
    events = recording(count)
    small = recording(count, (34, 34))
    written = {
        "AEDAT 2.0": ("a.aedat", aedat2(events)),
        "AEDAT 3.1": ("b.aedat", aedat3(events)),
        "N-MNIST .bin": ("c.bin", nmnist(small)),
        "Prophesee .dat": ("d.dat", prophesee(events)),
        ".npy": ("e.npy", npy(events)),
    }
    for name, (file, content) in written.items():
        (folder / file).write_bytes(content)
        assert len(read_recording(folder / file).time_us) == count, name
        yield f"decode {name}", "events/s", count / best_seconds(partial(read_recording, folder / file), repeats)
    for path in others:
        number = len(read_recording(path).time_us)
        yield f"decode {path.name}", "events/s", number / best_seconds(partial(read_recording, path), repeats)
    for slicing in ("count", "time"):
        seconds = best_seconds(partial(to_frames, events, 16, slicing=slicing), repeats)
        yield f"16 frames by {slicing}, 128×128", "events/s", count / seconds


def epoch_stages(folder: Path, repeats: int, num_files: int, count: int) -> Iterator[Stage]:
    """An epoch that decodes, and one that reads what was kept."""
    os.environ["SPIKFORMER_CACHE"] = str(folder / "cache")
    content = aedat2(recording(count))
    for number in range(num_files):
        path = folder / "set" / "train" / str(number % 2) / f"{number}.aedat"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    for workers in (0, 2):
        suffix = f", {workers} workers" if workers else ""
        for gigabytes, what in ((0, "decodes"), (1, "reads what was kept")):
            data = open_dataset("event_folder", folder / "set", validation_share=0, cache_gb=gigabytes)
            loader = Loader(data, "train", 8, training=False, workers=workers)
            seconds = best_seconds(lambda loader=loader: list(loader.epoch(0)), repeats)
            yield f"an epoch that {what}{suffix}", "events/s", num_files * count / seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer repeats, smaller files")
    parser.add_argument("--files", nargs="*", type=Path, default=[], help="recordings to decode besides")
    arguments = parser.parse_args()
    repeats, count, num_files = (1, 100_000, 8) if arguments.quick else (7, 2_000_000, 64)
    torch.set_num_threads(1)
    rates: dict[str, float] = {}
    print(f"one thread, {platform.machine()}, {time.strftime('%Y-%m-%d')}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        stages = (
            image_stages(folder, repeats),
            batch_stages(repeats),
            format_stages(folder, repeats, count, arguments.files),
            epoch_stages(folder, repeats, num_files, min(count, 200_000)),
        )
        for what, unit, rate in (stage for part in stages for stage in part):
            rates[f"{what}, {unit}"] = rate
            shown = f"{rate / 1e6:,.1f} M" if rate > 1e6 else f"{rate:,.0f}"
            print(f"{what:48}{shown:>12} {unit}", flush=True)
    print(json.dumps(rates))


if __name__ == "__main__":
    main()
