"""Device programs as JSON, to store them and to pass them to another process.

Launch("step_i", (Linear(…),))    {"is": "Launch", "kernel": "step_i", "groups": [{"is": "Linear", …}]}
"""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from typing import Any

from codegen.ir.integer import Compare, Connected, Linear, Op, Select
from codegen.ir.program import Buffer
from codegen.opencl.values import Argument, DeviceKernel, DeviceProgram, HostIf, HostLoop, Launch, Scratch
from microkernels.dtypes import DTYPES, DType

PARTS = (Argument, Buffer, Select, Compare, Connected, DeviceKernel, HostIf, HostLoop, Launch, Linear, Op, Scratch)
CLASSES: dict[str, Any] = {part.__name__: part for part in (DeviceProgram, *PARTS)}


def to_json(program: DeviceProgram) -> str:
    """The program as one JSON object."""
    return json.dumps(_plain(program))


def from_json(text: str) -> DeviceProgram:
    """The program that `to_json` wrote."""
    made: DeviceProgram = _value(json.loads(text))
    return made


def _plain(value: Any) -> Any:
    if isinstance(value, DType):
        return {"is": "DType", "name": value.name}
    if is_dataclass(value):
        return {"is": type(value).__name__, **{one.name: _plain(getattr(value, one.name)) for one in fields(value)}}
    return [_plain(part) for part in value] if isinstance(value, tuple) else value


def _value(plain: Any) -> Any:
    if isinstance(plain, list):
        return tuple(map(_value, plain))
    if not isinstance(plain, dict):
        return plain
    found = {name: _value(part) for name, part in plain.items()}
    kind = found.pop("is")
    return DTYPES[found["name"]] if kind == "DType" else CLASSES[kind](**found)
