"""The command as users run it: real processes, exit codes, one sentence for a mistake."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

import spikformer as sf
from spikformer.analysis.golden import FOLDER
from spikformer.cli import VERBS


def test_help_lists_every_verb_and_the_version_is_told(run) -> None:
    text = run("--help").stdout
    assert all(f"  {verb} " in text for verb in VERBS)
    assert run().stdout == text
    assert run("--version").stdout.strip() == f"spikformer {sf.__version__}"


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself_with_an_example(verb: str, run) -> None:
    text = run(verb, "--help").stdout
    assert f"Example: spikformer {verb}" in text
    assert "--json" in text


def test_wrong_use_is_a_sentence(run) -> None:
    assert "there is no verb 'trian'; choose from models" in run("trian", code=2).stderr
    assert "There is no recipe 'nothing'" in run("train", "nothing", code=2).stderr
    assert "epochs must be a whole number of at least 1, got 0" in run("train", "--epochs", 0, code=2).stderr
    assert "No model matches 'nothing*'" in run("models", "nothing*", code=2).stderr
    assert "seed must be a whole number of at least 0, got -1" in run("train", "--seed", -1, code=2).stderr
    assert "There is no file nowhere.safetensors" in run("evaluate", "nowhere.safetensors", code=2).stderr
    run("evaluate", code=2)
    run("models", "--nonsense", code=2)


def test_models(run) -> None:
    rows = json.loads(run("models", "*cifar10", "--json").stdout)
    assert {row["name"] for row in rows} == set(sf.list_models("*cifar10"))
    assert next(row for row in rows if row["name"] == "spikformer_4_384_cifar10")["parameters"] == 9_324_730
    assert "spikformer_tiny_digits" in run("models").stdout


def test_verify_holds(run) -> None:
    report = json.loads(run("verify", "--json").stdout)
    assert report["failed"] == 0
    assert report["seconds"] < 60
    assert all(check["holds"] for check in report["checks"])


def test_verify_holds_without_the_native_core(run) -> None:
    """As on a machine without a compiler: the import fails, plain PyTorch computes the same."""
    code = "import sys; sys.modules['spikformer._native'] = None; from spikformer.cli import main; sys.exit(main())"
    result = subprocess.run([sys.executable, "-c", code, "verify"], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "no native core: neurons run in plain PyTorch" in " ".join(result.stdout.split())


def test_verify_fails_on_a_golden_that_was_tampered_with(tmp_path: Path, run) -> None:
    for path in FOLDER.glob("*.safetensors"):
        with safe_open(path, "pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}
            metadata = file.metadata()
        if path.stem == "imagenet":
            tensors["eval_logits"] = tensors["eval_logits"] + 1e-6
        save_file(tensors, tmp_path / path.name, metadata)
    text = run("verify", "--golden", tmp_path, code=1).stdout
    assert "1 of " in text
    assert "FAILS" in text


def test_verify_without_its_goldens_is_wrong_use(tmp_path: Path, run) -> None:
    assert "There is no file" in run("verify", "--golden", tmp_path, code=2).stderr
    assert "There is no folder" in run("verify", "--golden", tmp_path / "nowhere", code=2).stderr
    sf.save(sf.create_model("spikformer_tiny_digits"), tmp_path / "cifar10.safetensors")
    assert "is not a golden file" in run("verify", "--golden", tmp_path, code=2).stderr


def test_an_output_that_cannot_be_a_folder(tmp_path: Path, run) -> None:
    file = tmp_path / "file.txt"
    file.write_text("")
    assert (
        f"{file} cannot be made: File exists; choose another --output." in run("train", "--output", file, code=2).stderr
    )
    assert "Not a directory" in run("train", "--output", file / "run", code=2).stderr


def test_import_official(tmp_path: Path, run) -> None:
    source = FOLDER / "official_timm_checkpoint.pth.tar"
    output = tmp_path / "ours.safetensors"
    result = run("import", source, "--num-heads", 4, "--output", output)
    assert "Spikformer-2-32: " in result.stdout
    assert "4 heads, T = 4, 10 classes" in result.stdout
    assert "Dropped 8 tensors" in result.stderr
    x = torch.randn(2, 3, 16, 16)
    assert torch.equal(sf.load(output)(x), sf.from_official(source, num_heads=4)(x))
    assert (
        json.loads(run("import", source, "--num-heads", 4, "--output", output, "--json").stdout)["config"]["depth"] == 2
    )


def test_import_never_overwrites_its_source(tmp_path: Path, run) -> None:
    source = tmp_path / "weights.safetensors"
    golden = FOLDER / "cifar10.safetensors"
    source.write_bytes(golden.read_bytes())
    for output in (source, tmp_path / "weights.pth"):
        text = run("import", source, "--num-heads", 4, "--output", output, code=2).stderr
        assert "--output must be another file than the source and end in .safetensors" in text
    assert source.read_bytes() == golden.read_bytes()


def test_import_refuses_what_it_cannot_read(tmp_path: Path, run) -> None:
    bad = tmp_path / "bad.pth"
    bad.write_bytes(b"not a checkpoint")
    assert "bad.pth" in run("import", bad, "--num-heads", 4, code=2).stderr
    assert list(tmp_path.iterdir()) == [bad], "no partial output is left behind"


def test_train_then_evaluate(tmp_path: Path, run) -> None:
    trained = json.loads(run("train", "--epochs", 2, "--output", tmp_path / "run", "--json").stdout)
    assert trained["last"]["test_accuracy"] > 0.5
    measured = json.loads(run("evaluate", trained["last"]["weights"], "--json").stdout)
    assert measured["top1"] == trained["last"]["test_accuracy"]
    assert len(measured["after_steps"]) == 4
    no_files = run("train", "spikformer_2_384_cifar10", "--data", tmp_path, code=2).stderr
    assert "For cifar10, get cifar-10-python.tar.gz from https://" in no_files


def test_evaluate_needs_weights_that_remember_their_data(tmp_path: Path, run) -> None:
    sf.save(sf.create_model("spikformer_tiny_digits"), tmp_path / "fresh.safetensors")
    assert "does not say which data" in run("evaluate", tmp_path / "fresh.safetensors", code=2).stderr
