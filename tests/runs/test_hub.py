"""Networks that go to the Hugging Face Hub and come back, through a server that speaks its protocol."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest
import torch
import yaml
from huggingface_hub import constants
from PIL import Image
from tests.hub import Hub, served_hub
from tests.mistakes import mistake, shows

import spikformer as sf
from spikformer.cli import main
from spikformer.errors import FieldError, FileError, UnknownNameError
from spikformer.runs.hub import hub_page
from spikformer.weights import find_weights, is_read_only, is_shipped
from spikformer.weights.hub import Address, pin

NAME = "owner/digits"


@pytest.fixture(scope="module")
def hub() -> Iterator[Hub]:
    with served_hub() as hub:
        yield hub


def reach(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What HF_ENDPOINT does in a new process."""
    monkeypatch.setattr(
        constants, "HUGGINGFACE_CO_URL_TEMPLATE", f"{url}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
    )
    monkeypatch.setattr(constants, "ENDPOINT", url)


@pytest.fixture(autouse=True)
def _mine(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reach(hub.url, monkeypatch)
    monkeypatch.setenv("SPIKFORMER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_TOKEN", "hf_mine")


@pytest.fixture(scope="module")
def content() -> bytes:
    return find_weights("digits").read_bytes()


def test_what_was_pushed_is_what_is_loaded(hub: Hub) -> None:
    address = sf.push_to_hub("digits", NAME)
    commit, files = next(reversed(hub.repositories[NAME].items()))
    assert files.keys() == {"model.safetensors", "README.md"}
    assert address == f"hf://{NAME}@{commit}#sha256={sha256(files['model.safetensors']).hexdigest()}"
    assert pin(f"hf://{NAME}") == address
    ours, theirs = sf.load("digits"), sf.load(address)
    assert theirs.config == ours.config
    assert theirs.card == ours.card
    assert all(torch.equal(value, theirs.state_dict()[name]) for name, value in ours.state_dict().items())


def test_a_model_is_pushed_as_it_is() -> None:
    model = sf.create_model("spikformer_tiny_digits", depth=1, embed_dim=16).eval()
    loaded = sf.load(sf.push_to_hub(model, "owner/new", private=True))
    x = torch.rand(2, 1, 8, 8)
    with torch.no_grad():
        assert torch.equal(loaded(x), model(x))


def test_its_page_has_the_card_s_results() -> None:
    model = sf.load("digits")
    page = hub_page(model.card, model.config, NAME)
    _, front, body = page.split("---\n", 2)
    metadata = yaml.safe_load(front)
    assert metadata["library_name"] == "spikformer"
    assert metadata["license"] == "apache-2.0"
    (index,) = metadata["model-index"]
    found = {metric["type"]: metric["value"] for result in index["results"] for metric in result["metrics"]}
    assert found == {result.metric: result.value for result in model.card.results if result.split == "test"}
    assert index["results"][0]["dataset"] == {"name": "digits", "type": "digits", "split": "test"}
    assert shows(body, model.card.limits, f'sf.load("hf://{NAME}")')


def test_markup_in_a_card_stays_text() -> None:
    model = sf.create_model("spikformer_tiny_digits", depth=1, embed_dim=16)
    names = ("<script>", *map(str, range(9)))
    card = sf.ModelCard(architecture="spikformer", class_names=names, licence="My own | <b>terms</b>")
    page = hub_page(card, model.config, NAME)
    assert "<script>" not in page
    front = yaml.safe_load(page.split("---\n", 2)[1])
    assert (front["license"], "<" in front["license_name"]) == ("other", False)


def test_one_download_serves_later_calls_and_needs_no_connection(
    hub: Hub, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.commit("owner/once", {"model.safetensors": content, "setup.py": b"raise SystemExit"})
    path = find_weights("hf://owner/once")
    assert path.read_bytes() == content
    assert is_read_only(path)
    assert not is_shipped(path)
    asked = len(hub.asked)
    assert find_weights("hf://owner/once") == path
    assert all(request.startswith("HEAD") for request in hub.asked[asked:])
    assert not any("setup.py" in request for request in hub.asked)
    reach("http://127.0.0.1:9", monkeypatch)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert find_weights("hf://owner/once") == path
    with pytest.raises(ConnectionError):
        find_weights("hf://owner/never")


def test_a_checksum_pins_the_bytes(hub: Hub, content: bytes) -> None:
    hub.commit("owner/pinned", {"model.safetensors": content})
    before = pin("hf://owner/pinned")
    hub.commit("owner/pinned", {"model.safetensors": content + b"more"})
    assert find_weights(before).read_bytes() == content, "the commit of the address"
    moved = Address.parse(before)
    with mistake(FileError, reason="unfit", at="sha256"):
        find_weights(f"hf://owner/pinned#sha256={moved.sha256}")


def test_mistakes(hub: Hub, content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    for text in ("hf://digits", "hf://a/b/c", "hf://owner/name#sha256=12", "hf://../name@", "hf://owner/na me"):
        with mistake(FieldError, repr(text), field="address"):
            find_weights(text)
    for name in ("digits", "owner/name@main", "owner/name#sha256=" + "0" * 64):
        with pytest.raises(FieldError):
            sf.push_to_hub("digits", name)
    with mistake(UnknownNameError, name="owner/nothing", kind="repository on the hub"):
        find_weights("hf://owner/nothing")
    hub.commit("owner/other", {"README.md": b"no weights"})
    with mistake(UnknownNameError, name="v9", kind="revision"):
        find_weights("hf://owner/other@v9")
    with mistake(FileError, "model.safetensors", reason="foreign"):
        find_weights("hf://owner/other")
    hub.commit("owner/damaged", {"model.safetensors": content[:1000]})
    with pytest.raises(FileError):
        sf.load("hf://owner/damaged")
    with pytest.raises(ConnectionError):
        sf.push_to_hub("digits", NAME, token="hf_theirs")
    reach("http://127.0.0.1:9", monkeypatch)
    with pytest.raises(ConnectionError):
        sf.push_to_hub("digits", NAME)


def test_a_file_that_is_too_large_is_not_downloaded(hub: Hub, content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.commit("owner/large", {"model.safetensors": content})
    monkeypatch.setattr("spikformer.weights.hub._MOST_BYTES", len(content) - 1)
    asked = len(hub.asked)
    with mistake(FileError, f"{len(content):,}", reason="too_large"):
        find_weights("hf://owner/large")
    assert [request.split()[0] for request in hub.asked[asked:]] == ["HEAD"]


def test_verbs_take_addresses_and_write_nothing_into_the_cache(
    hub: Hub, content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hub.commit("owner/verbs", {"model.safetensors": content})
    monkeypatch.chdir(tmp_path)
    assert main(["evaluate", "hf://owner/verbs", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["top1"] == pytest.approx(0.9916, abs=5e-5)
    before = {path for path in (tmp_path / "cache").rglob("*") if path.is_file()}
    assert main(["compile", "hf://owner/verbs"]) == 0
    assert len(list(tmp_path.glob("*.engine"))) == 1
    assert {path for path in (tmp_path / "cache").rglob("*") if path.is_file()} == before
    assert main(["anytime", "hf://owner/verbs", "--store"]) == 2
    assert shows(capsys.readouterr().err, "hf://owner/verbs")


WITHOUT = """
import sys
from importlib.machinery import PathFinder

find = PathFinder.find_spec
PathFinder.find_spec = lambda name, *rest: None if name.partition(".")[0] == {missing!r} else find(name, *rest)
from spikformer.cli import main
sys.exit(main({words!r}))
"""


@pytest.mark.parametrize(("missing", "code"), [("torch", 0), ("huggingface_hub", 1)])
def test_predict_needs_the_hub_s_library_and_no_torch(
    hub: Hub, content: bytes, tmp_path: Path, missing: str, code: int
) -> None:
    hub.commit("owner/lean", {"model.safetensors": content})
    Image.new("L", (8, 8)).save(tmp_path / "black.png")
    words = ["predict", "hf://owner/lean", str(tmp_path / "black.png"), "--json"]
    program = WITHOUT.format(missing=missing, words=words)
    environment = os.environ | {"HF_ENDPOINT": hub.url}
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert result.returncode == code, result.stderr
    if code == 0:
        assert len(json.loads(result.stdout)) == 1
    else:
        assert shows(result.stderr, "huggingface_hub", "spikformer[hub]")
        assert "Traceback" not in result.stderr
