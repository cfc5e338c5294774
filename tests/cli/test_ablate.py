"""`spikformer ablate` as users run it: killed, interrupted, resumed, with cells that diverge and cells that die."""

import contextlib
import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from safetensors import safe_open
from safetensors.torch import save_file
from tests.mistakes import shows

import spikformer as sf
from spikformer.cli import main

pytestmark = pytest.mark.slow

COMMAND = Path(sys.executable).with_name("spikformer")
SMALL = ("--model.depth", 1, "--model.embed-dim", 16, "--epochs", 4)

Story = tuple[Path, dict[str, str]]


def call(*words: object, code: int = 0) -> tuple[str, str]:
    """The command in this process, for where it has little to do; what it prints, and what it says of mistakes."""
    with contextlib.redirect_stdout(io.StringIO()) as output, contextlib.redirect_stderr(io.StringIO()) as errors:
        assert main(list(map(str, words))) == code
    return output.getvalue(), errors.getvalue()


def wait_for(path: Path, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 120
    while not path.exists():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.01)


def process_of(folder: Path) -> int:
    """The one that trains a cell, as its log says."""
    return int((folder / "log.txt").read_text().splitlines()[0].removeprefix("process "))


def poison(state: Path) -> None:
    with safe_open(state, "pt") as file:
        metadata, tensors = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}
    tensors["model.head.weight"].fill_(float("nan"))
    save_file(tensors, state, metadata)


def rows(folder: Path) -> list[dict[str, str]]:
    return list(csv.DictReader((folder / "ablation.csv").read_text().splitlines()))


def words_of(folder: Path) -> list[object]:
    """Both controls, two seeds, from weights that are there."""
    weights = folder.with_name("weights.safetensors")
    chosen = ("--only", "none", "random", "--seeds", 0, 1, "--from", weights, "--save-minutes", 0)
    return ["ablate", "attention", *SMALL, *chosen, "--output", folder]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """An ablation that is killed, interrupted and damaged before it is done, and what was said on the way."""
    started: list[subprocess.Popen[str]] = []
    try:
        yield tell(tmp_path_factory.mktemp("ablation") / "controls", started)
    finally:
        for process in started:
            process.kill()
            process.communicate()


def tell(folder: Path, started: list[subprocess.Popen[str]]) -> Story:
    """All of it; the processes it starts are put into a list, for whoever must end them."""

    def start(*words: object) -> subprocess.Popen[str]:
        command = [COMMAND, *map(str, words)]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        return started[-1]

    model = sf.create_model("spikformer_tiny_digits", depth=1, embed_dim=16)
    sf.save(model, folder.with_name("weights.safetensors"))
    words = words_of(folder)
    none, random = folder / "none", folder / "random"

    process = start(*words)
    wait_for(none / "seed_0" / "state.safetensors", process)
    begun = (none / "seed_0" / "recipe.json").stat().st_mtime_ns
    process.kill()
    process.communicate()

    process = start(*words)  # at once, while the cell of the killed command still saves
    wait_for(none / "seed_0" / "cell.json", process)
    assert (none / "seed_0" / "recipe.json").stat().st_mtime_ns == begun, "it went on, and did not start again"
    assert (none / "seed_0" / "metrics.csv").read_text().count("\n") == 5
    assert "tensors were loaded" not in (none / "seed_0" / "log.txt").read_text(), "its first process did not finish it"
    _, rejected = call(*words, code=2)
    wait_for(random / "seed_0" / "state.safetensors", process)
    loaded = (random / "seed_0" / "log.txt").read_text()
    process.send_signal(signal.SIGINT)
    output, stopped = process.communicate(timeout=60)
    assert (process.returncode, output) == (1, ""), stopped
    early = [(row["variant"], row["seed"]) for row in rows(folder)]

    assert not (random / "seed_0" / "cell.json").exists()
    assert "Stopped in epoch" in (random / "seed_0" / "log.txt").read_text()
    poison(random / "seed_0" / "state.safetensors")
    process = start(*words, "--jobs", 2)
    wait_for(none / "seed_1" / "log.txt", process)
    assert not (random / "seed_0" / "cell.json").exists(), "two are at work"
    wait_for(none / "seed_1" / "state.safetensors", process)
    os.kill(process_of(none / "seed_1"), signal.SIGKILL)
    table, failed = process.communicate(timeout=120)
    assert process.returncode == 1, failed
    said = {"rejected": rejected, "loaded": loaded, "stopped": stopped, "early": str(early)}
    said |= {"table": table, "failed": failed, "json": call(*words, "--json")[0]}
    return folder, said


