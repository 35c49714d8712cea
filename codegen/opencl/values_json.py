"""Device programs as JSON, to keep them and to hand them to another process."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from codegen.affine import Affine
from codegen.opencl.values import Argument, DeviceKernel, DeviceProgram, HostIf, HostLoop, HostNode, Launch, Scratch
from codegen.program import Buffer
from microkernels.dtypes import DTYPES

NODES: dict[str, Any] = {node.__name__: node for node in (Launch, HostLoop, HostIf)}
INNER = ("body", "then", "otherwise")
"""Fields of a node of the plan that hold nodes."""


def to_json(program: DeviceProgram) -> str:
    """The program as one JSON object."""
    plain = {**asdict(program), "plan": [_plain(node) for node in program.plan]}
    return json.dumps(plain)


def from_json(text: str) -> DeviceProgram:
    """The program that `to_json` wrote."""
    found = json.loads(text)
    return DeviceProgram(
        name=found["name"],
        sizes=tuple(found["sizes"]),
        buffers=tuple(_buffer(buffer) for buffer in found["buffers"]),
        source=found["source"],
        kernels=tuple(_kernel(kernel) for kernel in found["kernels"]),
        plan=_nodes(found["plan"]),
        scratch=tuple(Scratch(s["name"], DTYPES[s["dtype"]["name"]], s["count"]) for s in found["scratch"]),
    )


def _plain(node: HostNode) -> dict[str, Any]:
    inner = {name: [_plain(child) for child in getattr(node, name)] for name in INNER if hasattr(node, name)}
    return {"node": type(node).__name__, **vars(node), **inner}


def _nodes(plain: Iterable[Mapping[str, Any]]) -> tuple[HostNode, ...]:
    return tuple(_node(dict(fields)) for fields in plain)


def _node(fields: dict[str, Any]) -> HostNode:
    make = NODES[fields.pop("node")]
    inner = {name: _nodes(fields[name]) for name in INNER if name in fields}
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}
    made: HostNode = make(**{**values, **inner})
    return made


def _kernel(plain: Mapping[str, Any]) -> DeviceKernel:
    arguments = (Argument(a["name"], a["kind"], a["dtype"] and DTYPES[a["dtype"]["name"]]) for a in plain["arguments"])
    return DeviceKernel(plain["name"], tuple(arguments), tuple(plain["items"]))


def _buffer(plain: Mapping[str, Any]) -> Buffer:
    shape = tuple(Affine(tuple((n, c) for n, c in extent["terms"]), extent["constant"]) for extent in plain["shape"])
    strides = None if plain["strides"] is None else tuple(plain["strides"])
    return Buffer(plain["name"], DTYPES[plain["dtype"]["name"]], shape, plain["kind"], strides)
