"""Draw the pictures of docs/data.md, from real photographs (scikit-learn's two) and from its digits.

python docs/pictures/draw.py
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from matplotlib.figure import Figure
from PIL import Image
from sklearn.datasets import load_digits, load_sample_images

from spikformer.data import ArraySamples, DataSet
from spikformer.data.augmentation import CIFAR, CIFAR10_DVS, IMAGENET, Augmentation, Augmenter
from spikformer.data.augmentation.operations import apply_operations
from spikformer.data.augmentation.policy import COLOUR, GEOMETRIC
from spikformer.data.embedded import EventCamera
from spikformer.data.images.sets import IMAGENET_NORMALISATION as NORMAL
from spikformer.io import write_atomically
from spikformer.preprocessing import Preprocessing
from spikformer.sampling import evaluation_crop, to_frames
from spikformer.visualise.mosaic import EVENT_LEGEND, NO_EVENT_COLOUR, brightest_count, event_tile, image_tile, mosaic

FOLDER = Path(__file__).parent
SIDE = 192
STRENGTHS = (-1.0, -0.6, -0.2, 0.2, 0.6, 1.0)


def photographs() -> np.ndarray:
    """A temple and a flower, uint8 [2, 3, 192, 192]."""
    images = [np.ascontiguousarray(image.transpose(2, 0, 1)) for image in load_sample_images().images]
    return np.stack([evaluation_crop(image, (SIDE, SIDE), 1.0) for image in images])


def image_set(images: np.ndarray) -> DataSet:
    split = ArraySamples(images, np.arange(len(images)), "photographs")
    seen = Preprocessing(kind="image", size=(SIDE, SIDE), channels=3, mean=NORMAL.mean, std=NORMAL.std)
    return DataSet("photographs", ("temple", "flower"), seen, split, None, None, can_mirror=True)


def recorded(size: tuple[int, int], images: np.ndarray) -> list:
    """What a simulated camera sees of photographs."""
    camera = EventCamera(size=size, amplitude=4.0, threshold=0.25)
    return camera.watch(images.mean(1) / 255)


def draw_operations() -> Figure:
    """Every operation at six strengths."""
    flower = torch.as_tensor(photographs()[1:2])
    rows = []
    for name in (*GEOMETRIC, *COLOUR):
        batch = flower.repeat(len(STRENGTHS), 1, 1, 1)
        names = np.full(len(STRENGTHS), name)
        fill = torch.tensor([round(255 * value) for value in NORMAL.mean]).view(-1, 1, 1)
        made = apply_operations(batch, names, np.array(STRENGTHS), np.random.default_rng(0), fill=fill)
        rows.append([image_tile(image, 128) for image in made.numpy()])
    columns = [f"{10 * strength:+.0f}" for strength in STRENGTHS]
    return mosaic(rows, [*GEOMETRIC, *COLOUR], columns, "Operations on images, by magnitude")[0]


def draw_policies() -> Figure:
    """What the recipes make of two photographs, and single steps of them."""
    data = image_set(photographs())
    steps = {
        "CIFAR": CIFAR,
        "ImageNet": IMAGENET,
        "erasing": Augmentation(erase=1.0),
        "mixup": Augmentation(mixup=0.8),
        "cutmix": Augmentation(cutmix=1.0),
    }
    rows = []
    for policy in steps.values():
        tiles = []
        for seed in range(4):
            samples = torch.as_tensor(np.stack([data.train[0], data.train[1]]))
            x, _ = Augmenter(policy, data)(samples, torch.tensor([0, 1]), np.random.default_rng(seed))
            shown = x * torch.tensor(NORMAL.std).view(-1, 1, 1) + torch.tensor(NORMAL.mean).view(-1, 1, 1)
            tiles += [image_tile(image, SIDE) for image in (shown.clamp(0, 1) * 255).byte().numpy()]
        rows.append(tiles)
    return mosaic(rows, list(steps), title="Recipes, four batches of two photographs each")[0]


def draw_event_operations() -> Figure:
    """One operation a row, the same on all frames."""
    recording = recorded((128, 128), photographs()[1:2])[0]
    frames = torch.as_tensor(to_frames(recording, 6)).float()[None]
    rows = {}
    for name, strength in (("identity", 0.0), *((name, 0.9) for name in CIFAR10_DVS.operations[1:])):
        flat, names = frames.flatten(1, 2), np.array([name])
        made = apply_operations(flat, names, np.array([strength]), np.random.default_rng(1))
        rows[name] = event_tiles(made.unflatten(1, (6, 2))[0].numpy(), 128)
    rows["flip"] = event_tiles(frames[0].flip(-1).numpy(), 128)
    columns = [f"frame {number}" for number in range(1, 7)]
    title = "Operations on events: the same one on all frames"
    return mosaic(list(rows.values()), list(rows), columns, title, legend=EVENT_LEGEND)[0]


def draw_simulator() -> Figure:
    """Digits, the way they move, and what the camera reports in equal times."""
    digits = load_digits().images[:4] / 16
    camera = EventCamera()
    rows, captions = [], []
    for digit, recording in zip(digits, camera.watch(digits), strict=True):
        frames = to_frames(recording, 6, slicing="time")
        seen = image_tile((digit[None] * 255).astype(np.uint8), SIDE)
        captions.append(f"{len(recording.time_us)} events")
        rows.append([seen, saccades(camera), *event_tiles(frames)])
    columns = ["image", "path, 4 times", *(f"{50 * n}-{50 * (n + 1)} ms" for n in range(6))]
    return mosaic(rows, captions, columns, "The simulated camera", legend=EVENT_LEGEND)[0]


def draw_simulated_photographs() -> Figure:
    """The same camera, larger, before photographs."""
    images = photographs()
    rows = [
        [image_tile(image, SIDE), *event_tiles(to_frames(recording, 6))]
        for image, recording in zip(images, recorded((SIDE, SIDE), images), strict=True)
    ]
    columns = ["image", *(f"frame {n}" for n in range(1, 7))]
    return mosaic(rows, ["temple", "flower"], columns, "Photographs before the camera", legend=EVENT_LEGEND)[0]


def saccades(camera: EventCamera) -> np.ndarray:
    """The path of the image, each leg in its own shade, four times as large as on the sensor."""
    tile = np.full((SIDE, SIDE, 3), NO_EVENT_COLOUR, np.uint8)
    rows, columns = np.indices((SIDE, SIDE))
    scale = 4 * SIDE / camera.size[0]
    points = [(SIDE / 4 + down * scale, SIDE / 2 + right * scale) for down, right in camera.path()]
    steps = (len(points) - 1) // 3
    for leg, shade in enumerate(((230, 159, 0), (86, 180, 233), (240, 228, 66))):
        for row, column in along(points[leg * steps : (leg + 1) * steps + 1]):
            tile[np.hypot(rows - row, columns - column) <= 3] = shade
    return tile


def along(points: Sequence[tuple[float, float]]) -> np.ndarray:
    """Points [n, 2] close together on straight lines between these."""
    places = np.linspace(0, len(points) - 1, 400)
    return np.stack([np.interp(places, range(len(points)), axis) for axis in np.transpose(points)], -1)


def event_tiles(frames: np.ndarray, side: int = SIDE) -> list[np.ndarray]:
    brightest = brightest_count(frames)
    return [event_tile(frame, side, brightest) for frame in frames]


def jpeg(figure: Figure, widest: int = 1100) -> bytes:
    """As wide as a page shows it."""
    drawn, content = io.BytesIO(), io.BytesIO()
    figure.savefig(drawn, format="png", facecolor="white")
    picture = Image.open(drawn).convert("RGB")
    width = min(picture.width, widest)
    small = picture.resize((width, round(picture.height * width / picture.width)), Image.Resampling.LANCZOS)
    small.save(content, format="JPEG", quality=92, subsampling=0)
    return content.getvalue()


PICTURES = {
    "augmentation_operations": draw_operations,
    "augmentation_recipes": draw_policies,
    "augmentation_events": draw_event_operations,
    "simulator_digits": draw_simulator,
    "simulator_photographs": draw_simulated_photographs,
}


def main() -> None:
    for name, draw in PICTURES.items():
        write_atomically(FOLDER / f"{name}.jpg", jpeg(draw()))
        print(f"wrote docs/pictures/{name}.jpg")


if __name__ == "__main__":
    main()
