"""C constants that stand before the lines that use them."""

from __future__ import annotations

import re
from collections.abc import Sequence


def needed(definitions: Sequence[str], lines: Sequence[str]) -> list[str]:
    """The lines below those definitions `const int64_t NAME = …;` that they use, directly or through others."""
    kept = list(lines)
    for definition in reversed(definitions):
        name = definition.removeprefix("const int64_t ").partition(" ")[0]
        if any(re.search(rf"\b{name}\b", line) for line in kept):
            kept.insert(0, definition)
    return kept
