"""Names under one prefix: the file's text is written with `pfx_name` and `PFX_NAME`, and made with its own prefix.

    pfx_status pfx_check(…)  ->  matmul_status matmul_check(…)
    PFX_OK                   ->  MATMUL_OK
"""

from __future__ import annotations

import re


def prefixed(text: str, prefix: str) -> str:
    """The text with every `pfx_` and `PFX_` replaced."""
    pattern = re.compile(r"\b(pfx|PFX)_(?=\w)")
    return pattern.sub(lambda found: f"{prefix if found[1] == 'pfx' else prefix.upper()}_", text)
