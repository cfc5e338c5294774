"""Small trained networks that come with the package: a weights file each, with its card. Needs no torch.

    sf.list_weights()                            their names
    sf.load("digits")                            one as a model, ready to use
    sf.compile_engine("digits")                  or as an engine
    sf.load("hf://owner/name")                   a network of others, from the Hugging Face Hub

docs/weights.md says how each was trained, what it scores and where its limits are; `spikformer models --weights` lists
what their cards say.
"""

from __future__ import annotations

import os
from fnmatch import fnmatchcase
from pathlib import Path

from spikformer.errors import UnknownNameError
from spikformer.weights.hub import PREFIX, download, is_downloaded

FOLDER = Path(__file__).parent
SUFFIX = ".safetensors"


def list_weights(pattern: str = "*") -> list[str]:
    """The names of the networks that come with the package, as far as they match a shell pattern."""
    names = sorted(path.name.removesuffix(SUFFIX) for path in FOLDER.glob(f"*{SUFFIX}"))
    return [name for name in names if fnmatchcase(name, pattern)]


def find_weights(name_or_path: str | os.PathLike[str]) -> Path:
    """The file of a network that comes with the package, by its name, or of an address on the hub; or a path as it is.

    A name has neither a separator nor a suffix: write "./digits" for a folder of that name. One that is neither
    shipped nor there raises UnknownNameError. Addresses begin with hf://, see `weights.hub`.
    """
    text = os.fspath(name_or_path)
    if text.startswith(PREFIX):
        return download(text)
    path = Path(text)
    if text != path.name or path.suffix or not text:  # "./digits" is a path, and Path("./digits") does not say so
        return path
    if text in list_weights():
        return FOLDER / f"{text}{SUFFIX}"
    if path.exists():
        return path
    otherwise = "give a path, or a name that `spikformer models --weights` lists."
    raise UnknownNameError("file, folder or shipped network", text, list_weights(), otherwise)


def is_shipped(path: Path) -> bool:
    """Whether a file came with the package."""
    return path.parent == FOLDER


def is_read_only(path: Path) -> bool:
    """Whether a file came with the package or from the hub: it is not changed, and nothing is written beside it."""
    return is_shipped(path) or is_downloaded(path)
