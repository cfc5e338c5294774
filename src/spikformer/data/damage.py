"""Sets of several files: the rest is read even when one cannot be, so that all damage is told at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

Content = TypeVar("Content")


class DamagedFilesError(ValueError):
    """Files of a set that cannot be read, a sentence each."""

    def __init__(self, sentences: list[str]) -> None:
        more = len(sentences) - 1
        others = f" ({more} more of its files cannot be read, `spikformer data check` lists them)" if more else ""
        super().__init__(f"{sentences[0]}{others}")
        self.sentences = sentences


def read_each(readers: Iterable[Callable[[], Content]]) -> list[Content]:
    """What each of them returns. A file that is not there at all is another matter, and raised at once."""
    contents, sentences = [], []
    for read in readers:
        try:
            contents.append(read())
        except FileNotFoundError:
            raise
        except DamagedFilesError as error:
            sentences += error.sentences
        except (ValueError, OSError) as error:
            sentences.append(str(error))
    if sentences:
        raise DamagedFilesError(sentences)
    return contents
