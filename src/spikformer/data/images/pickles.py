"""The pickles of CIFAR, read without unpickling: nothing that a file names is looked up, imported or called.

A pickle is a program for a small stack machine. `pickletools` of the standard library decodes its instructions, and the
machine below knows only those that CIFAR's files consist of (protocol 2, and 3 or 4 if saved again by Python 3).
Their only calls rebuild an array of bytes; they are recognised by name and done here. Python's own unpickler is left
alone even with its names restricted: a forged memo index makes it fill gigabytes, a deeply nested key ends the process.
"""

from __future__ import annotations

import pickletools
from collections.abc import Iterator
from io import BytesIO
from math import prod
from typing import Any

import numpy as np

_OPERATIONS = {operation.code: operation for operation in pickletools.opcodes}
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_LITERALS = {"BININT", "BININT1", "BININT2"}
_LITERALS |= {"BINSTRING", "SHORT_BINSTRING"}  # Python 2's str; pickletools gives it as Latin-1
_LITERALS |= {"BINUNICODE", "SHORT_BINUNICODE", "BINBYTES", "SHORT_BINBYTES"}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}

_RECONSTRUCT = ("numpy.core.multiarray._reconstruct", "numpy._core.multiarray._reconstruct")  # NumPy 1 and 2
_ADMITTED = (*_RECONSTRUCT, "numpy.ndarray", "numpy.dtype", "_codecs.encode")


class _Name(str):
    """Something that the pickle wants to have: its name and no more."""


class _Bytes:
    """The dtype uint8, or an array of it: as the pickle makes it, empty, then filled by BUILD."""

    array: np.ndarray | None = None


