"""The versions of poly: of this installation, and of the release that its source belongs to."""

from __future__ import annotations

RELEASE = "0.1.0"
"""The release that this source becomes. It is part of the key of tuning records, and stands in generated files."""

try:
    from poly._version import __version__ as __version__
except ImportError:  # run from a folder of sources that was never installed
    __version__ = f"{RELEASE}.dev0"
