"""Sets of few large files: the rest is read even when one cannot be, so that all damage is told at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

Content = TypeVar("Content")


class DamagedFilesError(ValueError):
    """Files of a set that cannot be read, a sentence each."""

    def __init__(self, sentences: list[str]) -> None:
        more = len(sentences) - 1
        others = f" (so are {more} more of its files; `spikformer data check` lists them)" if more else ""
        super().__init__(f"{sentences[0]}{others}")
        self.sentences = sentences


def read_each(readers: Iterable[Callable[[], Content]]) -> list[Content]:
    """What each of them returns."""
    contents, sentences = [], []
    for read in readers:
        try:
            contents.append(read())
        except ValueError as error:
            sentences.append(str(error))
    if sentences:
        raise DamagedFilesError(sentences)
    return contents
