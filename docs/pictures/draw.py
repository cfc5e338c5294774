"""Draw the pictures of docs/data.md, from real photographs (scikit-learn's two) and from its digits.

python docs/pictures/draw.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageDraw
from sklearn.datasets import load_digits, load_sample_images

from spikformer.data import ArraySamples, DataSet
from spikformer.data.augmentation import CIFAR, CIFAR10_DVS, IMAGENET, Augmentation, Augmenter
from spikformer.data.augmentation.operations import apply_operations
from spikformer.data.augmentation.policy import COLOUR, GEOMETRIC
from spikformer.data.events.simulator import EventCamera
from spikformer.data.images.sets import IMAGENET_NORMALISATION as NORMAL
from spikformer.preprocessing import Preprocessing
from spikformer.sampling import evaluation_crop, to_frames
from spikformer.visualise import (
    EVENT_LEGEND,
    Row,
    brightest_count,
    contact_sheet,
    event_tile,
    image_tile,
    save_picture,
)

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


def draw_operations() -> Image.Image:
    """Every operation at six strengths."""
    flower = torch.as_tensor(photographs()[1:2])
    rows = []
    for name in (*GEOMETRIC, *COLOUR):
        batch = flower.repeat(len(STRENGTHS), 1, 1, 1)
        names = np.full(len(STRENGTHS), name)
        fill = torch.tensor([round(255 * value) for value in NORMAL.mean]).view(-1, 1, 1)
        made = apply_operations(batch, names, np.array(STRENGTHS), np.random.default_rng(0), fill=fill)
        rows.append(Row(name, [image_tile(image, 128) for image in made.numpy()]))
    columns = [f"{10 * strength:+.0f}" for strength in STRENGTHS]
    return contact_sheet(rows, title="Operations on images, by magnitude", column_names=columns)


def draw_policies() -> Image.Image:
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
    for name, policy in steps.items():
        tiles = []
        for seed in range(4):
            samples = torch.as_tensor(np.stack([data.train[0], data.train[1]]))
            x, _ = Augmenter(policy, data)(samples, torch.tensor([0, 1]), np.random.default_rng(seed))
            shown = x * torch.tensor(NORMAL.std).view(-1, 1, 1) + torch.tensor(NORMAL.mean).view(-1, 1, 1)
            tiles += [image_tile(image, SIDE) for image in (shown.clamp(0, 1) * 255).byte().numpy()]
        rows.append(Row(name, tiles))
    return contact_sheet(rows, title="Recipes, four batches of two photographs each")


def draw_event_operations() -> Image.Image:
    """One operation a row, the same on all frames."""
    recording = recorded((128, 128), photographs()[1:2])[0]
    frames = torch.as_tensor(to_frames(recording, 6)).float()[None]
    rows = []
    for name, strength in (("identity", 0.0), *((name, 0.9) for name in CIFAR10_DVS.operations[1:])):
        flat, names = frames.flatten(1, 2), np.array([name])
        made = apply_operations(flat, names, np.array([strength]), np.random.default_rng(1))
        rows.append(event_row(name, made.unflatten(1, (6, 2))[0].numpy(), 128))
    rows.append(event_row("flip", frames[0].flip(-1).numpy(), 128))
    names = [f"frame {number}" for number in range(1, 7)]
    title = "Operations on events: the same one on all frames"
    return contact_sheet(rows, title=title, column_names=names, legend=EVENT_LEGEND)


def draw_simulator() -> Image.Image:
    """Digits, the way they move, and what the camera reports in equal times."""
    digits = load_digits().images[:4] / 16
    camera = EventCamera()
    rows = []
    for digit, recording in zip(digits, camera.watch(digits), strict=True):
        frames = to_frames(recording, 6, slicing="time")
        seen = image_tile((digit[None] * 255).astype(np.uint8), SIDE)
        caption = f"{len(recording.time_us)} events"
        rows.append(Row(caption, [seen, saccades(camera), *event_row("", frames).tiles]))
    names = ["image", "path, 4 times", *(f"{50 * n}-{50 * (n + 1)} ms" for n in range(6))]
    return contact_sheet(rows, title="The simulated camera", column_names=names, legend=EVENT_LEGEND)


def draw_simulated_photographs() -> Image.Image:
    """The same camera, larger, before photographs."""
    images = photographs()
    rows = [
        Row(name, [image_tile(image, SIDE), *event_row("", to_frames(recording, 6), SIDE).tiles])
        for name, image, recording in zip(("temple", "flower"), images, recorded((SIDE, SIDE), images), strict=True)
    ]
    names = ["image", *(f"frame {n}" for n in range(1, 7))]
    return contact_sheet(rows, title="Photographs before the camera", column_names=names, legend=EVENT_LEGEND)


def saccades(camera: EventCamera) -> Image.Image:
    """The path of the image, each leg in its own shade, four times as large as on the sensor."""
    tile = Image.new("RGB", (SIDE, SIDE), (20, 22, 26))
    pen = ImageDraw.Draw(tile)
    scale = 4 * SIDE / camera.size[0]
    points = [(SIDE / 2 + right * scale, SIDE / 4 + down * scale) for down, right in camera.path()]
    steps = (len(points) - 1) // 3
    for leg, shade in enumerate(((230, 159, 0), (86, 180, 233), (240, 228, 66))):
        pen.line(points[leg * steps : (leg + 1) * steps + 1], shade, width=6)
    return tile


def event_row(caption: str, frames: np.ndarray, side: int = SIDE) -> Row:
    brightest = brightest_count(frames)
    return Row(caption, [event_tile(frame, side, brightest) for frame in frames])


PICTURES = {
    "augmentation_operations": draw_operations,
    "augmentation_recipes": draw_policies,
    "augmentation_events": draw_event_operations,
    "simulator_digits": draw_simulator,
    "simulator_photographs": draw_simulated_photographs,
}


def main() -> None:
    for name, draw in PICTURES.items():
        picture = draw()
        width = min(picture.width, 1100)
        small = picture.resize((width, round(picture.height * width / picture.width)), Image.Resampling.LANCZOS)
        save_picture(small, FOLDER / f"{name}.jpg")
        print(f"wrote docs/pictures/{name}.jpg")


if __name__ == "__main__":
    main()
