"""The pickles of CIFAR: their only calls rebuild arrays of bytes. Protocol 2, or 3 and 4 if saved again by Python 3."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from io import BytesIO
from math import prod
from typing import Any

import numpy as np

from spikformer import pickles
from spikformer.messages import printable
from spikformer.pickles import Dialect, Name, RefusedError, as_text


class _Bytes:
    """The dtype uint8, or an array of it: as the pickle makes it, empty, then filled by BUILD."""

    array: np.ndarray | None = None


def read_pickle(content: bytes, name: str) -> Any:
    """Dicts, lists, tuples, numbers, text and uint8 arrays; `name` is the file's, for the error message.

    Takes at most three times the content's size of memory, and 100 MB (see `spikformer.pickles`).
    """
    stream = BytesIO(content)
    try:
        value = pickles.read_pickle(stream, _cifar())
        return {key: _plain(item) for key, item in value.items()} if type(value) is dict else _plain(value)
    except RefusedError as refused:
        raise ValueError(
            f"{name} {printable(refused, 200)}, before byte {stream.tell()}, which CIFAR's files do not; it was not "
            "loaded and nothing in it was executed."
        ) from None
    except (ValueError, IndexError, KeyError, TypeError) as error:
        reason = printable(error, 200) or type(error).__name__
        raise ValueError(f"{name} is damaged or not CIFAR's, before byte {stream.tell()} ({reason}).") from None


def _cifar() -> Dialect:
    @cache  # one copy of each text, however often the pickle asks for it
    def encode(text: str) -> bytes:
        return text.encode("latin-1")

    def encode_call(text: Any, encoding: Any) -> bytes:  # how Python 3 writes bytes for Python 2
        if encoding != "latin1":
            raise TypeError("text in another encoding than NumPy gives it")
        return encode(as_text(text))

    def array(kind: Any, *_: Any) -> _Bytes:
        if kind != "numpy.ndarray":
            raise TypeError("an array with other arguments than NumPy gives it")
        return _Bytes()

    def dtype(code: Any, *_: Any) -> _Bytes:
        if as_text(code) not in ("u1", "|u1"):
            raise RefusedError("holds an array that is not of uint8")
        return _Bytes()

    def build(target: Any, state: Any) -> None:
        """An array's state is (version, shape, dtype, Fortran order, bytes); a dtype's adds nothing to uint8."""
        if type(target) is not _Bytes or type(state) is not tuple:
            raise TypeError(f"BUILD of {type(target).__name__}")
        if len(state) != 5:
            return
        _, shape, kind, fortran_order, values = state
        values = encode(values) if type(values) is str else values
        if type(kind) is not _Bytes or type(values) is not bytes or fortran_order:
            raise TypeError("an array that is not plain bytes in C order")
        if type(shape) is not tuple or len(shape) != 2 or not all(type(side) is int and side > 0 for side in shape):
            raise ValueError("an array without rows and columns")
        if prod(shape) != len(values):
            raise ValueError(f"an array with {len(values)} bytes, which is not what its shape says")
        target.array = np.frombuffer(values, np.uint8).reshape(shape)

    def never(*_: Any) -> None:
        raise TypeError("a call of a type")

    reconstruct = ("numpy.core.multiarray._reconstruct", "numpy._core.multiarray._reconstruct")  # NumPy 1 and 2
    calls: dict[str, Callable[..., Any]] = {"numpy.ndarray": never, "numpy.dtype": dtype, "_codecs.encode": encode_call}
    return Dialect(calls | dict.fromkeys(reconstruct, array), build)


def _plain(value: Any) -> Any:
    """The array in place of its stand-in."""
    if type(value) is Name or (type(value) is _Bytes and value.array is None):
        raise TypeError("a bare name or an unfinished array as a value")
    return value.array if type(value) is _Bytes else value
