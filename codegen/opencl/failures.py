"""Explains errors of pyopencl: no memory left, a device that is lost, a launch that the device refuses."""

from __future__ import annotations

from codegen.errors import DeviceError
from codegen.opencl.devices import Device

MEMORY = ("MEM_OBJECT_ALLOCATION_FAILURE", "OUT_OF_RESOURCES", "OUT_OF_HOST_MEMORY", "INVALID_BUFFER_SIZE")
LOST = (
    "DEVICE_NOT_AVAILABLE",
    "DEVICE_NOT_FOUND",
    "INVALID_DEVICE",
    "INVALID_CONTEXT",
    "INVALID_COMMAND_QUEUE",
    "EXEC_STATUS_ERROR",
)
LIMITS = ("INVALID_WORK_GROUP_SIZE", "INVALID_WORK_ITEM_SIZE", "INVALID_GLOBAL_WORK_SIZE")


def device_error(error: Exception, device: Device, wanted: int, outputs: str) -> DeviceError:
    """The DeviceError for an error of pyopencl, or for memory that ran out.

    `wanted` are the bytes of the call's arrays and scratch arrays; `outputs` describes the state of the outputs.
    """
    text, label = str(error), device.label
    if isinstance(error, MemoryError) or any(word in text for word in MEMORY):
        return DeviceError(
            f"{label} has no memory for this call: its arrays and scratch arrays take {amount(wanted)}; the device has "
            f"{amount(device.memory_bytes)}, of which one buffer may take {amount(device.buffer_bytes)} ({text}). "
            f"{outputs} Remedy: free arrays that lie on the device, call on parts of the arrays, or take another "
            "device."
        )
    if any(word in text for word in LOST):
        return DeviceError(
            f"{label} is lost, or its queue or context cannot be used any more: {text}. {outputs} "
            "Remedy: restart Python; `poly machine` tells whether the device works."
        )
    if any(word in text for word in LIMITS):
        return DeviceError(
            f"{label} refuses a launch: {text}. {outputs} A work-group takes more work-items, registers or local "
            "memory than the device has. Remedy: smaller tiles or fewer items in the schedule."
        )
    return DeviceError(f"{label} failed: {text}. {outputs}")


def amount(size: int) -> str:
    """A number of bytes for a message."""
    for unit, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if size >= unit:
            return f"{size / unit:.1f} {name}"
    return f"{size} bytes"
