"""Errors of a user's mistakes: their fields, how they cross process borders, and the wording of each kind."""

import copy
import pickle
from pathlib import Path

import pytest
from tests.mistakes import field_error, file_error, mistake, shows

from spikformer.errors import (
    FieldError,
    FileError,
    InputError,
    UnknownNameError,
    UserError,
    did_you_mean,
    field_of,
    printable,
    shown,
)

pytestmark = pytest.mark.core

ERRORS = [
    FieldError("tau", "tau must be at least 1, got 0."),
    InputError("channels", "3 channels", 1, "convert it"),
    FileError("folder/a.aedat", ": event 4 has polarity 5.", "truncated", at=4),
    UnknownNameError("model", "spikfromer", ["spikformer"]),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_crosses_processes_with_its_fields(error: UserError) -> None:
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert vars(again) == vars(error)
    assert isinstance(error, ValueError)


def test_what_each_kind_says() -> None:
    assert [str(error) for error in ERRORS] == [
        "tau must be at least 1, got 0.",
        "Expected 3 channels, got 1; convert it.",
        "folder/a.aedat: event 4 has polarity 5.",
        "There is no model 'spikfromer'; did you mean 'spikformer'?",
    ]
    assert str(InputError("channels", "3 channels", 1)) == "Expected 3 channels, got 1."
    assert str(FileError(Path("a.bin"), "is empty.")) == "a.bin is empty."
    assert str(UnknownNameError("model", "x", ["a", "b"])) == "There is no model 'x'; choose from a, b."
    assert (
        str(UnknownNameError("model", "x", [], "`models` lists them.")) == "There is no model 'x'; `models` lists them."
    )


def test_fields() -> None:
    *_, file, name = ERRORS
    assert (file.path, file.reason, file.at) == (Path("folder/a.aedat"), "truncated", 4)
    assert (name.kind, name.name, name.suggestion) == ("model", "spikfromer", "spikformer")
    assert UnknownNameError("model", "x", ["spikformer"]).suggestion is None
    assert [field_of(error) for error in ERRORS] == ["tau", "channels", None, None]
    assert FileError("a", "is empty.").reason == "damaged"


def test_messages_are_short_and_printable_whatever_is_shown() -> None:
    assert shown("\x1b" * 10_000).isprintable()
    assert len(shown("x" * 10_000)) == len(shown(10**400)) == 80
    assert shows(shown(10**5000), f"{(10**5000).bit_length():,}")
    assert printable("a\x1b\n b", 10) == "a b"
    assert len(printable("x" * 10_000)) == 100
    assert did_you_mean("Trian", ["train"], "else") == "did you mean 'train'?"
    assert did_you_mean(3, ["train"], "else") == "else"


@pytest.mark.parametrize("wrong", [{"field": "alpha"}, {"field": "tau", "got": 1}])
def test_the_helper_of_these_tests_looks_at_fields(wrong: dict[str, object]) -> None:
    with pytest.raises((AssertionError, AttributeError)), mistake(FieldError, **wrong):
        raise ERRORS[0]


def test_the_helper_of_these_tests_looks_for_whole_words_outside_of_the_path() -> None:
    with field_error("tau", "tau", 0):
        raise ERRORS[0]
    with pytest.raises(AssertionError), field_error("tau", "ta"):
        raise ERRORS[0]
    with file_error("4/a", "damaged", 5):
        raise FileError("4/a", "has 5.")
    with pytest.raises(AssertionError), file_error("4/a", "damaged", 4):
        raise FileError("4/a", "has 5.")
    with pytest.raises(AssertionError), file_error("4/a", "truncated"):
        raise FileError("4/a", "has 5.")
