"""The OpenCL device that tests run on: PoCL's on this CPU, or the one that POLY_TEST_DEVICE names (`opencl:gpu`)."""

from __future__ import annotations

import os

import pytest

from codegen.opencl.devices import Device, find
from microkernels.errors import TargetError

TARGET = os.environ.get("POLY_TEST_DEVICE", "opencl:pocl")


def device() -> Device:
    """The device; skips the test if it cannot be used."""
    try:
        return find(TARGET)
    except TargetError as error:
        pytest.skip(f"needs PoCL, or a device that POLY_TEST_DEVICE names: {error}")
