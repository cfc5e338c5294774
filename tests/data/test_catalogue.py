"""Sets by name: options that mean something, sentences where they do not."""

import subprocess
import sys
from pathlib import Path

import pytest

import spikformer as sf
from spikformer.data import list_datasets, open_dataset, open_for_model, options_of

NAMES = [
    "digits", "digits_dvs", "mnist", "fashion_mnist", "cifar10", "cifar100", "imagenet", "image_folder",
    "cifar10dvs", "dvs128", "n_mnist", "event_folder",
]  # fmt: skip


def test_every_set_of_the_paper_has_a_name() -> None:
    assert list_datasets() == NAMES


def test_wrong_names_are_answered() -> None:
    with pytest.raises(ValueError, match=r"There is no data set 'mnits'; did you mean 'mnist'\?"):
        open_dataset("mnits")
    with pytest.raises(ValueError, match="There is no data set 'qqq'; choose from digits, digits_dvs, mnist"):
        open_dataset("qqq")


@pytest.mark.parametrize("name", NAMES)
def test_an_option_without_meaning_is_refused(name: str, tmp_path: Path) -> None:
    values = {"size": (8, 8), "validation_share": 0.5, "crop_ratio": 0.5, "class_names": ["a"], "time_steps": 3}
    values |= {"slicing": "time", "fit": "crop", "cache_gb": 1.0, "sensor": (9, 9)}
    assert set(options_of(name)) <= set(values)
    for option in set(values) - set(options_of(name)):
        with pytest.raises(ValueError, match=f"{name} has no option {option}; it has size"):
            open_dataset(name, tmp_path, **{option: values[option]})


@pytest.mark.parametrize("name", ["mnist", "fashion_mnist", "cifar10", "cifar100", "cifar10dvs", "dvs128", "n_mnist"])
def test_a_folder_without_the_files_is_answered_with_where_to_get_them(name: str, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=rf"For {name}, get .* from https://.* and put .* into {tmp_path}"):
        open_dataset(name, tmp_path)


@pytest.mark.parametrize("name", ["dvs128", "n_mnist", "imagenet"])
def test_sets_that_no_program_may_fetch_say_where_to_get_them(name: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("SPIKFORMER_CACHE", str(tmp_path / "cache"))
    with pytest.raises(FileNotFoundError, match=rf"{name} cannot be downloaded by a program: get .* from https://"):
        open_dataset(name)


@pytest.mark.parametrize("name", ["image_folder", "event_folder"])
def test_folders_of_the_user_must_be_named(name: str) -> None:
    with pytest.raises(ValueError, match=rf"{name} reads a folder of yours; say which one \(--data\)"):
        open_dataset(name)


def test_embedded_sets_read_no_files(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="digits is embedded and reads no files, got the folder"):
        open_dataset("digits", tmp_path)


def test_wrong_values() -> None:
    with pytest.raises(ValueError, match="cache_gb must be 0 or more, got -1"):
        open_dataset("dvs128", cache_gb=-1)
    for time_steps in (0, 2.5, True):
        with pytest.raises(ValueError, match="time_steps must be a whole number of at least 1, got"):
            open_dataset("event_folder", "somewhere", time_steps=time_steps)
    for size in (64, (8,), (0, 4), (4, 2.5)):
        with pytest.raises(ValueError, match=r"size must be \(height, width\), whole numbers of at least 1, got"):
            open_dataset("image_folder", "somewhere", size=size)
    for ratio in (0, 3, float("nan")):
        with pytest.raises(ValueError, match="crop_ratio must be above 0 and at most 1, got"):
            open_dataset("image_folder", "somewhere", crop_ratio=ratio)
    with pytest.raises(ValueError, match="fit must be resize or crop, got 'stretch'"):
        open_dataset("event_folder", "somewhere", fit="stretch")
    with pytest.raises(ValueError, match="slicing must be count or time, got 'tiem'"):
        open_dataset("event_folder", "somewhere", slicing="tiem")


def test_a_model_gets_its_size_and_time_steps() -> None:
    config = sf.create_model("spikformer_tiny_digits_dvs", time_steps=5, image_size=(24, 24)).config
    data = open_for_model(config, "digits_dvs")
    assert data.train[0].shape == (5, 2, 24, 24)
    assert open_for_model(config, "digits").train[0].shape == (1, 24, 24)


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
