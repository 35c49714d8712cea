"""Values that no caller should pass, and arrays that no kernel should be given: for tests of all public functions.

A value whose own methods raise does so with `Own`, which may propagate, since it is the caller's own error.
"""

from __future__ import annotations

import array
import ctypes
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from unittest.mock import Mock

import numpy as np

import poly

LONG = 4000
"""The most characters of a message: it names the cause, and does not repeat a hundred thousand letters."""


class Own(Exception):
    """Raised by the caller's own objects."""


def _raise(*_: Any, **__: Any) -> Any:
    raise Own


class NoRepr:
    __repr__ = __str__ = _raise


class NoEq:
    __eq__ = _raise
    __hash__ = object.__hash__


class NoHash:
    __hash__ = _raise


class NoIndex:
    __index__ = __int__ = __float__ = _raise


class NoLen:
    __len__ = __iter__ = __bool__ = _raise


class NoAttributes:
    def __getattr__(self, name: str) -> Any:
        raise Own(name)


class Liar:
    """An object that claims by every protocol to be an array, and is none."""

    shape = "many"
    dtype = 7
    __array_interface__ = __array_struct__ = property(lambda _: {"shape": None})

    def __dlpack__(self, *_: Any, **__: Any) -> Any:
        return 3

    def __dlpack_device__(self) -> Any:
        return "here"

    def __array__(self, *_: Any, **__: Any) -> Any:
        return "no array"


class Text(str):
    """A subclass of str is a text as well."""


def _deep(levels: int) -> list[Any]:
    made: list[Any] = []
    for _ in range(levels):
        made = [made]
    return made


def _names() -> Iterator[str]:
    yield "i"


VALUES: dict[str, Any] = {
    "None": None,
    "True": True,
    "0": 0,
    "3": 3,
    "-1": -1,
    "2**70": 2**70,
    "-2**63": -(2**63),
    "10**400": 10**400,
    "10**5000": 10**5000,
    "1.5": 1.5,
    "nan": float("nan"),
    "inf": float("inf"),
    "1j": 1j,
    "empty": "",
    "long": "x" * 10**5,
    "surrogate": "\ud800",
    "null": "a\0b",
    "line": "a\nb",
    "quote": "a'\"`}{%s",
    "letter": "ä",
    "text": Text("i"),
    "bytes": b"i",
    "list": [],
    "names": ["i", "j"],
    "nested": [[[1]], "a", None],
    "deep": _deep(200_000),
    "dict": {},
    "odd dict": {3: "x", None: None},
    "set": {1},
    "tuple": (),
    "range": range(3),
    "generator": _names,
    "class": NoRepr,
    "lambda": lambda x: x,
    "builtin": len,
    "no source": eval("lambda A: A"),
    "object": object(),
    "no repr": NoRepr(),
    "no eq": NoEq(),
    "no hash": NoHash(),
    "no index": NoIndex(),
    "no len": NoLen(),
    "no attributes": NoAttributes(),
    "liar": Liar(),
    "np int": np.int64(3),
    "np float": np.float32(1.5),
    "np bool": np.True_,
    "np text": np.str_("i"),
    "array": np.zeros(3),
    "objects": np.array([None, 1], object),
    "dtype": poly.f32,
    "size": poly.sizes("M"),
    "module": np,
    "ellipsis": ...,
    "NotImplemented": NotImplemented,
    "exception": ValueError("x"),
}
"""The values by name, for the identifiers of tests."""


def fresh(name: str) -> Any:
    """The value of this name; a generator is a new one, since it can be exhausted."""
    return _names() if name == "generator" else VALUES[name]


@dataclass(frozen=True)
class Fault:
    """A call did something that it must not do."""

    call: str
    what: str

    def __str__(self) -> str:
        return f"{self.call}: {self.what}"


def fault(name: str, call: Any, /, *arguments: Any, **keywords: Any) -> Fault | None:
    """The problem with how a call ends; None if it ends in a result, a PolyError with a good message, or `Own`."""
    try:
        call(*arguments, **keywords)
    except poly.PolyError as error:
        return _wrong_message(name, str(error))
    except Own:
        return None
    except Exception as error:
        return Fault(name, f"{type(error).__module__}.{type(error).__name__}: {str(error)[:200]} {_place(error)}")
    return None


def _wrong_message(name: str, message: str) -> Fault | None:
    if not message.strip():
        return Fault(name, "an empty message")
    if len(message) > LONG:
        return Fault(name, f"a message of {len(message)} characters: {message[:100]}…")
    if not message.isprintable() and not message.replace("\n", "").isprintable():
        return Fault(name, f"a message that no terminal shows: {message[:200]!r}")
    return None


def _place(error: BaseException) -> str:
    """The place where it was raised: our innermost lines."""
    lines, trace = [], error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        lines.append(f"{'/'.join(code.co_filename.split('/')[-3:])}:{trace.tb_lineno} {code.co_name}")
        trace = trace.tb_next
    return " < ".join(reversed(lines[1:][-4:]))


class Plain(np.ndarray):
    """A subclass that adds nothing."""


