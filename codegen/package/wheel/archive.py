"""The wheel as bytes: the files of a package in a zip archive, with the metadata that installers read.

The same files give the same bytes. The platform is read off the shared library: `manylinux_2_17_x86_64` if it needs
nothing but glibc from that version on (PEP 600), else the platform of this Python.
"""

from __future__ import annotations

import base64
import hashlib
import io
import platform
import re
import sysconfig
import zipfile
from collections.abc import Mapping

GLIBC = frozenset({"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1"})
"""The libraries that every Linux with glibc has, also `ld-linux`."""
OLDEST = (2, 17)
"""The oldest glibc that installers know a name for on every CPU."""
EPOCH = (1980, 1, 1, 0, 0, 0)

METADATA = """Metadata-Version: 2.1
Name: {name}
Version: {version}
Summary: {summary}
Requires-Python: >=3.10
Requires-Dist: numpy>=1.23
"""
WHEEL = """Wheel-Version: 1.0
Generator: poly {poly}
Root-Is-Purelib: false
Tag: py3-none-{platform}
"""


def wheel_name(name: str, version: str, tag: str) -> str:
    """The file's name, of which installers read the platform."""
    return f"{name}-{version}-py3-none-{tag}.whl"


def platform_tag(library: bytes) -> str:
    """The platform that a shared library runs on."""
    names = {found.decode() for found in re.findall(rb"\0((?:lib|ld-)[\w.+-]*\.so[.\d]*)(?=\0)", library)}
    versions = [(int(a), int(b)) for a, b in re.findall(rb"\0GLIBC_(\d+)\.(\d+)", library)]
    foreign = {name for name in names if name not in GLIBC and not name.startswith("ld-linux")}
    if foreign or not versions:
        return re.sub(r"[-.]", "_", sysconfig.get_platform())
    major, minor = max(OLDEST, *versions)
    return f"manylinux_{major}_{minor}_{platform.machine()}"


def wheel(files: Mapping[str, bytes], name: str, version: str, summary: str, tag: str, poly: str) -> bytes:
    """The archive of a package's files, by their paths in it."""
    info = f"{name}-{version}.dist-info"
    every = {
        **files,
        f"{info}/METADATA": METADATA.format(name=name, version=version, summary=summary).encode(),
        f"{info}/WHEEL": WHEEL.format(poly=poly, platform=tag).encode(),
    }
    rows = [f"{path},sha256={_digest(content)},{len(content)}" for path, content in every.items()]
    every[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,", ""]).encode()
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in every.items():
            entry = zipfile.ZipInfo(path, EPOCH)
            entry.external_attr = (0o755 if path.endswith(".so") else 0o644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return made.getvalue()


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
