"""Whether a mirror image keeps its class, as far as the names of the classes tell."""

from __future__ import annotations

import re
from collections.abc import Sequence

# Words, not parts of words: "bright" and "upright" say nothing about sides.
_SIDES = re.compile(r"(?<![a-z])(left|right|clockwise|anticlockwise|counterclockwise)(?![a-z])")


def can_mirror(class_names: Sequence[str]) -> bool:
    """No class is called left, right or clockwise: a mirror would turn one into the other."""
    return not any(_SIDES.search(_words(name)) for name in class_names)


def _words(name: str) -> str:
    """In small letters, with camelCase parted."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()