def test_a_second_command_is_rejected_while_one_works(story: Story) -> None:
    folder, said = story
    assert str(folder) in said["rejected"]


def test_ctrl_c_says_how_to_go_on_and_keeps_what_is_done(story: Story) -> None:
    _, said = story
    assert "Stopped with 3 cells to go" in said["stopped"]
    assert "Traceback" not in said["stopped"]
    assert said["early"] == "[('none', '0')]"


def test_cells_start_from_the_weights_given(story: Story) -> None:
    _, said = story
    assert "weights.safetensors: " in said["loaded"]
    assert "tensors were loaded" in said["loaded"]


def test_a_cell_that_diverges_is_marked_and_one_that_dies_is_reported(story: Story) -> None:
    folder, said = story
    lines = {line.split()[0]: line for line in said["table"].splitlines() if line.startswith(("none", "random"))}
    assert lines["random"].split()[1:4] == ["1,", "1", "✗"], said["table"]
    assert lines["none"].split()[1:4] == ["1,", "1", "failed"], said["table"]
    assert "random, seed 0: did not converge (" in said["failed"]
    assert "none, seed 1 failed: its process was killed" in said["failed"]
    assert "random, seed 1: " in said["failed"], "the others continue"
    assert str(folder / "none" / "seed_1") in said["failed"].replace("\n", "")


