"""Expected errors, by their types, fields and the values that their messages must show; never by their wording."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from spikformer.data.dataset import DamagedFilesError
from spikformer.errors import FieldError, FileError, UnknownNameError


def shows(message: str, *values: object) -> bool:
    """Whether a message has these values, each as a word of its own: 3 is not in 30."""
    return all(_word(str(value)).search(message) for value in values)


def _word(text: str) -> re.Pattern[str]:
    before = r"(?<!\w)" if text[:1].isalnum() else ""
    after = r"(?!\w)" if text[-1:].isalnum() else ""
    return re.compile(f"{before}{re.escape(text)}{after}")


@contextmanager
def mistake(kind: type[Exception], /, *values: object, **fields: Any) -> Iterator[pytest.ExceptionInfo[Any]]:
    """An error of this kind, with these fields, whose message shows these values and has one line."""
    with pytest.raises(kind) as caught:
        yield caught
    error = caught.value
    message = str(error)
    if isinstance(error, DamagedFilesError):
        error = error.errors[0]
    assert {name: getattr(error, name) for name in fields} == fields, message
    assert "\n" not in message
    elsewhere = message.replace(str(getattr(error, "path", "")), "")
    for value in values:
        assert shows(elsewhere, value), f"{value} is not in: {message}"


def field_error(field: str, *values: object, **fields: Any) -> Any:
    """A field or an argument with a wrong value."""
    return mistake(FieldError, *values, field=field, **fields)


def file_error(path: str | Path, reason: str = "damaged", *values: object, **fields: Any) -> Any:
    """A file or folder that cannot be used, alone or as the first of several."""
    return mistake((FileError, DamagedFilesError), *values, path=Path(path), reason=reason, **fields)  # type: ignore


def unknown_name(kind: str, name: object, *values: object, suggestion: str | None = None) -> Any:
    """A name that nothing has. What else could be chosen is in `values`."""
    shown = (suggestion,) if suggestion else values
    return mistake(UnknownNameError, repr(name), *shown, kind=kind, name=name, suggestion=suggestion)
