"""Networks on the Hugging Face Hub. Needs huggingface_hub, the extra `hub`, and no torch.

    hf://owner/name                          its newest weights
    hf://owner/name@v1                       those of a branch, a tag or a commit
    hf://owner/name@v1#sha256=5891b5b5…      and only if these are their bytes: `pin` writes such an address

A repository's model.safetensors alone is downloaded, and read as any other weights file: nothing remote is executed.
It stays in the package's cache folder, where it is found without a connection. Downloads are bounded by 4 GiB.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import file_digest
from pathlib import Path
from types import ModuleType

from spikformer.errors import FieldError, FileError, UnknownNameError, printable, shown
from spikformer.io import cache_folder

PREFIX = "hf://"
FILE_NAME = "model.safetensors"
_MOST_BYTES = 4 << 30
_WORD = r"[\w.-]{1,96}"
_ADDRESS = re.compile(rf"hf://({_WORD}/{_WORD})(?:@([\w./-]{{1,200}}))?(?:#sha256=([0-9a-f]{{64}}))?", re.ASCII)


@dataclass(frozen=True)
class Address:
    """Where a network is on the hub."""

    repository: str
    revision: str = "main"
    sha256: str | None = None

    @classmethod
    def parse(cls, text: str) -> Address:
        parts = _ADDRESS.fullmatch(text)
        if parts is None:
            expected = "hf://owner/name, with @revision and #sha256=… (64 hexadecimal digits) if wanted"
            raise FieldError("address", f"An address on the hub is {expected}; got {shown(text)}.")
        repository, revision, sha256 = parts.groups()
        return cls(repository, revision or "main", sha256)

    def __str__(self) -> str:
        checksum = "" if self.sha256 is None else f"#sha256={self.sha256}"
        return f"{PREFIX}{self.repository}@{self.revision}{checksum}"


def download(text: str) -> Path:
    """The weights file at an address, downloaded unless it is in the cache; its checksum, if given, is compared."""
    address = Address.parse(text)
    path, _ = _fetch(address)
    if address.sha256 not in (None, found := _checksum(path)):
        problem = f"has the checksum {found}, and {text} asks for another: its bytes have changed."
        raise FileError(path, problem, "unfit", at="sha256")
    return path


def pin(text: str) -> str:
    """The address of what is at another address now: its commit and checksum do not change with the repository."""
    address = Address.parse(text)
    path, commit = _fetch(address)
    return str(replace(address, revision=commit, sha256=_checksum(path)))


def is_downloaded(path: Path) -> bool:
    """Whether a file is in the cache of downloads."""
    return path.is_relative_to(_folder())


def hub_library() -> ModuleType:
    """huggingface_hub; an ImportError that says how to install it where it is missing."""
    try:
        import huggingface_hub
    except ModuleNotFoundError as error:
        if error.name != "huggingface_hub":
            raise
        message = "The hub needs huggingface_hub, which is not installed: pip install 'spikformer[hub]'"
        raise ModuleNotFoundError(message, name=error.name) from None
    return huggingface_hub


def _folder() -> Path:
    return cache_folder() / "hub"


def _fetch(address: Address) -> tuple[Path, str]:
    """The file, and the commit that it is of."""
    library = hub_library()
    with hub_errors(address):
        wanted = {"revision": address.revision, "cache_dir": _folder()}
        found = library.hf_hub_download(address.repository, FILE_NAME, **wanted, dry_run=True)
        if found.file_size > _MOST_BYTES:
            problem = f"has {found.file_size:,} bytes, expected at most {_MOST_BYTES:,}."
            raise FileError(f"{FILE_NAME} of {address}", problem, "too_large")
        path = Path(library.hf_hub_download(address.repository, FILE_NAME, **wanted))
    return path, path.parent.name  # …/snapshots/COMMIT/model.safetensors


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


@contextmanager
def hub_errors(address: Address) -> Iterator[None]:
    """The library's errors as the package's own, with the address in their messages."""
    hub_library()
    from huggingface_hub import errors

    try:
        yield
    except errors.GatedRepoError:
        raise PermissionError(f"{address} is gated: ask for access on its page, and set HF_TOKEN.") from None
    except errors.RepositoryNotFoundError:  # the hub does not say which
        otherwise = "check its name; a private one needs HF_TOKEN."
        raise UnknownNameError("repository on the hub", address.repository, (), otherwise) from None
    except errors.RevisionNotFoundError:
        otherwise = "give a branch, a tag or a commit of it."
        raise UnknownNameError("revision", address.revision, (), otherwise, f"of {address.repository}") from None
    except errors.LocalEntryNotFoundError:
        advice = "check the connection, and HF_HUB_OFFLINE."
        raise ConnectionError(f"{address} is not in the cache, and the hub does not answer: {advice}") from None
    except errors.EntryNotFoundError:
        raise FileError(str(address), f"has no {FILE_NAME}: it is not a network of this package.", "foreign") from None
    except errors.HfHubHTTPError as error:
        raise ConnectionError(f"The hub rejects {address}: {printable(error, 300)}") from None
    except errors.HTTPError as error:  # of the transport, which is not an OSError
        raise ConnectionError(f"The hub does not answer about {address}: {printable(error, 300)}") from None