def test_in_the_end_everything_is_there(story: Story) -> None:
    folder, said = story
    found = json.loads(said["json"])
    assert (found["grid"], found["recipe"], found["split"]) == ("attention", "spikformer_tiny_digits", "test")
    none, random = found["variants"]
    assert (none["name"], random["name"]) == ("none", "random")
    assert [cell["outcome"] for cell in none["cells"]] == ["finished", "finished"]
    assert [cell["outcome"] for cell in random["cells"]] == ["diverged", "finished"]
    values = [cell["figures"]["last_test_accuracy"] for cell in none["cells"]]
    assert none["last_accuracy"]["values"] == values
    assert none["last_accuracy"]["mean"] == pytest.approx(sum(values) / 2)
    assert none["last_accuracy"]["std"] == pytest.approx(abs(values[0] - values[1]) / 2**0.5)
    assert random["last_accuracy"]["std"] is None
    assert [row["outcome"] for row in rows(folder)] == ["finished", "finished", "diverged", "finished"]
    assert (folder / "ablation.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (folder / "ablation.svg").read_text()


def test_costs_are_those_of_the_network(story: Story) -> None:
    none, random = json.loads(story[1]["json"])["variants"]
    # Q and K: 16×16 weights, a bias and the two of a norm each.
    assert random["parameters"]["mean"] - none["parameters"]["mean"] == 2 * (16 * 16 + 3 * 16)
    assert none["attention_operations"]["mean"] == none["attention_energy_mj"]["mean"] == 0
    # 0.9 pJ for an operation, but 4.6 pJ for the first convolution's: 8×8 pixels, 3×3×1 by 8 channels, 4 steps.
    first = 4 * 8 * 8 * 9 * 8
    for line in (none, random):
        energy_pj = 4.6 * first + 0.9 * (line["operations"]["mean"] - first)
        assert line["energy_mj"]["mean"] == pytest.approx(energy_pj / 1e9)


def test_what_was_measured_is_what_evaluate_measures(story: Story) -> None:
    cell = story[0] / "none" / "seed_0"
    figures = json.loads((cell / "cell.json").read_text())["figures"]
    for which in ("last", "best"):
        answer, _ = call("evaluate", cell / f"{which}.safetensors", "--json")
        assert figures[f"{which}_test_accuracy"] == json.loads(answer)["top1"]


def test_finished_cells_are_not_run_again_and_seeds_add_up(story: Story) -> None:
    folder, said = story

    def times() -> dict[Path, int]:
        cells = [folder / name / f"seed_{seed}" for name in ("none", "random") for seed in (0, 1)]
        return {path: path.stat().st_mtime_ns for cell in cells for path in (cell / "cell.json", cell / "log.txt")}

    before = times()
    fewer = [*words_of(folder), "--only", "none", "--seeds", 1, "--json"]
    assert call(*fewer)[0] == said["json"], "one seed of one variant was asked for, and all that is there counts"
    assert times() == before


def test_other_settings_are_rejected(story: Story) -> None:
    folder, _ = story
    _, mistake = call(*words_of(folder), "--epochs", 5, code=2)
    assert shows(mistake, folder, "epochs 4")
    other = folder / "none" / "seed_0" / "best.safetensors"
    _, mistake = call(*words_of(folder), "--from", other, code=2)
    assert shows(mistake, folder, "from", folder.with_name("weights.safetensors"), other)
    _, mistake = call("ablate", "neuron", *SMALL, "--output", folder, code=2)
    assert shows(mistake, folder, "grid", "'attention'", "'neuron'")


def test_mistakes_name_what_is_wrong_and_leave_nothing(tmp_path: Path) -> None:
    output = tmp_path / "output"

    def mistake(*words: object) -> str:
        _, said = call("ablate", *words, code=2)
        assert not output.exists()
        return said

    here = ("--output", output)
    assert shows(mistake(), "attention")
    assert shows(mistake("atention"), "'atention'", "'attention'")
    assert shows(mistake("attention", "--only", "sa", *here), "'sa'", "'ssa'")
    assert shows(mistake("attention", "--seed", 3, *here), "--seeds 3")
    assert shows(mistake("attention", *here, "--seeds"), "seeds")
    assert shows(mistake("size", "--epochs", 1, "spikformer_tiny_digits_dvs", *here), "GRID RECIPE")
    assert shows(mistake("time_steps", "--model.time-steps", 2, *here), "model.time_steps")
    assert shows(mistake("size", "spikformer_4_384_cifar", *here), "'spikformer_4_384_cifar10'")
    assert shows(mistake("size", "--jobs", 0, *here), "jobs", 1, 0)
    nowhere = tmp_path / "nowhere"
    assert shows(mistake("size", "spikformer_4_384_cifar10", "--data", nowhere, *here), nowhere)
    assert shows(mistake("size", "--from", nowhere, *here), nowhere)
    assert shows(mistake("neuron", "spikformer_8_384_cifar10_transfer", *here), "--from")


def test_what_every_cell_would_complain_of_is_said_once(tmp_path: Path) -> None:
    _, mistake = call("ablate", "size", "--validation-share", 0.2, "--output", tmp_path, code=2)
    assert shows(mistake, "digits", "validation_share")
    assert mistake.count("\n") == 1


def test_architectures_are_trained_measured_and_drawn(tmp_path: Path) -> None:
    """One that the engine runs and one that it does not, at the same small size."""
    words = ("--only", "maxformer", "max_resnet", "--seeds", 0, "--max-samples", 128, "--output", tmp_path, *SMALL[:4])
    output, _ = call("ablate", "architecture", *words, "--epochs", 1, "--json")
    maxformer, resnet = json.loads(output)["variants"]
    assert (maxformer["name"], resnet["name"]) == ("maxformer", "max_resnet")
    for line in (maxformer, resnet):
        assert line["model"]["image_size"] == [8, 8]
        assert 0 < line["last_accuracy"]["mean"] < 1
        assert 0 < line["entrywise_energy_mj"]["mean"] <= line["strict_energy_mj"]["mean"]
    assert maxformer["engine_ms"]["mean"] > 0
    assert resnet["engine_ms"] is None
    assert (tmp_path / "ablation.png").read_bytes().startswith(b"\x89PNG")
    trained = sf.load(tmp_path / "maxformer" / "seed_0" / "last.safetensors")
    assert (trained.card.architecture, trained.card.recipe) == ("maxformer", "spikformer_tiny_digits")
    _, mistake = call("ablate", "architecture", "--model.pool-after", "norm", "--output", tmp_path / "other", code=2)
    assert "pool_after" in mistake


def test_help_says_what_each_grid_is() -> None:
    text = " ".join(call("ablate", "--help")[0].split())
    for words in (
        "none (no mixing of tokens)",
        "random (Q and K never learn)",
        "1, 2, 4, 6 as in Tab. 5",
        "lif, if, plif",
    ):
        assert words in text