class Boastful(np.ndarray):
    """A subclass that says it is larger than it is, dense, and writeable."""

    shape = property(lambda self: (10**6, 10**6))
    strides = property(lambda self: (4, 4))
    size = property(lambda self: 10**12)
    flags = property(lambda self: np.zeros(3).flags)

    def view(self, *_: Any) -> Any:
        return self


class Pretender:
    """An object that claims that its class is NumPy's."""

    __class__ = property(lambda _: np.ndarray)  # type: ignore[assignment]
    dtype = np.dtype(np.float32)
    shape = (4, 4)
    strides = (16, 4)
    ndim = 2
    flags = np.zeros(3).flags


class Interface:
    """An object with NumPy's own protocol alone."""

    def __init__(self, array: np.ndarray) -> None:
        self.__array_interface__ = array.__array_interface__
        self.keep = array


class Convertible:
    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        return self.array


class Shaped:
    """An object with a shape of any kind, and no memory."""

    def __init__(self, shape: Any) -> None:
        self.shape = shape
        self.dtype = np.dtype(np.float32)


class Exported:
    """An object that shares its memory by DLPack."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **keywords: Any) -> Any:
        return self.array.__dlpack__(**keywords)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


class NoDevice:
    """An object whose sharing of memory by DLPack fails."""

    def __dlpack__(self, **_: Any) -> Any:
        raise KeyError("device")


def _unaligned(array: np.ndarray) -> np.ndarray:
    return np.frombuffer(bytearray(1) + array.tobytes(), array.dtype, offset=1).reshape(array.shape)


def _strided(array: np.ndarray, shape: tuple[int, ...], strides: tuple[int, ...]) -> np.ndarray:
    return np.lib.stride_tricks.as_strided(array, shape, strides)


def _read_only(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


ARRAYS: dict[str, Callable[[np.ndarray], Any]] = {
    **{
        kind: (lambda a, kind=kind: a.astype(kind))
        for kind in ("f8", "f2", "g", "i4", "i8", "u1", "?", "c8", "O", "S4", "U4", "V4", ">f4")
    },
    "datetime64": lambda a: a.astype("i8").view("M8[s]"),
    "record": lambda a: a.view([("x", "f4")]),
    "nested record": lambda a: np.zeros(a.shape, [("x", "f4", (2,)), ("y", "O")]),
    "metadata": lambda a: a.view(np.dtype("f4", metadata={"a": 1})),
    "strings": lambda a: np.array([["a"] * 4] * 4, np.dtypes.StringDType()),
    "read only": _read_only,
    "broadcast": lambda a: np.broadcast_to(a[0], a.shape),
    "zero strides": lambda a: _strided(a, a.shape, (0, 4)),
    "reversed rows": lambda a: a[::-1],
    "reversed columns": lambda a: a[:, ::-1],
    "transposed": lambda a: a.T,
    "every other": lambda a: np.repeat(a, 2, 1)[:, ::2],
    "rows apart": lambda a: np.repeat(a, 2, 1)[:, :4],
    "windows": lambda a: _strided(a, a.shape, (4, 4)),
    "odd strides": lambda a: _strided(a, a.shape, (6, 4)),
    "unaligned": _unaligned,
    "plain subclass": lambda a: a.view(Plain),
    "boastful subclass": lambda a: a.view(Boastful),
    "matrix": lambda a: a.view(np.matrix),
    "recarray": lambda a: a.view(np.recarray),
    "masked": lambda a: np.ma.masked_array(a, a > 0.5),
    "pretender": lambda a: Pretender(),
    "mock": lambda a: Mock(spec=a),
    "list": lambda a: a.tolist(),
    "memoryview": lambda a: memoryview(a),
    "cast memoryview": lambda a: memoryview(a).cast("B"),
    "bytes": lambda a: a.tobytes(),
    "bytearray": lambda a: bytearray(a.tobytes()),
    "array.array": lambda a: array.array("f", a.ravel().tolist()),
    "ctypes": lambda a: (ctypes.c_float * 4 * 4)(),
    "interface": Interface,
    "convertible": Convertible,
    "dlpack": Exported,
    "no device": lambda a: NoDevice(),
    "one dimension": lambda a: a.ravel(),
    "three dimensions": lambda a: a[None],
    "no dimension": lambda a: np.array(a[0, 0]),
    "scalar": lambda a: a[0, 0],
    "64 dimensions": lambda a: np.zeros((1,) * 32, np.float32),
    "empty": lambda a: a[:0],
    "empty rows": lambda a: a[:, :0],
    "huge": lambda a: np.broadcast_to(np.float32(1), (2**30, 2**30)),
    "very huge": lambda a: np.broadcast_to(np.float32(1), (4, 2**58)),
    "huge and empty": lambda a: np.zeros((2**60, 0), np.float32),
    "shape of texts": lambda a: Shaped("ab"),
    "shape of lists": lambda a: Shaped(([], [])),
    "shape that fails": lambda a: Shaped(NoHash()),
    "endless shape": lambda a: Shaped(poly.f32),
}
"""Ways to spoil a 4 by 4 array of f32; some of them are fine after all."""
