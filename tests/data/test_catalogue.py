"""Sets by name: options that mean something, errors where they do not."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.mistakes import field_error, mistake, unknown_name

import spikformer as sf
from spikformer.data import DataOptions, DataSet, list_datasets, open_dataset, open_for_model, options_of
from spikformer.data.catalogue import register_dataset
from spikformer.errors import FieldError
from spikformer.preprocessing import Preprocessing

DOCS = Path(__file__).parents[2] / "docs"

NAMES = [
    "digits", "digits_dvs", "mnist", "fashion_mnist", "cifar10", "cifar100", "imagenet", "image_folder",
    "cifar10dvs", "dvs128", "n_mnist", "event_folder",
]  # fmt: skip


def test_every_set_of_the_paper_has_a_name() -> None:
    assert list_datasets() == NAMES


def test_wrong_names_are_answered() -> None:
    with unknown_name("data set", "mnits", suggestion="mnist"):
        open_dataset("mnits")
    with unknown_name("data set", "qqq", *NAMES):
        open_dataset("qqq")


@pytest.mark.parametrize("name", NAMES)
def test_an_option_without_meaning_is_rejected(name: str, tmp_path: Path) -> None:
    values = {"size": (8, 8), "validation_share": 0.5, "crop_ratio": 0.5, "class_names": ["a"], "time_steps": 3}
    values |= {"slicing": "time", "fit": "crop", "cache_gb": 1.0, "sensor": (9, 9), "resampling": "nearest"}
    assert set(options_of(name)) <= {*values, "mean", "std"}
    for option in set(values) - set(options_of(name)):
        with field_error(option, name, *options_of(name)):
            open_dataset(name, tmp_path, **{option: values[option]})
    with field_error("time_step", "'time_steps'"):
        open_dataset(name, tmp_path, time_step=3)


@pytest.mark.parametrize("name", ["mnist", "fashion_mnist", "cifar10", "cifar100", "cifar10dvs", "dvs128", "n_mnist"])
def test_a_folder_without_the_files_is_answered_with_where_to_get_them(name: str, tmp_path: Path) -> None:
    with mistake(FileNotFoundError, name, "https://", tmp_path):
        open_dataset(name, tmp_path)


@pytest.mark.parametrize("name", ["dvs128", "n_mnist", "imagenet"])
def test_sets_that_no_program_may_fetch_say_where_to_get_them(name: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("SPIKFORMER_CACHE", str(tmp_path / "cache"))
    with mistake(FileNotFoundError, name, "https://"):
        open_dataset(name)


@pytest.mark.parametrize("name", ["image_folder", "event_folder"])
def test_folders_of_the_user_must_be_named(name: str) -> None:
    with field_error("root", name, "--data"):
        open_dataset(name)


def test_embedded_sets_read_no_files(tmp_path: Path) -> None:
    with field_error("root", "digits", tmp_path):
        open_dataset("digits", tmp_path)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(("cache_gb", value) for value in (-1, float("nan"), "10")),
        *(("time_steps", value) for value in (0, 2.5, True)),
        *(("size", value) for value in (64, (8,), (0, 4), (4, 2.5))),
        *(("sensor", value) for value in (64, (8,), (0, 4), (4, 10_000))),
        *(("crop_ratio", value) for value in (0, 3, float("nan"))),
        *(("validation_share", value) for value in (-0.1, 1.0)),
        *(("class_names", value) for value in ("abc", [1], [""])),
        ("fit", "stretch"),
        ("slicing", "tiem"),
        ("resampling", "best"),
        ("mean", (0.5,)),
    ],
)
def test_wrong_values(option: str, value: object) -> None:
    with mistake(FieldError, option):
        DataOptions(**{option: value})


def test_options_reach_samples_and_inputs(tmp_path: Path) -> None:
    (tmp_path / "test" / "ant").mkdir(parents=True)
    Image.fromarray(np.arange(300, dtype=np.uint8).reshape(10, 10, 3)).save(tmp_path / "test" / "ant" / "1.png")
    options = DataOptions(size=(4, 4), crop_ratio=0.5, resampling="nearest", mean=(0.1, 0.2, 0.3), std=(0.5, 0.5, 0.5))
    data = open_dataset("image_folder", tmp_path, options)
    assert data.preprocessing == Preprocessing(
        kind="image",
        size=(4, 4),
        channels=3,
        crop_ratio=0.5,
        resampling="nearest",
        mean=(0.1, 0.2, 0.3),
        std=(0.5, 0.5, 0.5),
    )
    config = sf.ModelConfig(image_size=(4, 4))
    assert open_for_model(config, "image_folder", tmp_path, preprocessing=data.preprocessing).preprocessing == (
        data.preprocessing
    )


def test_a_model_gets_its_size_and_time_steps() -> None:
    config = sf.create_model("spikformer_tiny_digits_dvs", time_steps=5, image_size=(24, 24)).config
    data = open_for_model(config, "digits_dvs")
    assert data.train[0].shape == (5, 2, 24, 24)
    assert open_for_model(config, "digits").train[0].shape == (1, 24, 24)
    seen = replace(data.preprocessing, time_steps=3)  # a card says how its network was trained
    assert open_for_model(config, "digits_dvs", preprocessing=seen).train[0].shape == (3, 2, 24, 24)


def test_opening_a_set_leaves_slow_libraries_alone(tmp_path: Path) -> None:
    (tmp_path / "train" / "cat").mkdir(parents=True)
    (tmp_path / "train" / "cat" / "1.png").touch()
    for name in (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"):
        (tmp_path / f"{name}.bin").write_bytes(bytes(3073))
    (tmp_path / "batches.meta.txt").write_text("\n".join("abcdefghij"))
    code = (
        "import sys; from spikformer.data import open_dataset\n"
        "open_dataset('image_folder', sys.argv[1]); open_dataset('cifar10', sys.argv[1])\n"
        "slow = {'kornia', 'pooch', 'requests', 'tonic', 'matplotlib'} & set(sys.modules)\n"
        "assert not slow, slow"
    )
    result = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_the_documented_example_registers_a_set_that_trains(tmp_path: Path) -> None:
    """In a process of its own, since a registered set stays."""
    text = (DOCS / "data.md").read_text()
    (example,) = [block for block in text.split("```python\n") if "register_dataset" in block.split("```")[0]]
    (tmp_path / "stripes.py").write_text(example.split("```")[0])
    code = (
        "import stripes, torch, spikformer as sf\n"
        "from spikformer.data import Loader, list_datasets, open_dataset, open_for_model\n"
        "assert list_datasets()[-1] == 'stripes'\n"
        "model = sf.create_model('spikformer_tiny_digits', num_classes=2)\n"
        "data = open_for_model(model.config, 'stripes')\n"
        "model.card = data.card('spikformer')\n"
        "for batch in Loader(data, 'train', 8, training=True):\n"
        "    assert model(data.prepare(batch.samples)).shape == (8, 2)\n"
        "assert open_dataset('stripes', size=(16, 16)).train[0].shape == (1, 16, 16)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr


def test_names_and_options_of_a_registered_set_are_checked() -> None:
    def never(root: Path | None, options: DataOptions) -> DataSet:
        raise AssertionError

    with field_error("name", "'digits'"):
        register_dataset("digits", never)
    with field_error("siez", "'size'"):
        register_dataset("mine", never, options=("siez",))
    assert "mine" not in list_datasets()
