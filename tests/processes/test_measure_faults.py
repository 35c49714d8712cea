"""A full disk, or a process that the system refuses, while candidates are measured: our error, or a failed trial."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from tuning_fakes import grid_space

import poly
from poly.autoschedule.spaces.space import Point
from poly.measure.live import LiveMeasurer
from poly.search.events import Ask

CALLS = [
    "pathlib.os.mkdir",
    "poly.measure.live.TemporaryDirectory",
    "poly.measure.child.subprocess.Popen",
    "poly.measure.child.Pipe",
    "codegen.toolchain.build.subprocess.Popen",
    "codegen.system.files.os.open",
    "codegen.system.files.os.replace",
]


def failing(code: int) -> Callable[..., Any]:
    def fail(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    return fail


@pytest.mark.parametrize(("call", "code"), list(product(CALLS, (errno.ENOSPC, errno.EAGAIN, errno.EMFILE)))[::2])
def test_the_system_refuses(call: str, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def measure() -> list[str]:
        with LiveMeasurer(grid_space()) as measurer:
            return [trial.failure for trial in measurer.measure(Ask((Point(0, (0, 0)),)))]

    with monkeypatch.context() as patched:
        patched.setattr(call, failing(code))
        try:
            failures = measure()
        except poly.PolyError as error:
            assert len(str(error)) > 20
        else:
            assert all(failures) or call == "pathlib.os.mkdir", "what has failed is told"
    assert measure() == [""]
