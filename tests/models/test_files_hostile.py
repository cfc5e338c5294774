"""Weights on disk: nothing that happens to a file, or is in one, reaches further than it should."""

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from tests.limits import run_limited
from tests.mistakes import file_error, mistake

import spikformer as sf
from spikformer.engine.file import FORMAT_VERSION as ENGINE_VERSION
from spikformer.errors import FileError
from spikformer.tensorfile import LONGEST_HEADER, WEIGHTS_VERSION
from spikformer.training.optim import build_optimiser
from spikformer.training.progress import Progress
from spikformer.training.state import FORMAT_VERSION as STATE_VERSION
from spikformer.training.state import save_state


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("weights") / "model.safetensors"
    sf.save(sf.create_model("spikformer_tiny_digits"), path)
    return path


def contents(path: Path) -> tuple[dict, dict]:
    with safe_open(path, "pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, dict(file.metadata())


def checksum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


LEFT_ALONE = """
import os, sys
from pathlib import Path
import torch
import spikformer as sf
from safetensors.torch import load_file, save_file
from tests.limits import run_limited
from spikformer.analysis.golden import load_golden
from spikformer.models.files import read_safetensors
from spikformer.tensorfile import LONGEST_HEADER
from spikformer.training.optim import build_optimiser
from spikformer.training.progress import Progress
from spikformer.training.progress import Progress
from spikformer.training.state import load_state, save_state

folder = Path(sys.argv[1])
model = sf.create_model("spikformer_tiny_digits").eval()
golden = load_golden("cifar10")

def damage(path):
    size = path.stat().st_size
    with path.open("r+b") as file:  # in place, as cp does
        file.seek(8)
        file.write(b"Z" * (size - 8))
    yield
    os.truncate(path, 1)
    yield
    path.unlink()
    yield

def check(name, write, read, values):
    path = folder / name
    write(path)
    loaded = read(path)
    before = values(loaded)
    for _ in damage(path):
        after = values(loaded)
        assert before.keys() == after.keys() and all((before[key] == after[key]).all() for key in before), name

def copies(tensors):
    return {name: tensor.clone() for name, tensor in tensors.items()}

check("weights.safetensors", lambda path: sf.save(model, path), sf.load, lambda found: copies(found.state_dict()))
check(
    "official.safetensors",
    lambda path: save_file({name: tensor.contiguous() for name, tensor in golden.state.items()}, path),
    lambda path: sf.from_official(path, num_heads=golden.num_heads),
    lambda found: copies(found.state_dict()),
)
check("state.safetensors",
    lambda path: save_state(path, {}, Progress(), model, build_optimiser(model, 0.0), None, None),
    load_state,
    lambda found: copies(found.tensors),
)
check("net.engine",
    sf.compile_engine(model, num_threads=1).save,
    lambda path: sf.load_engine(path, num_threads=1),
    lambda found: {"answer": found(torch.ones(1, 1, 8, 8))}
    | {op.name: op.weights.copy() for op in found.program.ops if op.arrays},
)
"""


@pytest.mark.slow
def test_what_is_loaded_lives_without_its_file(tmp_path: Path) -> None:
    """Overwritten in place, truncated, removed: nothing changes. In a child, which a mapped file would kill."""
    words = [sys.executable, "-c", LEFT_ALONE, str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr


REPEATED = """
import sys
from pathlib import Path
import spikformer as sf
from spikformer.tensorfile import LONGEST_HEADER
from spikformer.training.optim import build_optimiser
from spikformer.training.progress import Progress
from spikformer.training.progress import Progress
from spikformer.training.state import save_state

folder = Path(sys.argv[1])
model = sf.load(folder / "weights")
sf.save(model, folder / "weights")
sf.compile_engine(model, num_threads=1).save(folder / "engine")
save_state(folder / "state", {"epochs": 1, "seed": 2}, Progress(), model, build_optimiser(model, 0.0), model, None)
"""


@pytest.mark.slow
def test_the_same_model_is_the_same_file_in_every_process(saved: Path, tmp_path: Path) -> None:
    model = sf.load(saved)
    model.card = replace(model.card, data_set="digits", recipe="r", settings={"epochs": 1})
    recipe, optimiser, engine = {"epochs": 1, "seed": 2}, build_optimiser(model, 0.0), sf.compile_engine(model, 1)
    found = set()
    for _ in range(5):
        sf.save(model, tmp_path / "weights")
        engine.save(tmp_path / "engine")
        save_state(tmp_path / "state", recipe, Progress(), model, optimiser, model, None)
        found.add(tuple(checksum(tmp_path / name) for name in ("weights", "engine", "state")))
    words, environment = [sys.executable, "-c", REPEATED, str(tmp_path)], os.environ | {"PYTHONHASHSEED": "7"}
    subprocess.run(words, env=environment, check=True, timeout=120)
    found.add(tuple(checksum(tmp_path / name) for name in ("weights", "engine", "state")))
    assert len(found) == 1


@pytest.mark.parametrize("place", ["tensor", "field", "value", "version"])
def test_what_a_file_says_reaches_a_message_without_control_characters(saved: Path, tmp_path: Path, place: str) -> None:
    tensors, metadata = contents(saved)
    evil = "\x1b]0;owned\x07\x9b\n" + "x" * 10_000
    if place == "tensor":
        tensors[evil] = torch.zeros(1)
    elif place == "version":
        metadata["format_version"] = evil
    else:
        config = json.loads(metadata["config"]) | ({evil: 1} if place == "field" else {"neuron": evil})
        metadata["config"] = json.dumps(config)
    save_file(tensors, tmp_path / "evil.safetensors", metadata)
    with mistake(FileError, path=tmp_path / "evil.safetensors") as error:
        sf.load(tmp_path / "evil.safetensors")
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 700 + len(str(tmp_path))


def test_our_other_files_are_called_by_their_name(tmp_path: Path) -> None:
    model = sf.create_model("spikformer_tiny_digits").eval()
    sf.compile_engine(model, num_threads=1).save(tmp_path / "net.engine")
    with file_error(tmp_path / "net.engine", "foreign", "sf.load_engine"):
        sf.load(tmp_path / "net.engine")
    save_state(tmp_path / "state", {}, Progress(), model, build_optimiser(model, 0.0), None, None)
    with file_error(tmp_path / "state", "foreign", "spikformer train"):
        sf.load(tmp_path / "state")


def test_a_file_of_holes_takes_no_memory(saved: Path, tmp_path: Path) -> None:
    """A tensor of 64 GB that takes no room on disk, and does not fit its config."""
    _, metadata = contents(saved)
    entry = {"dtype": "F32", "shape": [1 << 34], "data_offsets": [0, 1 << 36]}
    header = json.dumps({"__metadata__": metadata, "head.weight": entry}).encode()
    path = tmp_path / "holes.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    os.truncate(path, 8 + len(header) + (1 << 36))
    code = "try: sf.load(sys.argv[1])\nexcept ValueError as error: print(error)"
    done = run_limited("import sys, torch, spikformer as sf; sf.load; sf.Spikformer", code, path, megabytes=256)
    assert "holds 1 tensors" in done.output, done.errors


@pytest.mark.slow
def test_a_depth_that_names_alone_allow_is_not_built(saved: Path, tmp_path: Path) -> None:
    """A block has dozens of tensors, so 20,000 names are not those of 19,900 blocks, which would take gigabytes."""
    metadata = contents(saved)[1]
    metadata["config"] = json.dumps(json.loads(metadata["config"]) | {"depth": 19_900})
    empty = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
    header = json.dumps({"__metadata__": metadata} | {str(number): empty for number in range(20_000)}).encode()
    path = tmp_path / "deep.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    code = "try: sf.load(sys.argv[1])\nexcept ValueError: print('raised')"
    done = run_limited("import sys, torch, spikformer as sf; sf.load; sf.Spikformer", code, path, megabytes=256)
    assert done.output == "raised\n", done.errors


def test_one_sample_takes_a_few_times_the_largest_activation() -> None:
    """At the limit of 2^28 numbers, so at a hundredth of it, too: 11 MB here."""
    code = """
model = sf.create_model("spikformer_tiny_digits", time_steps=655).eval()
assert 2_600_000 < model.config.largest_activation < 2**28 / 100
with torch.no_grad():
    model(torch.zeros(1, 1, 8, 8))
print("done")
"""
    imports = "import torch, spikformer as sf; sf.create_model('spikformer_tiny_digits')(torch.zeros(1, 1, 8, 8))"
    done = run_limited(imports, code, megabytes=16 * 11)
    assert done.output == "done\n", done.errors


BOMBS = """
for path in sorted(Path(sys.argv[1]).iterdir()):
    load = {"weights": sf.load, "engine": sf.load_engine, "state": load_state}[path.suffix[1:]]
    begin = time.perf_counter()
    try:
        load(path)
    except ValueError as error:
        assert str(path) in str(error) and str(error).isprintable() and len(str(error)) < 600 + len(str(path)), error
        print(path.name, time.perf_counter() - begin)
"""


@pytest.mark.slow
def test_bombs_in_metadata_take_little_memory_and_time(saved: Path, tmp_path: Path) -> None:
    """Digits, levels, lists and names by the million, in each kind of file: an error, within 512 MB."""
    config = json.loads(contents(saved)[1]["config"])
    formats = {
        "weights": ("spikformer", WEIGHTS_VERSION, "config"),
        "engine": ("spikformer-engine", ENGINE_VERSION, "program"),
        "state": ("spikformer-state", STATE_VERSION, "progress"),
    }
    fire = {"op": "fire", "inputs": [0], "neuron": [0.5, 1, 1, 0]}
    program = {"in_channels": 1, "time_steps": 1, "image_size": None, "patch_size": 1}
    values = {
        "deep": "[" * 1_000_000,
        "digits": '{"tau": 1' + "0" * 4_000_000 + "}",
        "lists": '{"tau": [' + "[]," * 400_000 + "0]}",
        "fields": json.dumps({str(number): number for number in range(50_000)}),
        "steps": json.dumps(config | {"time_steps": 10**6, "image_size": None}),
        "stages": json.dumps(config | {"pool_stages": [True] * 500_000}),
        "name": json.dumps({"\x1b" * 500_000: 1}),
        "ops": json.dumps(program | {"ops": [fire | {"name": str(number)} for number in range(60_000)]}),
        "op": json.dumps(program | {"ops": [fire | {"name": "\x1b" * 500_000}]}),
        "inputs": json.dumps(program | {"ops": [fire | {"name": "a", "inputs": [0] * 1_000_000}]}),
    }
    for kind, (name, version, field) in formats.items():
        for bomb, value in values.items():
            metadata = {"format": name, "format_version": str(version), "card": "{}", "recipe": "{}"}
            metadata |= {"scaler": "null", "density_threshold": "null", "config": "null"}
            metadata |= {"config": value, "progress": value} if len(value) < 1_000_000 else {}
            metadata[field] = value
            header = json.dumps({"__metadata__": metadata}).encode()
            assert len(header) < LONGEST_HEADER
            (tmp_path / f"{bomb}.{kind}").write_bytes(len(header).to_bytes(8, "little") + header)
    cards = {name: values[name] for name in ("deep", "digits", "lists", "fields", "name")}
    cards["results"] = json.dumps({"architecture": "spikformer", "results": [{}] * 500_000})
    for bomb, value in cards.items():
        metadata = {"format": "spikformer", "format_version": str(WEIGHTS_VERSION), "config": json.dumps(config)}
        header = json.dumps({"__metadata__": metadata | {"card": value}}).encode()
        (tmp_path / f"card_{bomb}.weights").write_bytes(len(header).to_bytes(8, "little") + header)
    imports = "import sys, time, torch; from pathlib import Path; import spikformer as sf; sf.load, sf.load_engine\n"
    imports += "from spikformer.training.state import load_state"
    done = run_limited(imports, BOMBS, tmp_path, megabytes=512, seconds=60)
    assert done.exit_code == 0, done.errors
    assert len(done.output.splitlines()) == 3 * len(values) + len(cards), done.output
