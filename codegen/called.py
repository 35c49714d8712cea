"""The helper functions that a text of C calls, found by their names."""

from __future__ import annotations

import re


def with_called(known: dict[str, str], code: str, text: str) -> str:
    """The text, after those known functions that the code, the text, or one of these functions calls.

    `known` has the functions by name, each after those that it calls itself.
    """
    for name, helper in reversed(known.items()):
        called = f"{name}(" in code or f"{name}(" in text  # searching for words takes longer
        if called and re.search(rf"\b{name}\(", code + text):
            text = f"{helper}\n{text}"
    return text
