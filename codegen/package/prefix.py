"""Names under one prefix: texts are written with `pfx_name` and `PFX_NAME`, which become the file's own prefix.

pfx_status pfx_check(…)  ->  matmul_status matmul_check(…)
PFX_OK                   ->  MATMUL_OK
"""

from __future__ import annotations

import re

OWN = re.compile(r"\b(?:pfx|PFX)_\w+")
WORD = re.compile(r"[A-Za-z_]\w*")


def prefixed(text: str, prefix: str, public: str | None = None) -> str:
    """The text with the prefix in place of every `pfx` and `PFX`.

    A name made this way may clash with a function in the text, as for a nest `overlap`. It then ends in `_`, unless it
    occurs in the `public` part too (None: all names are public).
    """
    taken, kept = set(WORD.findall(text)), set(OWN.findall(text if public is None else public))

    def named(found: re.Match[str]) -> str:
        word = found[0]
        name = (prefix if word.startswith("pfx") else prefix.upper()) + word[3:]
        return name if word in kept or name not in taken else name + "_"

    return OWN.sub(named, text)
