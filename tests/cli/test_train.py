"""`spikformer train` as users run it: killed, interrupted, resumed, rejected; and what reads its weights."""

import csv
import json
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from PIL import Image
from safetensors.torch import load_file
from tests.mistakes import field_error, shows

import spikformer as sf
from spikformer.cli.train import parse
from spikformer.config import SpikeDrivenConfig
from spikformer.errors import FieldError

COMMAND = Path(sys.executable).with_name("spikformer")
SHORT = ("--epochs", "2", "--save-minutes", "0")


def start(*words: object) -> subprocess.Popen[str]:
    command = [COMMAND, "train", *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(path: Path, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 60
    while not path.exists():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.01)


def same_weights(one: Path, other: Path) -> bool:
    ours, theirs = load_file(one), load_file(other)
    return ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, run) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "whole"
    run("train", *SHORT, "--output", folder)
    return folder


@pytest.mark.slow
def test_what_a_run_leaves(whole: Path) -> None:
    names = {"recipe.json", "environment.json", "metrics.csv", "tensorboard", "curves.png"}
    names |= {"last.safetensors", "best.safetensors", "state.safetensors", "results.json"}
    assert {path.name for path in whole.iterdir()} == names
    settings = json.loads((whole / "recipe.json").read_text())
    assert settings["recipe"] == "spikformer_tiny_digits"
    assert (settings["settings"]["epochs"], settings["settings"]["seed"]) == (2, 0)
    assert "torch" in json.loads((whole / "environment.json").read_text())
    assert (whole / "metrics.csv").read_text().count("\n") == 3
    assert list((whole / "tensorboard").iterdir())
    with Image.open(whole / "curves.png") as picture:
        assert picture.width > 1000


@pytest.mark.slow
def test_a_run_killed_in_mid_epoch_ends_as_one_that_was_not(whole: Path, tmp_path: Path, run) -> None:
    folder = tmp_path / "killed"
    process = start(*SHORT, "--output", folder)
    wait_for(folder / "state.safetensors", process)  # written after the first of twenty steps
    process.kill()
    process.communicate()
    assert not (folder / "last.safetensors").exists(), "killed before the first epoch ended"
    run("train", "--resume", "--output", folder)
    assert same_weights(folder / "last.safetensors", whole / "last.safetensors")
    assert same_weights(folder / "best.safetensors", whole / "best.safetensors")


KILLED_AFTER_WEIGHTS = """
import os, signal, sys
from spikformer.cli import main
from spikformer.runs.writer import RunWriter

keep = RunWriter.keep
def keep_and_die(*arguments, **options):
    keep(*arguments, **options)
    os.kill(os.getpid(), signal.SIGKILL)
RunWriter.keep = keep_and_die
main(sys.argv[1:])
"""


@pytest.mark.slow
def test_a_run_killed_after_its_first_weights_and_before_their_state_resumes(whole: Path, tmp_path: Path, run) -> None:
    folder = tmp_path / "killed"
    words = ["train", "--epochs", "2", "--output", str(folder)]
    died = subprocess.run([sys.executable, "-c", KILLED_AFTER_WEIGHTS, *words], capture_output=True, check=False)
    assert died.returncode == -signal.SIGKILL
    assert (folder / "last.safetensors").exists()
    run("train", "--resume", "--output", folder)
    assert same_weights(folder / "last.safetensors", whole / "last.safetensors")


@pytest.mark.slow
def test_ctrl_c_saves_and_says_how_to_go_on(whole: Path, tmp_path: Path, run) -> None:
    folder = tmp_path / "stopped"
    process = start("--epochs", "2", "--workers", "1", "--output", folder)
    wait_for(folder / "tensorboard", process)  # made when Ctrl-C is already taken care of
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 1, output + errors
    assert f"--resume --output {folder}" in errors
    assert "Traceback" not in errors
    run("train", "--resume", "--output", folder)
    assert same_weights(folder / "last.safetensors", whole / "last.safetensors")


def test_mistakes_end_with_2_and_one_line(whole: Path, tmp_path: Path, run_here) -> None:
    """Which mistakes there are is tested in tests/runs; here, that each reaches the user."""
    for words in (
        ("--output", whole),
        ("--output", whole, "--resume", "--epochs", 1),
        ("--output", tmp_path, "--resume"),
        ("--epochs", 1, "spikformer_tiny_digits_dvs"),
        ("--model.num-classes", 5, "--output", tmp_path / "a"),
        ("spikformer_4_384_cifar",),
    ):
        (line,) = run_here("train", *words, code=2).stderr.splitlines()
        assert line.startswith("spikformer train: ")
    boxed = run_here("train", "--model.depth", 0, code=2).stderr
    assert shows(boxed, "depth", 0)
    assert not (tmp_path / "a").exists()


