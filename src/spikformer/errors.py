"""Errors that a user's mistake raises, each with fields that identify it, and how their messages show words and values.

All of them are ValueErrors. Code and tests look at types and fields, people at the message: what was expected, what was
given, what to do. All cross process borders with their fields.
"""

from __future__ import annotations

import copyreg
import os
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

Reason = Literal["damaged", "truncated", "foreign", "unsupported", "unsafe", "too_large", "empty", "unfit", "busy"]
"""What is wrong with a file or folder.

`foreign` is of another format or program, `unsupported` of this one in a form that is not known here, `unsafe` asks for
more than data may, `unfit` does not fit what it is used with, `busy` is in use by another process.
"""

SILENT = (
    "The network is silent: no spike reaches its head, so every input gets the same answer. Train it longer or with "
    "larger batches, or recompute its norm statistics (torch.optim.swa_utils.update_bn)."
)
"""What every command says of a network that gives no answer: no error, but of little use."""


class UserError(ValueError):
    """Base of the errors with fields."""

    def __reduce__(self) -> tuple[Any, ...]:
        return copyreg.__newobj__, (type(self), str(self)), vars(self)  # type: ignore[attr-defined]


class FieldError(UserError):
    """A field or an argument with a value that it cannot have. `field` is its name."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class InputError(FieldError):
    """Samples that do not fit a network. `field` is what is wrong: dimensions, channels, size, dtype, values."""

    def __init__(self, field: str, expected: object, got: object, fix: str = "") -> None:
        super().__init__(field, f"Expected {expected}, got {got}{f'; {fix}' if fix else ''}.")
        self.expected, self.got = expected, got


class FileError(UserError):
    """A file or folder with content that cannot be used. `at` is the place in it: a byte, line, event or entry.

    The message is the path and then the problem: "is empty.", or ": event 3 has …".
    """

    def __init__(
        self, path: str | os.PathLike[str], problem: str, reason: Reason = "damaged", at: int | str | None = None
    ) -> None:
        super().__init__(f"{path}{problem if problem.startswith((':', ',')) else f' {problem}'}")
        self.path, self.reason, self.at = Path(path), reason, at


class UnknownNameError(UserError):
    """A name that nothing has. `kind` says of what, `suggestion` is the nearest name that there is, or None."""

    def __init__(self, kind: str, name: object, known: Iterable[str], otherwise: str = "", where: str = "") -> None:
        known = list(known)
        self.kind, self.name, self.suggestion = kind, name, nearest(name, known)
        hint = otherwise or f"choose from {', '.join(known)}."
        hint = hint if self.suggestion is None else f"did you mean {self.suggestion!r}?"
        super().__init__(f"There is no {kind} {shown(name)}{where and f' {where}'}; {hint}")


def field_of(error: Exception) -> str | None:
    """The field that an error is about, for one that wraps it."""
    return error.field if isinstance(error, FieldError) else None


def nearest(word: object, known: Iterable[str]) -> str | None:
    """The known word that was probably meant, if there is one."""
    return next(iter(get_close_matches(str(word).lower(), list(known), n=1, cutoff=0.7)), None)


def did_you_mean(word: object, known: Iterable[str], otherwise: str) -> str:
    """The end of an error message about an unknown word: the nearest known one, or something else to do."""
    near = nearest(word, known)
    return otherwise if near is None else f"did you mean {near!r}?"


def shown(value: object, longest: int = 80) -> str:
    """A value as an error message shows it: its repr, which escapes control characters, cut where it is long."""
    try:
        text = repr(value)
    except ValueError:  # Python prints no int of more than 4,300 digits
        text = f"a number of {value.bit_length():,} bits" if isinstance(value, int) else f"a {type(value).__name__}"
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def printable(text: object, length: int = 100) -> str:
    """What a file or a library says, fit for an error message: one line without control characters, cut to `length`."""
    visible = "".join(letter if letter.isprintable() else " " for letter in str(text)[: 2 * length])
    line = " ".join(visible.split())
    return line if len(line) <= length else f"{line[: length - 1]}…"
