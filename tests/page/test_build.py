"""write_page and its verb: one file, whole or not at all, from whatever holds a network."""

import json
import re
import subprocess
import sys
from base64 import b64decode, b64encode
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.mistakes import mistake
from tests.page.harness import compiled_specimen

import spikformer as sf
from spikformer.analysis.specimens import shrunk, specimen
from spikformer.card import ModelCard
from spikformer.cli import main
from spikformer.data import open_dataset
from spikformer.engine.file import read_compiled, write_compiled
from spikformer.engine.lowering import from_weights
from spikformer.engine.program import Builder, Compiled, Program
from spikformer.errors import FieldError, FileError, UnknownNameError
from spikformer.page.about import describe
from spikformer.page.build import render
from spikformer.page.bundle import FOLDER
from spikformer.preprocessing import Preprocessing

EVIL = '</script><script>window.hacked = 1</script><!--"'


def part(page: str, name: str) -> str:
    found = re.search(rf'<script type="[^"]*" id="{name}-data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return found[1]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("page") / "page.html"
    written = sf.write_page("digits", path)
    assert (written.path, written.num_bytes) == (path, path.stat().st_size)
    assert written.num_samples == 20
    return path.read_text(encoding="utf-8")


def test_everything_is_inside(page: str, tmp_path: Path) -> None:
    engine, wasm = b64decode(part(page, "engine")), b64decode(part(page, "wasm"))
    assert wasm == (FOLDER / "engine.wasm").read_bytes()
    (tmp_path / "a.engine").write_bytes(engine)
    assert read_compiled(tmp_path / "a.engine").card == from_weights("digits").card
    about, samples = json.loads(part(page, "about")), json.loads(part(page, "samples"))
    assert (about["name"], about["timeSteps"], about["classes"]) == ("digits", 4, list("0123456789"))
    assert [each["block"] for each in about["attention"]] == ["blocks.0", "blocks.1"]
    assert [sample["label"] for sample in samples] == [digit for digit in "0123456789" for _ in range(2)]
    assert {len(b64decode(sample["bytes"])) for sample in samples} == {64}


def test_the_page_is_light_and_its_policy_names_its_script(page: str) -> None:
    assert len(page) - len(part(page, "engine")) < 1_000_000
    script = re.search(r'<script type="module">(.*?)</script>', page, re.DOTALL)
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert script is not None
    assert style is not None
    assert policy is not None
    for content in (script[1], style[1]):
        assert f"'sha256-{b64encode(sha256(content.encode()).digest()).decode()}'" in policy[1]
    assert "default-src 'none'" in policy[1]
    assert "'unsafe-eval'" not in policy[1]
    assert "unsafe-inline" not in policy[1]
    assert not re.search(r'(?:src|href)="(?!data:,|#)', page)


def test_names_never_become_markup() -> None:
    page = render({"name": EVIL, "classes": [EVIL * 1000]}, [{"label": EVIL}], b"x").decode()
    assert page.count("<script") == 5
    assert page.count("<!--") == 0
    assert json.loads(part(page, "about"))["name"] == EVIL


def test_an_engine_file_is_taken_as_it_is(tmp_path: Path) -> None:
    engine = tmp_path / "net.engine"
    write_compiled(from_weights("digits"), engine)
    written = sf.write_page(engine, tmp_path / "page.html", num_samples=3)
    page = written.path.read_text(encoding="utf-8")
    assert b64decode(part(page, "engine")) == engine.read_bytes()
    assert json.loads(part(page, "about"))["name"] == "net"
    assert written.num_samples == 3


def test_a_network_on_other_data_has_no_gallery_unless_it_is_given(tmp_path: Path) -> None:
    engine = tmp_path / "net.engine"
    write_compiled(compiled_specimen(specimen(shrunk("spikformer_4_256_cifar10"), torch.float32)), engine)
    assert sf.write_page(engine, tmp_path / "page.html").num_samples == 0
    with mistake(FieldError, field="data"):
        sf.write_page(engine, tmp_path / "page.html", data=tmp_path)


def test_events_come_along_as_recordings(tmp_path: Path) -> None:
    model = specimen(sf.create_model("spikformer_tiny_digits_dvs").config, torch.float32)
    sf.save(model, tmp_path / "events.safetensors", card=open_dataset("digits_dvs").card("spikformer"))
    written = sf.write_page(tmp_path / "events.safetensors", tmp_path / "page.html", num_samples=2)
    samples = json.loads(part(written.path.read_text(encoding="utf-8"), "samples"))
    assert [sample["kind"] for sample in samples] == ["recording", "recording"]
    assert b64decode(samples[0]["bytes"]).startswith(b"PK")


def test_mistakes_are_named_and_nothing_is_written(tmp_path: Path) -> None:
    engine, page = tmp_path / "net.engine", tmp_path / "page.html"
    compiled = from_weights("digits")
    write_compiled(replace(compiled, card=ModelCard(architecture="spikformer")), engine)
    with mistake(FieldError, field="preprocessing"):
        sf.write_page(engine, page)
    with mistake(UnknownNameError, name="digit", suggestion="digits"):
        sf.write_page("digit", page)
    with mistake(FieldError, field="num_samples"):
        sf.write_page("digits", page, num_samples=-1)
    with mistake(FileError, reason="unsupported"):
        sf.write_page("digits", tmp_path / "page.png")
    with pytest.raises(FileNotFoundError):
        sf.write_page(tmp_path / "none.safetensors", page)
    with pytest.raises(FileNotFoundError):
        sf.write_page("digits", tmp_path / "nowhere/page.html")
    with pytest.raises(IsADirectoryError):
        sf.write_page("digits", tmp_path)
    (tmp_path / "text.engine").write_text("no engine")
    with mistake(FileError):
        sf.write_page(tmp_path / "text.engine", page)
    assert not page.exists()


def test_a_program_without_neurons_has_nothing_to_watch() -> None:
    weights, bias = np.ones((2, 1, 1, 3), np.float32), np.zeros(2, np.float32)
    build = Builder()
    build.read_out(
        "head", build.convolve("conv", 0, weights, bias), np.ones((4, 2), np.float32), np.zeros(4, np.float32)
    )
    card = ModelCard(architecture="program", preprocessing=Preprocessing(kind="image", size=(4, 4), channels=3))
    with mistake(FieldError, field="ops"):
        describe(Compiled(Program(tuple(build.ops), 3, 2, (4, 4)), card=card))


def test_sizes_and_steps_that_a_page_offers_are_bounded() -> None:
    compiled = from_weights("digits")
    seen = Preprocessing(kind="image", size=(8, 8), channels=1)
    about = describe(replace(compiled, card=replace(compiled.card, preprocessing=seen)))
    assert (about["mostSteps"], about["patchSize"]) == (16, 2)
    assert about["parameters"] == sum(array.size for array in _arrays(compiled))


def _arrays(compiled):
    return [getattr(op, name) for op in compiled.program.ops for name in op.arrays]


def test_the_verb_writes_a_page_and_says_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["page", "--samples", "1", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said == {
        "page": "page.html",
        "bytes": Path("page.html").stat().st_size,
        "engine_bytes": said["engine_bytes"],
        "samples": 1,
    }
    assert main(["page", "digits", "-o", "other.html"]) == 0
    assert "other.html" in capsys.readouterr().out
    assert main(["page", "-o", "nowhere/page.html"]) == 2
    assert main(["page", "nothing"]) == 2
    assert main(["page", "--samples", "-1"]) == 2


def test_writing_a_page_needs_no_torch(tmp_path: Path) -> None:
    path = str(tmp_path / "a.html")
    code = f"import sys, spikformer as sf; sf.write_page('digits', {path!r}); assert 'torch' not in sys.modules"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
