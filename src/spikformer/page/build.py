"""write_page: the engine, a network, its samples and the script as one HTML file that needs nothing but itself."""

from __future__ import annotations

import json
import os
from base64 import b64encode
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from spikformer import __version__
from spikformer.engine.file import is_engine_file, read_compiled, write_compiled
from spikformer.engine.lowering import from_weights
from spikformer.engine.program import Compiled
from spikformer.errors import FileError
from spikformer.io import check_html_path, check_is_file, write_atomically
from spikformer.page.about import describe
from spikformer.page.bundle import FOLDER, bundle
from spikformer.page.gallery import NUM_SAMPLES, encoded, gallery
from spikformer.runs.trained import weights_path
from spikformer.validation import check_count

_LARGEST_ENGINE = 256 * 2**20
"""Bytes of weights: browsers open larger pages slowly or not at all."""
_MOST_SAMPLES = 1000


@dataclass(frozen=True)
class WrittenPage:
    """What was written."""

    path: Path
    num_bytes: int
    engine_bytes: int
    """Of those, what the network takes before it is encoded."""
    num_samples: int


def write_page(
    source: str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    data: str | os.PathLike[str] | None = None,
    num_samples: int = NUM_SAMPLES,
) -> WrittenPage:
    """Write the page of a shipped name, weights, a run folder or an engine file.

    `data` is where the files of the network's data set are, from which the gallery is taken; digits need none.
    """
    path = Path(path)
    check_html_path(path, "page.html")
    num_samples = check_count("num_samples", num_samples, _MOST_SAMPLES, least=0)
    compiled, engine = _engine(weights_path(source))
    about = describe(compiled) | {"version": __version__, "name": _name(source)}
    samples = gallery(compiled, None if data is None else Path(data), num_samples)
    content = render(about, samples, engine)
    write_atomically(path, content)
    return WrittenPage(path, len(content), len(engine), len(samples))


def _engine(path: Path) -> tuple[Compiled, bytes]:
    """The program of weights or of an engine file, and the bytes that the page's engine loads."""
    check_is_file(path)
    if path.suffix == ".engine" or is_engine_file(path):
        compiled = read_compiled(path)
        engine = path.read_bytes()
    else:
        compiled = from_weights(path)
        with TemporaryDirectory() as folder:
            write_compiled(compiled, file := Path(folder, "page.engine"))
            engine = file.read_bytes()
    if len(engine) > _LARGEST_ENGINE:
        raise FileError(
            path,
            f"makes an engine of {len(engine) / 2**20:,.0f} MB, more than the {_LARGEST_ENGINE // 2**20} of a page; "
            "use the engine from Python or C.",
            "too_large",
        )
    return compiled, engine


def _name(source: str | os.PathLike[str]) -> str:
    """What to call the network: without folders, which a page that is passed on should not reveal."""
    path = Path(source).absolute()
    if path.is_dir():
        return path.name
    return path.parent.name if path.stem in ("best", "last") else path.stem


def render(about: dict[str, Any], samples: list[dict[str, Any]], engine: bytes) -> bytes:
    """The page. Only the template, the style and the script are markup; all else is JSON or base64."""
    script = "\n" + bundle("main") + "\n"
    style = (FOLDER / "page.css").read_text(encoding="utf-8")
    if "</script" in script or "<!--" in script or "</style" in style:
        raise ValueError("The page's script or style would end its own element.")
    parts = {
        "script_hash": _hash(script),
        "style_hash": _hash(style),
        "style": style,
        "script": script,
        "about": as_json(about),
        "samples": as_json(samples),
        "wasm": encoded((FOLDER / "engine.wasm").read_bytes()),
        "engine": encoded(engine),
    }
    pieces = (FOLDER / "page.html").read_text(encoding="utf-8").split("%%")
    return "".join(parts[piece] if number % 2 else piece for number, piece in enumerate(pieces)).encode()


def as_json(value: Any) -> str:
    """JSON that no HTML parser takes for the end of its element; letters outside ASCII are escaped, too."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")


def _hash(text: str) -> str:
    """As a content-security policy names an inline script or style."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode('ascii')}'"
