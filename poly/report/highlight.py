"""C and Python for a page: comments, keywords and preprocessor lines in elements of their own, all text escaped."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape

KEYWORDS = (
    "break|case|char|const|continue|def|do|double|else|enum|extern|float|for|if|in|inline|int|int64_t|long|range|"
    "restrict|return|size_t|static|struct|switch|typedef|uint64_t|union|unsigned|void|while"
)
C = re.compile(
    rf"(?P<comment>/\*.*?\*/|//[^\n]*)|(?P<text>\"(?:\\.|[^\"\\\n])*\")|(?P<line>^[ \t]*#[^\n]*)|"
    rf"(?P<word>\b(?:{KEYWORDS})\b)",
    re.DOTALL | re.MULTILINE,
)
PYTHON = re.compile(rf"(?P<comment>#[^\n]*)|(?P<text>\"(?:\\.|[^\"\\\n])*\")|(?P<word>\b(?:{KEYWORDS})\b)")


def highlighted(text: str, language: re.Pattern[str]) -> str:
    """The text as HTML: `<i>` around comments, `<b>` around words of the language, `<u>` around preprocessor lines."""
    return "".join(_parts(text, language))


def _parts(text: str, language: re.Pattern[str]) -> Iterator[str]:
    tags = {"comment": "i", "word": "b", "line": "u", "text": "s"}
    end = 0
    for found in language.finditer(text):
        yield escape(text[end : found.start()])
        tag = tags[str(found.lastgroup)]
        yield f"<{tag}>{escape(found[0])}</{tag}>"
        end = found.end()
    yield escape(text[end:])
