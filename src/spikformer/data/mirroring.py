"""Whether a mirror image keeps its class, as far as the names of the classes tell."""

from __future__ import annotations

import re
from collections.abc import Sequence

# Words, not parts of words: "bright" and "upright" say nothing about sides.
_SIDES = re.compile(
    r"(?<![a-z])((turn|hand|arm|side)?(left|right)(turn|hand|handed|arm|leg|side|wards?|most)?|(anti|counter)?clockwise|c?cw)(?![a-z])"
)


def can_mirror(class_names: Sequence[str]) -> bool:
    """No class is called left, right or clockwise, and none is a letter or digit: a mirror would make another of it."""
    return not any(len(name) == 1 or _SIDES.search(_words(name)) for name in class_names)


def _words(name: str) -> str:
    """In small letters, with camelCase and LEFTTurn parted."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name).lower()
