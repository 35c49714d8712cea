"""The style of all C text: an opening brace ends its line, a level is four spaces, a line has at most 120 columns."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import accumulate

import cgen

from codegen.ir.integer import Test, connected, parts_of
from codegen.ir.loop_ir import For

DIRECTIVE = re.compile(r"\s*#\s*(?:define|include(?= [<\"])|pragma|if|elif|error|warning)\b")
INDENT = "    "
WIDTH = 120
"""The most columns of a line."""
COMMENTED = re.compile(r"(\s*)(?:(\S.*?)\s+)?/\* ((?:(?!\*/).)*) \*/")
"""A line that is or ends in a comment, which is moved above the line if this is too long."""
WHOLE = re.compile(r'"(?:[^"\\]|\\.)*"|\b(?:for|if|while) \(| \{$')
"""The parts of a line that are not broken at their blanks."""
BLANK = re.compile(" ")


class Line(cgen.Line):
    """A line, or a part of a loop's head, with the names in it that may have to be parameters of its function."""

    def __init__(self, text: str, names: Iterable[str] = ()) -> None:
        super().__init__(text)
        self.names = frozenset(names)


class Braces(cgen.Block):
    """Statements in braces."""

    def generate(self, with_semicolon: bool = True) -> Iterator[str]:
        yield "{"
        yield from (INDENT + line for item in self.contents for line in item.generate())
        yield "}"


class ForStatement(cgen.For):
    """`for (start; condition; update) { … }`."""

    def generate(self, with_semicolon: bool = False) -> Iterator[str]:
        return _headed(str(self.intro_line()), self.body)


class WhileStatement(cgen.While):
    """`while (condition) { … }`."""

    def generate(self, with_semicolon: bool = False) -> Iterator[str]:
        return _headed(str(self.intro_line()), self.body)


class IfStatement(cgen.If):
    """`if (condition) { … } else { … }`."""

    def generate(self, with_semicolon: bool = False) -> Iterator[str]:
        *lines, end = _headed(f"if ({self.condition})", self.then_)
        yield from lines
        if self.else_ is None:
            yield end
        else:
            yield from _headed(f"{end} else", self.else_)


class Branch(IfStatement):
    """An if statement whose condition is a `Test`."""

    def __init__(self, test: Test, then: cgen.Generable, other: cgen.Generable | None = None) -> None:
        super().__init__(Line(str(test), test.names), then, other)
        self.test = test


def around(loop: For, body: list[cgen.Generable]) -> cgen.Generable:
    """The C loop with a body."""
    start = Line(f"int64_t {loop.variable} = {loop.start}", loop.start.names)
    update = Line(f"{loop.variable} += {loop.step}")
    return ForStatement(start, Line(str(loop.test), loop.test.names), update, block(body))


def branch(test: Test, body: list[cgen.Generable], other: list[cgen.Generable] | None = None) -> Branch:
    """A condition around statements; if these are a single condition, the two are joined."""
    inner = body[0] if len(body) == 1 else None
    if other is None and isinstance(inner, Branch) and inner.else_ is None:
        return Branch(connected("&&", (*parts_of(test), *parts_of(inner.test))), inner.then_)
    return Branch(test, block(body), None if other is None else block(other))


def names_in(nodes: Iterable[cgen.Generable | None]) -> frozenset[str]:
    """The names in statements that may be those of parameters or variables of their function."""
    return frozenset().union(*map(_names, nodes))


def _names(node: cgen.Generable | None) -> frozenset[str]:
    match node:
        case Line():
            return node.names
        case cgen.Block():
            return names_in(node.contents)
        case cgen.For():
            return names_in((node.start, node.condition, node.update, node.body))
        case cgen.While():
            return names_in((node.condition, node.body))
        case cgen.If():
            return names_in((node.condition, node.then_, node.else_))
    return frozenset()


def block(nodes: list[cgen.Generable]) -> Braces:
    """The nodes in braces; a single block is returned unchanged."""
    return nodes[0] if len(nodes) == 1 and isinstance(nodes[0], Braces) else Braces(nodes)


def _headed(head: str, body: cgen.Generable) -> Iterator[str]:
    """A block with the head of a statement on its first line."""
    opening, *lines = body.generate()
    yield f"{head} {opening}"
    yield from lines


def wrapped(code: str) -> str:
    """C code with long lines wrapped to `WIDTH` at blanks outside strings; preprocessor lines are not wrapped."""
    return "\n".join(part for line in code.split("\n") for part in _wrapped(line))


@lru_cache(maxsize=2048)
def _wrapped(line: str) -> tuple[str, ...]:
    """The lines that a line is wrapped to; cached, since many programs contain the same microkernels."""
    if len(line) <= WIDTH or DIRECTIVE.match(line) or line.endswith("\\"):
        return (line,)
    commented = COMMENTED.fullmatch(line)
    if commented:
        indent, code, remark = commented.groups()
        above = textwrap.wrap(f"/* {remark} */", WIDTH, initial_indent=indent, subsequent_indent=f"{indent}   ")
        return (*above, *(_wrapped(indent + code) if code else ()))
    text = WHOLE.sub(lambda found: found[0].replace(" ", "\0"), line)
    depths = _depths(text)
    for level in range(max(depths) + 1):
        for behind in (";,", None):
            parts = _broken(text, depths, level, behind)
            if max(map(len, parts)) <= WIDTH:
                return tuple(parts)
        parts = _broken(text, depths, level, ";,")
        if len(parts) > 1:
            return tuple(piece for part in parts for piece in _wrapped(part))
    return (line,)


def _depths(text: str) -> list[int]:
    """The number of brackets around each character."""
    return list(accumulate((c in "([{") - (c in ")]}") for c in text))


def _broken(text: str, depths: list[int], most: int, behind: str | None) -> list[str]:
    """The text broken at blanks inside at most `most` brackets, and only after a character in `behind` if given."""

    def kept(blank: re.Match[str]) -> str:
        at = blank.start()
        return "\0" if depths[at] > most or (behind and text[at - 1] not in behind) else " "

    start = len(text) - len(text.lstrip())
    indent = text[:start]
    held = BLANK.sub(kept, text)[start:]
    wrapper = textwrap.TextWrapper(
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent + 2 * INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [part.replace("\0", " ") for part in wrapper.wrap(held)]
