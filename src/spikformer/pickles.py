"""Pickles, read without unpickling: nothing that a file names is looked up, imported or called.

A pickle is a program for a small stack machine. `pickletools` of the standard library decodes its instructions, and the
machine below knows only those that CIFAR's files and PyTorch's checkpoints consist of. Their calls are recognised by
name and answered by functions of our own, which a `Dialect` lists. Python's own unpickler is left alone even with its
names restricted: a forged memo index makes it fill gigabytes, a deeply nested key ends the process.

Time and memory follow the content's size, and the number of instructions, which is limited: about 100 bytes for each.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

_MOST_INSTRUCTIONS = 1 << 20  # CIFAR-100's training file has 300,000
_MOST_ARGUMENTS = 16  # of one call: a file can repeat a call, and each passes on a copy of them
_OPERATIONS = {operation.code: operation for operation in pickletools.opcodes}
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
_LITERALS = {"BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT"}
_LITERALS |= {"BINSTRING", "SHORT_BINSTRING"}  # Python 2's str; pickletools gives it as Latin-1
_LITERALS |= {"BINUNICODE", "SHORT_BINUNICODE", "BINBYTES", "SHORT_BINBYTES"}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


class RefusedError(ValueError):
    """A pickle uses what its dialect does not have; `call` is the name of the function, if that is a call."""

    def __init__(self, reason: str, call: str | None = None) -> None:
        super().__init__(reason)
        self.call = call


class Name(str):
    """An object that the pickle imports: its name and no more."""


@dataclass(frozen=True)
class Dialect:
    """What pickles of one kind may ask for, and who answers."""

    calls: Mapping[str, Callable[..., Any]]
    """By name; each gets the arguments that the file gives, which can be anything, and the same ones again and again.

    So none may copy or hash them: a hundred thousand copies of a long list do not fit into memory, and the hash of a
    deeply nested tuple overflows C's stack.
    """
    build: Callable[[Any, Any], None]
    """Gets what a call made, and the state to put into it."""
    persistent: Callable[[Any], Any] | None = None
    """Gets the identifier of something that lies outside the pickle."""


def read_pickle(stream: BinaryIO, dialect: Dialect) -> Any:
    """The next pickle of a stream: dicts, lists, tuples, numbers, text, and what the dialect makes of the rest.

    Text comes as str whichever string type Python wrote it with, except for bytes that are not keys of a dict. Damage
    raises ValueError, IndexError, KeyError, TypeError or AttributeError; anything that is not admitted RefusedError.
    """
    machine = _Machine(dialect)
    for _ in range(_MOST_INSTRUCTIONS):
        operation = _next_operation(stream)
        if operation.name == "STOP":
            return machine.pop()
        machine.run(operation.name, _argument(operation, stream))
    raise RefusedError(f"has more than {_MOST_INSTRUCTIONS} instructions")


def as_text(value: Any) -> str:
    if type(value) is bytes:
        return value.decode("latin-1")
    if type(value) is not str:
        raise TypeError(f"a {type(value).__name__} where text should be")
    return value


def _next_operation(stream: BinaryIO) -> pickletools.OpcodeInfo:
    code = stream.read(1).decode("latin-1")
    if code not in _OPERATIONS:
        raise ValueError(f"there is no instruction {code!r}" if code else "it ends without an end")
    return _OPERATIONS[code]


def _argument(operation: pickletools.OpcodeInfo, stream: BinaryIO) -> Any:
    if operation.arg is None:
        return None
    if operation.name == "GLOBAL":  # not by pickletools, which expands backslashes here, and Python does not
        return ".".join(stream.readline().decode("latin-1").strip() for _ in ("module", "name"))
    if operation.arg.n == pickletools.UP_TO_NEWLINE:
        raise RefusedError(f"uses the pickle instruction {operation.name}")  # of protocol 0
    return operation.arg.reader(stream)


class _Machine:
    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._stack: list[Any] = []
        self._marked: list[list[Any]] = []  # the stacks below each open MARK
        self._memo: dict[int, Any] = {}
        self._keys: dict[bytes, str] = {}  # one text of each key, however many dicts have it

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
            stack.append(self._admitted(argument))
        elif operation == "STACK_GLOBAL":
            attribute, module = stack.pop(), stack.pop()
            stack.append(self._admitted(f"{as_text(module)}.{as_text(attribute)}"))
        elif operation in ("REDUCE", "NEWOBJ"):
            arguments, function = stack.pop(), stack.pop()
            stack.append(self._call(function, arguments))
        elif operation == "BUILD":
            state, target = stack.pop(), stack[-1]
            self._dialect.build(target, state)
        elif operation == "BINPERSID" and self._dialect.persistent:
            stack.append(self._dialect.persistent(stack.pop()))
        elif operation not in ("PROTO", "FRAME"):
            raise RefusedError(f"uses the pickle instruction {operation}")

    def _gather(self, operation: str, items: list[Any]) -> None:
        if operation == "TUPLE":
            self._stack.append(tuple(items))
        elif operation == "APPENDS" and type(self._stack[-1]) is list:
            self._stack[-1].extend(items)
        elif operation == "SETITEMS" and type(self._stack[-1]) is dict:
            self._stack[-1].update(self._pairs(items))
        else:
            raise TypeError(f"{operation} of {type(self._stack[-1]).__name__}")

    def _admitted(self, name: str) -> Name:
        if name not in self._dialect.calls:
            raise RefusedError(f"calls {name!r:.200}", name)
        return Name(name)

    def _call(self, function: Any, arguments: Any) -> Any:
        if type(function) is not Name or type(arguments) is not tuple:
            raise TypeError(f"a call of {type(function).__name__}")
        if len(arguments) > _MOST_ARGUMENTS:
            raise TypeError(f"a call with {len(arguments)} arguments")
        return self._dialect.calls[function](*arguments)

    def _pairs(self, items: list[Any]) -> Iterator[tuple[str | int, Any]]:
        for key, value in zip(items[::2], items[1::2], strict=True):
            if type(key) is bytes:
                if key not in self._keys:
                    self._keys[key] = as_text(key)
                key = self._keys[key]
            yield key if type(key) is int else as_text(key), value
