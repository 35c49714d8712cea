"""Advice for a user whose OpenCL has no device."""

from __future__ import annotations

import ctypes
import ctypes.util
import os
from pathlib import Path

NO_PYOPENCL = "the package pyopencl, which poly needs, is not installed: pip install pyopencl"
CPU_REMEDY = (
    "For this CPU install PoCL, a platform that compiles for CPUs: apt install pocl-opencl-icd (Debian, Ubuntu), or "
    "conda install pocl (conda-forge). Where it is installed and not found, set OCL_ICD_VENDORS to the directory of "
    "its .icd file. (The package pocl-binary-distribution of PyPI is PoCL 3.0, whose compiler fails on newer CPUs.)"
)
NVIDIA = "libnvidia-opencl.so.1"
VENDORS = Path("/etc/OpenCL/vendors")


def no_platform() -> str:
    """The message that no platform was found, and where the loader looked."""
    files = icd_texts()
    if not files:
        return (
            "OpenCL has no platform here: no file *.icd, in /etc/OpenCL/vendors or the directory that OCL_ICD_VENDORS "
            "names, points to a driver's library"
        )
    named = "; ".join(f"{path} names {text or 'nothing'}: {_trouble(text)}" for path, text in files.items())
    return f"OpenCL has no platform here: {named}"


def _trouble(library: str) -> str:
    """Why a driver's library gives no platform."""
    try:
        ctypes.CDLL(library or "no library")
    except OSError as error:
        return f"it cannot be loaded ({error})"
    return "it offers no platform here"


def remedies() -> list[str]:
    """What a user can do here, most promising first."""
    return [*nvidia_remedy(), CPU_REMEDY]


def nvidia_remedy(folders: tuple[Path, ...] | None = None) -> list[str]:
    """How to register an NVIDIA GPU whose driver lacks its .icd file, as in many containers."""
    library = _nvidia_library(folders)
    if library is None or any(NVIDIA in text for text in icd_texts().values()):
        return []
    return [
        f"The NVIDIA driver's OpenCL library is here ({library}), but no .icd file names it: write one with "
        f"`mkdir -p ~/.opencl && echo {library} > ~/.opencl/nvidia.icd`, and set OCL_ICD_VENDORS=$HOME/.opencl "
        f"(or put the file into {VENDORS})."
    ]


def _nvidia_library(folders: tuple[Path, ...] | None) -> str | None:
    """The library's name if the loader finds it, else its path."""
    if folders is None:
        if ctypes.util.find_library("nvidia-opencl"):
            return NVIDIA
        system = ("/usr/lib", "/usr/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu")
        extra = ("/usr/local/nvidia/lib64", "/usr/local/nvidia/lib", "/usr/lib/wsl/lib")
        path = os.environ.get("LD_LIBRARY_PATH", "").split(":")
        folders = tuple(Path(folder) for folder in (*filter(None, path), *system, *extra))
    return next((str(folder / NVIDIA) for folder in folders if (folder / NVIDIA).exists()), None)


def icd_texts() -> dict[str, str]:
    """The texts of the .icd files that a loader reads, by path."""
    texts = {}
    for file in _icd_files():
        try:
            texts[str(file)] = file.read_text(errors="replace").strip()
        except OSError:
            continue
    return texts


def _icd_files() -> list[Path]:
    chosen = os.environ.get("OCL_ICD_VENDORS")
    if chosen and Path(chosen).is_file():
        return [Path(chosen), *(file for place in _shipped() for file in sorted(place.glob("*.icd")))]
    places = [*_shipped(), Path(chosen) if chosen else VENDORS]
    named = filter(None, os.environ.get("OCL_ICD_FILENAMES", "").split(":"))
    return [*(file for place in places for file in sorted(place.glob("*.icd"))), *map(Path, named)]


def _shipped() -> list[Path]:
    """The folder of the platforms in pyopencl's wheel, or that pip installs beside it."""
    from importlib.util import find_spec

    spec = find_spec("pyopencl")
    return [Path(spec.origin).parent / ".libs"] if spec is not None and spec.origin else []
