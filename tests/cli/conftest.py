"""The command as users run it."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import spikformer as sf
from spikformer.analysis.specimens import specimen
from spikformer.cli import main
from spikformer.data import open_dataset
from spikformer.preprocessing import Preprocessing
from spikformer.presets import get_preset

COMMAND = Path(sys.executable).with_name("spikformer")


@pytest.fixture(scope="session")
def run() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the command with these arguments in a process, and expect an exit code and no traceback."""

    def run(*arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
        words = [COMMAND, *map(str, arguments)]
        result = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)
        assert result.returncode == code, result.stdout + result.stderr
        assert "Traceback" not in result.stderr
        return result

    return run


@pytest.fixture
def run_here(capsys: pytest.CaptureFixture[str]) -> Callable[..., subprocess.CompletedProcess[str]]:
    """The same in this process, which is quicker, and where a warning is an error."""

    def run(*arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
        words = list(map(str, arguments))
        capsys.readouterr()
        returned = main(words)
        said = capsys.readouterr()
        assert returned == code, said.out + said.err
        return subprocess.CompletedProcess(words, returned, said.out, said.err)

    return run


@pytest.fixture(scope="session")
def write_weights() -> Callable[..., Path]:
    """Write weights as train does, of a network that fires in every layer though it has learnt nothing."""
    digits = open_dataset("digits").card("spikformer")
    frames = Preprocessing(kind="events", size=(16, 16), channels=2, time_steps=8, sensor=(16, 16))
    cards = {"digits": digits, "digits_dvs": replace(digits, data_set="digits_dvs", preprocessing=frames)}

    def write(path: Path, model: str = "spikformer_tiny_digits", data: str = "digits", **overrides: object) -> Path:
        config = get_preset(model).config.override(**overrides)
        network = specimen(config, torch.float32)
        size = {} if config.image_size is None else {"size": config.image_size}
        steps = {"time_steps": config.time_steps} if data == "digits_dvs" else {}
        seen = replace(cards[data].known_preprocessing, **size, **steps)
        network.card = replace(cards[data], recipe=model, preprocessing=seen)
        sf.save(network, path)
        return path

    return write


@pytest.fixture
def weights(tmp_path: Path, write_weights: Callable[..., Path]) -> Path:
    """Of a network for digits, alone in their folder."""
    (tmp_path / "run").mkdir()
    return write_weights(tmp_path / "run" / "best.safetensors")


@pytest.fixture
def event_weights(tmp_path: Path, write_weights: Callable[..., Path]) -> Path:
    """Of a network for event cameras, alone in their folder."""
    (tmp_path / "events").mkdir()
    return write_weights(tmp_path / "events" / "best.safetensors", "spikformer_tiny_digits_dvs", "digits_dvs")


@pytest.fixture
def error_message(run_here: Callable[..., subprocess.CompletedProcess[str]]) -> Callable[..., str]:
    """The one line that answers wrong use."""

    def error_message(verb: str, *arguments: object, code: int = 2) -> str:
        said = run_here(verb, *arguments, code=code)
        assert said.stdout == ""
        (line,) = said.stderr.splitlines()
        assert line.startswith(f"spikformer {verb}: ")
        assert line.endswith((".", "?"))
        return line.removeprefix(f"spikformer {verb}: ")

    return error_message
