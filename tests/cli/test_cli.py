"""The command as users run it: real processes, exit codes, one line for a mistake."""

import csv
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from PIL import Image
from safetensors import safe_open
from safetensors.torch import save_file
from tests.mistakes import shows

import spikformer as sf
from spikformer.analysis.golden import GOLDEN_FOLDER
from spikformer.cli import VERBS
from spikformer.models import build_model
from spikformer.presets import get_preset


def test_help_lists_every_verb_and_the_version_is_reported(run) -> None:
    text = run("--help").stdout
    assert all(f"  {verb} " in text for verb in VERBS)
    assert run().stdout == text
    assert run("--version").stdout.strip() == f"spikformer {sf.__version__}"


@pytest.mark.parametrize("columns", ["40", "250"])
@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself_with_examples_each_on_its_line(
    verb: str, columns: str, run_here, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    text = run_here(verb, "--help").stdout
    assert f"Example: spikformer {verb}" in text
    assert all(line.startswith("Example: ") for line in text.splitlines() if "Example:" in line)
    assert "--json" in text
    assert "STR" not in text.split("\n\n")[0], "positional arguments have names"


def test_wrong_use_gets_an_error_message(run_here) -> None:
    assert shows(run_here("trian", code=2).stderr, "'trian'", "'train'")
    assert shows(run_here("xyz", code=2).stderr, "'xyz'", "models", "train")
    assert shows(run_here("evaluate", "x", "--batch-size", 0, code=2).stderr, "--batch-size", 1, 0)
    boxed = run_here("train", "--epochs", "abc", code=2).stderr.replace("│", " ")
    assert shows(" ".join(boxed.split()), "'abc'"), "in any width"
    assert shows(run_here("train", "nothing", code=2).stderr, "'nothing'")
    assert shows(run_here("train", "--epochs", 0, code=2).stderr, "epochs", 1, 0)
    assert shows(run_here("models", "nothing*", code=2).stderr, "'nothing*'")
    assert shows(run_here("train", "--seed", -1, code=2).stderr, "seed", 0, -1)
    assert shows(run_here("evaluate", "nowhere.safetensors", code=2).stderr, "nowhere.safetensors")
    run_here("evaluate", code=2)
    run_here("models", "--nonsense", code=2)


def test_models(run_here) -> None:
    rows = json.loads(run_here("models", "*cifar10", "--json").stdout)
    assert {row["name"] for row in rows} == set(sf.list_models("*cifar10"))
    assert next(row for row in rows if row["name"] == "spikformer_4_384_cifar10")["parameters"] == 9_324_730
    assert "spikformer_tiny_digits" in run_here("models").stdout


def test_sizes_are_those_of_the_networks() -> None:
    for name in sf.list_models():
        config = get_preset(name).config
        with torch.device("meta"):
            expected = sum(parameter.numel() for parameter in build_model(config).parameters())
        assert config.num_parameters == expected, name


def test_recipes_are_listed(run_here) -> None:
    from spikformer.training.recipes import list_recipes

    lines = run_here("models", "--recipes").stdout
    assert all(shows(lines, name) for name in list_recipes())


WITHOUT_TORCH = """
import sys
from importlib.abc import MetaPathFinder

class Hidden(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hidden())
from spikformer.cli import main

engine, weights = sys.argv[1:]
assert main(["models"]) == 0
for words in (["bench", engine], ["evaluate", engine], ["verify"], ["train"],
              ["evaluate", weights], ["energy", weights]):
    assert main(words) == 1, words
assert main(["compile", weights]) == 0
assert main(["predict", engine]) == 2
"""


def test_without_torch_sizes_are_listed_and_the_rest_says_what_to_install(weights: Path, run_here) -> None:
    run_here("compile", weights)
    words = [sys.executable, "-c", WITHOUT_TORCH, weights.with_suffix(".engine"), weights]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "spikformer_tiny_digits" in done.stdout
    *lines, last = done.stderr.splitlines()
    assert len(lines) == 6, done.stderr
    assert all("needs PyTorch, which is not installed; `pip install torch`" in line for line in lines)
    assert last.startswith("spikformer predict: ")


def test_folders_in_the_place_of_files(weights: Path, tmp_path: Path, run_here) -> None:
    run = weights.parent
    for verb in ("evaluate", "attention"):
        assert run_here(verb, run, "--json").stdout == run_here(verb, weights, "--json").stdout
    (tmp_path / "photos" / "some").mkdir(parents=True)
    run_here("predict", weights, tmp_path / "photos", code=2)
    for number, name in enumerate(("b.png", "some/a.png")):
        Image.new("L", (8, 8), 99 * number).save(tmp_path / "photos" / name)
    (tmp_path / "photos" / "c.png").write_bytes(b"no picture")
    words = ("predict", run, tmp_path / "photos", "--csv", tmp_path / "out.csv", "--json")
    answers = json.loads(run_here(*words, code=1).stdout)
    assert [Path(answer["file"]).name for answer in answers] == ["b.png", "c.png", "a.png"]
    rows = list(csv.DictReader((tmp_path / "out.csv").read_text().splitlines()))
    assert [bool(row["error"]) for row in rows] == [False, True, False]
    assert rows[0]["class_1"] == answers[0]["classes"][0]["class"]
    assert "steps" not in rows[0]
    words = ("predict", "digits", tmp_path / "photos", "--confidence", "0.5", "--csv", tmp_path / "sure.csv", "--json")
    answers = json.loads(run_here(*words, code=1).stdout)
    rows = list(csv.DictReader((tmp_path / "sure.csv").read_text().splitlines()))
    assert [row["steps"] for row in rows] == [str(answer.get("steps", "")) for answer in answers]
    assert any(row["steps"] for row in rows)


@pytest.mark.slow
def test_verify_holds(run) -> None:
    report = json.loads(run("verify", "--json").stdout)
    assert report["failed"] == 0
    assert report["seconds"] < 120
    assert all(check["holds"] and check["section"] for check in report["checks"])


@pytest.mark.slow
def test_verify_holds_without_the_native_core(run) -> None:
    """As on a machine without a compiler: the import fails, plain PyTorch computes the same."""
    code = "import sys; sys.modules['spikformer._native'] = None; from spikformer.cli import main; sys.exit(main())"
    result = subprocess.run([sys.executable, "-c", code, "verify"], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "no native core: neurons run in plain PyTorch" in " ".join(result.stdout.split())


@pytest.mark.slow
def test_verify_fails_on_a_golden_that_was_tampered_with(tmp_path: Path, run) -> None:
    for path in GOLDEN_FOLDER.glob("*.safetensors"):
        with safe_open(path, "pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}
            metadata = file.metadata()
        if path.stem == "imagenet":
            tensors["eval_logits"] = tensors["eval_logits"] + 1e-6
        save_file(tensors, tmp_path / path.name, metadata)
    text = run("verify", "--golden", tmp_path, code=1).stdout
    assert "1 of " in text
    assert "FAILS" in text


@pytest.mark.slow
def test_verify_without_its_goldens_is_wrong_use(tmp_path: Path, run) -> None:
    assert shows(run("verify", "--golden", tmp_path, code=2).stderr, tmp_path)
    assert shows(run("verify", "--golden", tmp_path / "nowhere", code=2).stderr, tmp_path / "nowhere")
    sf.save(sf.create_model("spikformer_tiny_digits"), tmp_path / "cifar10.safetensors")
    assert shows(run("verify", "--golden", tmp_path, code=2).stderr, tmp_path / "cifar10.safetensors")


@pytest.mark.slow
def test_an_output_that_cannot_be_a_folder(tmp_path: Path, run) -> None:
    file = tmp_path / "file.txt"
    file.write_text("")
    assert shows(run("train", "--output", file, code=2).stderr, file, "--output")
    assert shows(run("train", "--output", file / "run", code=2).stderr, file / "run")


def test_import_official(tmp_path: Path, run) -> None:
    source = GOLDEN_FOLDER / "official_timm_checkpoint.pth.tar"
    output = tmp_path / "ours.safetensors"
    result = run("import", source, "--num-heads", 4, "--output", output)
    assert "Spikformer-2-32: " in result.stdout
    assert "4 heads, T = 4, 10 classes" in result.stdout
    assert shows(result.stderr, 8)
    ours, theirs = sf.load(output).state_dict(), sf.from_official(source, num_heads=4).state_dict()
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    assert (
        json.loads(run("import", source, "--num-heads", 4, "--output", output, "--json").stdout)["config"]["depth"] == 2
    )


def test_import_never_overwrites_its_source(tmp_path: Path, run_here) -> None:
    source = tmp_path / "weights.safetensors"
    golden = GOLDEN_FOLDER / "cifar10.safetensors"
    source.write_bytes(golden.read_bytes())
    for output in (source, tmp_path / "weights.pth"):
        text = run_here("import", source, "--num-heads", 4, "--output", output, code=2).stderr
        assert shows(text, "--output", ".safetensors")
    assert source.read_bytes() == golden.read_bytes()


def test_import_of_what_it_cannot_read(tmp_path: Path, run_here) -> None:
    bad = tmp_path / "bad.pth"
    bad.write_bytes(b"not a checkpoint")
    assert shows(run_here("import", bad, "--num-heads", 4, code=2).stderr, bad)
    assert list(tmp_path.iterdir()) == [bad], "no partial output is left behind"


@pytest.fixture
def colours(tmp_path: Path) -> Path:
    """Ten classes of pictures, four to train on and two to test on each."""
    for label in range(10):
        for split, count in (("train", 4), ("test", 2)):
            folder = tmp_path / "colours" / split / f"colour {label}"
            folder.mkdir(parents=True)
            for number in range(count):
                Image.new("RGB", (20, 16), (25 * label, 10 * number, 99)).save(folder / f"{number}.png")
    return tmp_path / "colours"


def test_import_notes_the_data_so_that_other_verbs_can_use_the_weights(colours: Path, tmp_path: Path, run_here) -> None:
    source, output = GOLDEN_FOLDER / "official_timm_checkpoint.pth.tar", tmp_path / "ours.safetensors"
    words = ("import", source, "--num-heads", 4, "--output", output)
    run_here(*words, "--data-set", "image_folder", "--data", colours)
    card = sf.load(output).card
    assert card.data_set == "image_folder"
    assert card.class_names == tuple(f"colour {label}" for label in range(10))
    assert card.preprocessing.kind == "image"
    ours, theirs = sf.load(output).state_dict(), sf.from_official(source, num_heads=4).state_dict()
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs), "the network is the same"
    measured = json.loads(run_here("evaluate", output, "--data", colours, "--json").stdout)
    assert measured["num_samples"] == 20
    assert json.loads(run_here("energy", output, "--data", colours, "--json").stdout)["num_samples"] == 20
    picture = next(colours.rglob("*.png"))
    answers = json.loads(run_here("predict", output, picture, "--json").stdout)
    assert answers[0]["classes"][0]["class"] in card.class_names
    run_here(*words)
    assert sf.load(output).card.data_set is None, "only what was said is noted"


def test_import_with_data_that_the_weights_do_not_fit(colours: Path, tmp_path: Path, error_message) -> None:
    source, output = GOLDEN_FOLDER / "official_timm_checkpoint.pth.tar", tmp_path / "ours.safetensors"
    words = (source, "--num-heads", 4, "--output", output)

    def message(*more: object) -> str:
        text = error_message("import", *words, *more)
        assert not output.exists()
        return text

    assert shows(message("--data-set", "digits"), 1, 3)
    assert shows(message("--data-set", "cifar"), "'cifar'", "'cifar10'")
    assert shows(message("--data", colours), "--data", "--data-set")
    assert shows(message("--data-set", "image_folder"), "image_folder", "--data")
    nowhere = ("--data-set", "image_folder", "--data", tmp_path / "nowhere")
    assert shows(message(*nowhere), tmp_path / "nowhere")
    for split in ("train", "test"):
        shutil.rmtree(colours / split / "colour 9")
    folder = ("--data-set", "image_folder", "--data", colours)
    assert shows(message(*folder), 9)


def test_import_needs_the_size_that_a_checkpoint_does_not_tell(tmp_path: Path, error_message, run_here) -> None:
    checkpoint = torch.load(GOLDEN_FOLDER / "official_timm_checkpoint.pth.tar", weights_only=False)
    torch.save(checkpoint["state_dict"], tmp_path / "bare.pth")
    words = (tmp_path / "bare.pth", "--num-heads", 4, "--data-set", "digits")
    assert shows(error_message("import", *words), "--image-size")
    assert [path.name for path in tmp_path.iterdir()] == ["bare.pth"]
    run_here("import", tmp_path / "bare.pth", "--num-heads", 4, "--image-size", 32)
    assert sf.load(tmp_path / "bare.spikformer.safetensors").config.image_size == (32, 32)


@pytest.mark.slow
def test_train_then_evaluate(tmp_path: Path, run, run_here) -> None:
    *_, last = run("train", "--epochs", 2, "--output", tmp_path / "run", "--json").stdout.splitlines()
    trained = json.loads(last)
    assert trained["last"]["test_accuracy"] > 0.5
    measured = json.loads(run("evaluate", trained["last"]["weights"], "--json").stdout)
    assert measured["top1"] == trained["last"]["test_accuracy"]
    assert len(measured["after_steps"]) == 4
    energy = json.loads(run_here("energy", trained["best"]["weights"], "--max-samples", 8, "--json").stdout)
    assert 0 < energy["energy_mj"]["paper"]["once"] < energy["energy_mj"]["paper"]["every_step"]
    run_here("figure", "curves", tmp_path / "run", "--output", tmp_path / "curves.svg")
    assert "accuracy" in (tmp_path / "curves.svg").read_text()
    no_files = run("train", "spikformer_2_384_cifar10", "--data", tmp_path, code=2).stderr
    assert shows(no_files, "cifar10", "cifar-10-python.tar.gz", "https://")


def test_evaluate_needs_weights_that_remember_their_data(tmp_path: Path, run_here) -> None:
    sf.save(sf.create_model("spikformer_tiny_digits"), tmp_path / "fresh.safetensors")
    assert shows(run_here("evaluate", tmp_path / "fresh.safetensors", code=2).stderr, tmp_path / "fresh.safetensors")