def read_pickle(content: bytes, name: str) -> Any:
    """Dicts, lists, tuples, numbers, text and uint8 arrays; `name` is the file's, for the sentence if it is refused.

    Text comes as str whichever string type Python wrote it with, except for bytes that are no dict's keys.
    """
    machine = _Machine()
    place = 0
    try:
        stream = BytesIO(content)
        while (operation := _next_operation(stream)).name != "STOP":
            machine.run(operation.name, _argument(operation, stream))
            place = stream.tell()
        return _plain(machine.pop())
    except _RefusedError as refused:
        raise ValueError(
            f"{name} {refused}, at byte {place}, which CIFAR's files do not; it was not loaded and nothing in it was "
            "executed."
        ) from None
    except (ValueError, IndexError, KeyError, TypeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(f"{name} is damaged or no pickle of CIFAR's, at byte {place} ({reason:.200}).") from None


class _RefusedError(Exception):
    """The pickle asks for what is not admitted."""


def _next_operation(stream: BytesIO) -> pickletools.OpcodeInfo:
    code = stream.read(1).decode("latin-1")
    if code not in _OPERATIONS:
        raise ValueError(f"there is no instruction {code!r}" if code else "it ends without an end")
    return _OPERATIONS[code]


def _argument(operation: pickletools.OpcodeInfo, stream: BytesIO) -> Any:
    if operation.arg is None:
        return None
    if operation.name == "GLOBAL":  # not by pickletools, which expands backslashes here, and Python does not
        return ".".join(stream.readline().decode("latin-1").strip() for _ in ("module", "name"))
    if operation.arg.n == pickletools.UP_TO_NEWLINE:
        raise _RefusedError(f"uses the pickle instruction {operation.name}")  # of protocol 0
    return operation.arg.reader(stream)


class _Machine:
    def __init__(self) -> None:
        self._stack: list[Any] = []
        self._marked: list[list[Any]] = []  # the stacks below each open MARK
        self._memo: dict[int, Any] = {}

    def pop(self) -> Any:
        return self._stack.pop()

    def run(self, operation: str, argument: Any) -> None:
        stack, memo = self._stack, self._memo
        if operation in _LITERALS:
            stack.append(argument)
        elif operation in _CONSTANTS:
            stack.append(_CONSTANTS[operation])
        elif operation in ("BINPUT", "LONG_BINPUT"):
            memo[argument] = stack[-1]
        elif operation == "MEMOIZE":
            memo[len(memo)] = stack[-1]
        elif operation in ("BINGET", "LONG_BINGET"):
            stack.append(memo[argument])
        elif operation == "EMPTY_LIST":
            stack.append([])
        elif operation == "EMPTY_DICT":
            stack.append({})
        elif operation in _TUPLES:
            items = [stack.pop() for _ in range(_TUPLES[operation])]
            stack.append(tuple(reversed(items)))
        elif operation == "MARK":
            self._marked.append(stack)
            self._stack = []
        elif operation in ("TUPLE", "APPENDS", "SETITEMS"):
            self._stack = self._marked.pop()
            self._gather(operation, stack)
        elif operation == "APPEND":
            self._gather("APPENDS", [stack.pop()])
        elif operation == "SETITEM":
            self._gather("SETITEMS", [stack.pop(), stack.pop()][::-1])
        elif operation == "GLOBAL":
            stack.append(_admitted(argument))
        elif operation == "STACK_GLOBAL":
            attribute, module = stack.pop(), stack.pop()
            stack.append(_admitted(f"{_text(module)}.{_text(attribute)}"))
        elif operation == "REDUCE":
            arguments, function = stack.pop(), stack.pop()
            stack.append(_call(function, arguments))
        elif operation == "BUILD":
            state, target = stack.pop(), stack[-1]
            _fill(target, state)
        elif operation not in ("PROTO", "FRAME"):
            raise _RefusedError(f"uses the pickle instruction {operation}")

    def _gather(self, operation: str, items: list[Any]) -> None:
        if operation == "TUPLE":
            self._stack.append(tuple(items))
        elif operation == "APPENDS" and type(self._stack[-1]) is list:
            self._stack[-1].extend(map(_plain, items))
        elif operation == "SETITEMS" and type(self._stack[-1]) is dict:
            self._stack[-1].update(_pairs(items))
        else:
            raise TypeError(f"{operation} of {type(self._stack[-1]).__name__}")


def _admitted(name: str) -> _Name:
    if name not in _ADMITTED:
        raise _RefusedError(f"wants to call {name!r:.200}")
    return _Name(name)


def _call(function: Any, arguments: Any) -> Any:
    if type(function) is not _Name:
        raise TypeError(f"a call of {type(function).__name__}")
    if function in _RECONSTRUCT and arguments[0] == "numpy.ndarray":
        return _Bytes()
    if function == "numpy.dtype":
        if _text(arguments[0]) not in ("u1", "|u1"):
            raise _RefusedError("holds an array that is not of uint8")
        return _Bytes()
    if function == "_codecs.encode" and arguments[1] == "latin1":  # how Python 3 writes bytes for Python 2
        return _text(arguments[0]).encode("latin-1")
    raise TypeError(f"{function} with other arguments than NumPy gives it")


def _fill(target: Any, state: Any) -> None:
    """An array's state is (version, shape, dtype, Fortran order, bytes); a dtype's adds nothing to uint8."""
    if type(target) is not _Bytes or type(state) is not tuple:
        raise TypeError(f"BUILD of {type(target).__name__}")
    if len(state) != 5:
        return
    _, shape, dtype, fortran_order, values = state
    values = values.encode("latin-1") if type(values) is str else values
    if type(dtype) is not _Bytes or type(values) is not bytes or fortran_order:
        raise TypeError("an array that is not plain bytes in C order")
    if type(shape) is not tuple or len(shape) != 2 or not all(type(side) is int and side > 0 for side in shape):
        raise ValueError("an array without rows and columns")
    if prod(shape) != len(values):
        raise ValueError(f"an array with {len(values)} bytes, which is not what its shape says")
    target.array = np.frombuffer(values, np.uint8).reshape(shape)


def _pairs(items: list[Any]) -> Iterator[tuple[str, Any]]:
    for key, value in zip(items[::2], items[1::2], strict=True):
        yield _text(key), _plain(value)


def _text(value: Any) -> str:
    if type(value) is bytes:
        return value.decode("latin-1")
    if type(value) is not str:
        raise TypeError(f"a {type(value).__name__} where text should be")
    return value


def _plain(value: Any) -> Any:
    """The array in place of its stand-in. CIFAR's pickles put it into a dict after it was filled."""
    if type(value) is _Name or (type(value) is _Bytes and value.array is None):
        raise TypeError("a bare name or an unfinished array as a value")
    return value.array if type(value) is _Bytes else value