@pytest.mark.slow
def test_weights_of_another_size_and_other_classes_are_a_start(whole: Path, tmp_path: Path, run) -> None:
    for label, name in enumerate(("dark", "bright")):
        for split, count in (("train", 20), ("test", 4)):
            (tmp_path / "data" / split / name).mkdir(parents=True)
            for number in range(count):
                level = 200 * label + number
                Image.new("L", (9, 9), level).save(tmp_path / "data" / split / name / f"{number}.png")
    options = ("--data-set", "image_folder", "--data", tmp_path / "data", "--batch-size", 8, "--epochs", 1)
    words = ("train", *options, "--model.image-size", 16, 16, "--from", whole / "best.safetensors")
    result = run(*words, "--output", tmp_path / "run")
    assert shows(result.stderr, 3, "head.bias, head.weight, stem.stages.0.conv.weight")
    same = ("train", *options, "--model.image-size", 16, 16, "--output", tmp_path / "run", "--resume")
    assert "1 of" not in run(*same).stderr, "the very same settings are no change, whatever the data made of the model"
    (tmp_path / "data" / "train" / "dark").rename(tmp_path / "data" / "train" / "grey")
    (tmp_path / "data" / "test" / "dark").rename(tmp_path / "data" / "test" / "grey")
    run(*same, code=2)


def test_evaluate_draws_and_tells(whole: Path, tmp_path: Path, run_here) -> None:
    weights = shutil.copy(whole / "best.safetensors", tmp_path)
    picture = tmp_path / "confusion.png"
    text = run_here("evaluate", weights, "--confusion", picture).stdout
    assert "top-1 " in text
    assert "after each time step: " in text
    with Image.open(picture) as image:
        assert image.width > 500
    found = json.loads(run_here("evaluate", weights, "--split", "validation", "--json").stdout)
    assert found["num_samples"] == sum(map(sum, found["confusion"])) == 143
    assert len(found["by_class"]) == 10
    assert Path(found["figure"]) == tmp_path / "best_validation_confusion.png"
    assert Path(found["figure"]).is_file()
    rows = list(csv.DictReader((whole / "metrics.csv").read_text().splitlines()))
    assert found["top1"] == pytest.approx(max(float(row["validation_accuracy"]) for row in rows))
    message = run_here("evaluate", weights, "--confusion", tmp_path / "a.txt", code=2).stderr
    assert shows(message, tmp_path / "a.txt", ".png")


def test_predict_names_classes(whole: Path, tmp_path: Path, run_here) -> None:
    from spikformer.data import open_dataset

    digits = open_dataset("digits").test
    for index in range(3):
        Image.fromarray(digits[index][0]).save(tmp_path / f"{index}.png")
    (tmp_path / "broken.png").write_bytes(b"")
    files = [tmp_path / f"{index}.png" for index in range(3)]
    answers = json.loads(run_here("predict", whole / "best.safetensors", *files, "--json").stdout)
    assert [answer["file"] for answer in answers] == list(map(str, files))
    assert sum(answer["classes"][0]["class"] == str(digits.labels[index]) for index, answer in enumerate(answers)) >= 2
    assert all(len(answer["classes"]) == 3 for answer in answers)
    assert sum(row["probability"] for row in answers[0]["classes"]) <= 1
    result = run_here("predict", whole / "best.safetensors", files[0], tmp_path / "broken.png", "--top", 1, code=1)
    assert "0.png" in result.stdout.replace("\n", "").replace(" ", "")
    assert shows(result.stderr, tmp_path / "broken.png")
    run_here("predict", whole / "best.safetensors", code=2)


@pytest.mark.parametrize("known", [{}, {"data_set": "digits"}])
def test_weights_that_remember_too_little_are_rejected(known: dict[str, str], tmp_path: Path, run_here) -> None:
    model = sf.create_model("spikformer_tiny_digits")
    model.card = replace(model.card, **known)
    sf.save(model, tmp_path / "weights.safetensors")
    for words in (
        ("evaluate", tmp_path / "weights.safetensors"),
        ("predict", tmp_path / "weights.safetensors", "x.png"),
    ):
        assert shows(run_here(*words, code=2).stderr, tmp_path / "weights.safetensors")


