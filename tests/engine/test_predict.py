"""From a file to a class name, with an engine alone: no torch, no data set."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from tests.mistakes import field_error, file_error

import spikformer as sf
from spikformer.analysis.specimens import specimen
from spikformer.card import ModelCard
from spikformer.engine import Engine
from spikformer.preprocessing import Preprocessing
from spikformer.presets import get_preset
from spikformer.sampling import Recording

CLASSES = tuple("abcdefghij")


def engine_for(preset: str, seen: Preprocessing | None) -> tuple[Engine, torch.nn.Module]:
    model = specimen(get_preset(preset).config, torch.float32)
    model.card = ModelCard(architecture="spikformer", class_names=CLASSES, preprocessing=seen)
    return sf.compile_engine(model, num_threads=1), model


@pytest.fixture(scope="module")
def pictures() -> Engine:
    seen = Preprocessing(kind="image", size=(8, 8), channels=1, crop_ratio=0.75, mean=(0.3,), std=(0.4,))
    return engine_for("spikformer_tiny_digits", seen)[0]


def photograph(path: Path, seed: int = 0) -> Path:
    pixels = np.random.default_rng(seed).integers(0, 256, (21, 30, 3)).astype(np.uint8)
    Image.fromarray(pixels).save(path)
    return path


def test_an_answer_that_is_not_finite_names_no_class(pictures: Engine, tmp_path: Path) -> None:
    """Of weights near the largest float: each is finite, and their sum is not."""
    model = engine_for("spikformer_tiny_digits", pictures.card.preprocessing)[1]
    torch.nn.init.constant_(model.head.weight, 3e38)
    torch.nn.init.constant_(model.head.bias, 3e38)
    with field_error("logits", tmp_path / "a.png"):
        sf.predict(model, photograph(tmp_path / "a.png"))


def test_files_and_arrays_get_the_same_answers(pictures: Engine, tmp_path: Path) -> None:
    paths = [photograph(tmp_path / f"{seed}.png", seed) for seed in range(40)]  # more than one batch
    found = pictures.predict(paths)
    assert [answer.source for answer in found] == list(map(str, paths))
    decoded = [np.asarray(Image.open(path)).transpose(2, 0, 1) for path in paths]
    by_array = pictures.predict(decoded)
    assert [answer.probabilities for answer in by_array] == [answer.probabilities for answer in found]
    assert by_array[7].source == "input 7"
    seen = pictures.card.known_preprocessing
    logits = pictures(seen.to_inputs(np.stack([seen.to_sample(picture) for picture in decoded])))
    assert [answer.class_name for answer in found] == [CLASSES[index] for index in logits.argmax(1)]
    for answer in found:
        assert sum(answer.probabilities) == pytest.approx(1)
        assert answer.top(3)[0] == (answer.class_name, answer.probability)
        assert len(answer.top(99)) == 10
    assert pictures.predict(str(paths[3])) == found[3:4]
    assert pictures.predict([]) == []


def test_recordings() -> None:
    seen = Preprocessing(kind="events", size=(16, 16), channels=2, time_steps=8, sensor=(16, 16))
    engine, model = engine_for("spikformer_tiny_digits_dvs", seen)
    random = np.random.default_rng(0)
    x, y = random.integers(0, 16, (2, 400)).astype(np.int16)
    recording = Recording(np.arange(400), x, y, random.random(400) < 0.5, (16, 16))
    (found,) = engine.predict(recording)
    with torch.no_grad():
        shares = model(torch.from_numpy(seen.to_inputs(seen.to_sample(recording)[None]))).softmax(1)[0]
    assert found.probabilities == pytest.approx(shares.tolist(), abs=1e-4)


def test_a_silent_network_names_no_class(tmp_path: Path) -> None:
    model = sf.create_model("spikformer_tiny_digits", v_threshold=1000.0, attention_v_threshold=1000.0).eval()
    seen = Preprocessing(kind="image", size=(8, 8), channels=1)
    model.card = ModelCard(architecture="spikformer", class_names=CLASSES, preprocessing=seen)
    (found,) = sf.compile_engine(model).predict(photograph(tmp_path / "a.png"))
    assert found.silent
    assert found.class_name is None


def test_what_cannot_be_answered_is_an_error(pictures: Engine, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        pictures.predict(tmp_path / "nowhere.png")
    (tmp_path / "broken.png").write_bytes(b"no picture")
    with file_error(tmp_path / "broken.png", "foreign"):
        pictures.predict(tmp_path / "broken.png")
    with field_error("preprocessing"):
        engine_for("spikformer_tiny_digits", None)[0].predict(tmp_path / "broken.png")
    model = engine_for("spikformer_tiny_digits", pictures.card.preprocessing)[1]
    model.card = replace(model.card, class_names=())
    with field_error("class_names"):
        sf.compile_engine(model).predict(tmp_path / "broken.png")


BLOCKED = """
import sys
class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "lightning_fabric", "kornia", "sklearn", "matplotlib", "scipy", "pooch"):
            raise ImportError(f"{name} was asked for")
sys.meta_path.insert(0, Nothing())
"""
IN_PYTHON = """
import spikformer as sf
(answer,) = sf.load_engine(sys.argv[1]).predict(sys.argv[2])
print(answer.class_name)
"""
IN_A_SHELL = """
import runpy
from pathlib import Path
sys.argv[1:] = ["predict", *sys.argv[1:], "--json"]
runpy.run_path(str(Path(sys.executable).with_name("spikformer")), run_name="__main__")
"""


def test_picture_to_class_name_where_torch_cannot_be_imported(pictures: Engine, tmp_path: Path) -> None:
    engine = pictures
    path = photograph(tmp_path / "a.png")
    model = specimen(get_preset("spikformer_tiny_digits").config, torch.float32)
    model.card = replace(engine.card, data_set="digits")
    sf.compile_engine(model, num_threads=1).save(tmp_path / "net.engine")
    expected = engine.predict(path)[0].class_name
    environment = {name: value for name, value in os.environ.items() if name != "SPIKFORMER_CACHE"}
    environment["XDG_CACHE_HOME"] = str(tmp_path / "cache")

    def run(code: str) -> str:
        words = [sys.executable, "-c", BLOCKED + code, str(tmp_path / "net.engine"), str(path)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False, env=environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert run(IN_PYTHON).strip() == expected
    (answer,) = json.loads(run(IN_A_SHELL))
    assert answer["classes"][0]["class"] == expected
    assert (tmp_path / "cache/spikformer/density_thresholds.json").exists()