@pytest.mark.parametrize(
    ("words", "size"),
    [
        (["--model.image-size", "16"], (16, 16)),
        (["--model.image-size=16"], (16, 16)),
        (["--model.image-size", "16", "8"], (16, 8)),
        (["--model.image-size", "None"], None),
        ([], (8, 8)),
    ],
)
@pytest.mark.parametrize("more", [[], ["--epochs", "3"]])
def test_an_image_size_is_one_number_or_two(words: list[str], more: list[str], size: tuple | None) -> None:
    options = parse(["spikformer_tiny_digits", *words, *more]).options
    assert options.settings.model.image_size == size
    assert options.settings.epochs == (3 if more else 20)


def test_the_help_and_the_options_are_those_of_the_recipes_own_architecture(capsys) -> None:
    name = "spike_driven_transformer_2_512_cifar10"
    words = ["--model.embed-dim", "256", "--model.no-detach-reset", "--loss", "tet", "--optimiser", "muon"]
    settings = parse([name, *words]).options.settings
    assert type(settings.model) is SpikeDrivenConfig
    assert (settings.model.embed_dim, settings.model.detach_reset) == (256, False)
    assert (settings.loss, settings.optimiser) == ("tet", "muon")
    changes = {"model": {"embed_dim": 256, "detach_reset": False}, "loss": "tet", "optimiser": "muon"}
    assert parse([name, *words]).changes == changes
    with pytest.raises(SystemExit):
        parse([name, "--help"])
    shown = capsys.readouterr().out
    assert "--model.attention" in shown
    assert "--model.pool-after" not in shown


@pytest.mark.parametrize("option", ["--model.pool-after", "--model.pool-after=norm", "--model.no-learnable-scale"])
def test_an_option_of_another_architecture_is_an_error_that_names_this_one(option: str) -> None:
    with pytest.raises(FieldError) as caught:
        parse(["spike_driven_transformer_2_512_cifar10", option, "norm"])
    assert caught.value.field in ("pool_after", "learnable_scale")
    assert "spike_driven_transformer" in str(caught.value)
    assert "attention_v_threshold" in str(caught.value)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--preprocessing.mean", "0.5", "--preprocessing.std", "0.25"], {"mean": (0.5,), "std": (0.25,)}),
        (["--preprocessing.slicing", "time", "--preprocessing.fit", "crop"], {"slicing": "time", "fit": "crop"}),
        (["--preprocessing.sensor", "128", "96"], {"sensor": (128, 96)}),
        (["--preprocessing.crop-ratio", "0.95"], {"crop_ratio": 0.95}),
    ],
)
def test_preprocessing_is_given_by_flags(words: list[str], expected: dict) -> None:
    command = parse(["spikformer_tiny_digits", *words])
    assert command.options.settings.preprocessing.given() == expected
    assert command.changes == {"preprocessing": expected}


@pytest.mark.slow
def test_preprocessing_reaches_every_verb_by_the_card(tmp_path: Path, run_here) -> None:
    """Trained with a normalisation of one's own, a file is predicted as the same sample is evaluated."""
    from spikformer.data import open_dataset

    options = ("--preprocessing.mean", 0.3, "--preprocessing.std", 0.4, "--epochs", 3)
    run_here("train", *options, "--output", tmp_path / "run")
    weights = tmp_path / "run" / "best.safetensors"
    model, data = sf.load(weights), open_dataset("digits", mean=(0.3,), std=(0.4,))
    assert model.card.preprocessing == data.preprocessing
    found = json.loads(run_here("evaluate", tmp_path / "run", "--json").stdout)
    on_card = {result.split: result.value for result in model.card.results}
    assert found["top1"] == on_card["test"]
    sample = data.split("test")[0]
    Image.fromarray(sample[0]).save(tmp_path / "digit.png")
    (answer,) = json.loads(run_here("predict", weights, tmp_path / "digit.png", "--json").stdout)
    with torch.no_grad():
        shares = model(data.prepare(sample[None])).softmax(1)[0]
    assert answer["classes"][0]["probability"] == pytest.approx(shares.max().item(), abs=1e-4)
    run_here("attention", weights, "--files", tmp_path / "digit.png", "--output", tmp_path / "attention.png")
    assert (tmp_path / "attention.png").is_file()


@pytest.mark.parametrize("sides", [["x"], [], ["8", "8", "8"], ["8", "x"]])
def test_a_wrong_image_size_is_an_error(sides: list[str]) -> None:
    with field_error("image_size", "--model.image-size"):
        parse(["spikformer_tiny_digits", "--model.image-size", *sides])
