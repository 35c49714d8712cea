"""C integer expressions as Python ones with the same values.

    imin(N, 64*t) + (N - 1)/2        imin(v_N, 64*v_t) + _quotient(v_N - 1, 2)

Names get a prefix, so that none is a word of Python's. C's division rounds towards zero, its truth values are 0 and 1.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

PREFIX = "v_"
TOKEN = re.compile(r"\s*(?:(\d+)[uUlL]*|(\w+)|(&&|\|\||[<>=!]=|[-+*/%<>!?:(),]))")
LEVELS = (("||",), ("&&",), ("==", "!="), ("<", "<=", ">", ">="), ("+", "-"), ("*", "/", "%"))
"""The operators with two operands, those that bind least first."""
CONNECTIVES = {"||": "or", "&&": "and"}
CALLS = {"/": "_quotient", "%": "_remainder"}


def quotient(a: int, b: int) -> int:
    """`a / b` in C."""
    return a // b if (a < 0) == (b < 0) else -(-a // b)


def remainder(a: int, b: int) -> int:
    """`a % b` in C: it has a's sign."""
    return a - b * quotient(a, b)


FUNCTIONS: dict[str, Callable[[int, int], int]] = {
    "imin": min,
    "imax": max,
    "floord": lambda a, b: a // b,
    "_quotient": quotient,
    "_remainder": remainder,
}
"""What the Python text calls."""


def python_text(text: str) -> str:
    """The Python text for a C expression in the grammar of `codegen.opencl.values`."""
    reader = _Reader(text)
    result = reader.choice()
    if reader.next:
        raise reader.unexpected()
    return result


def variable(name: str) -> str:
    """What a name of the C text is called in the Python one."""
    return PREFIX + name


class _Reader:
    """Reads an expression from left to right; each method returns the Python text of what it has read."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.next = ""
        self._advance()

    def choice(self) -> str:
        """`condition ? then : otherwise`, or what binds closer."""
        test = self._binary(0)
        if self.next != "?":
            return test
        self._expect("?")
        then = self.choice()
        self._expect(":")
        return f"({then} if {test} else {self.choice()})"

    def _binary(self, level: int) -> str:
        if level == len(LEVELS):
            return self._unary()
        left = self._binary(level + 1)
        while self.next in LEVELS[level]:
            symbol = self._take()
            left = _joined(left, symbol, self._binary(level + 1))
        return left

    def _unary(self) -> str:
        if self.next in ("-", "+"):
            return f"({self._take()}{self._unary()})"
        if self.next == "!":
            self._take()
            return f"(not {self._unary()})"
        return self._primary()

    def _primary(self) -> str:
        if self.next == "(":
            self._take()
            inner = self.choice()
            self._expect(")")
            return f"({inner})"
        token = self._take()
        if token.isdigit():
            return token
        if not token.isidentifier():
            raise self.unexpected()
        return self._call(token) if self.next == "(" else variable(token)

    def _call(self, function: str) -> str:
        if function not in FUNCTIONS:
            raise self.unexpected()
        self._expect("(")
        values = [self.choice()]
        while self.next == ",":
            self._take()
            values.append(self.choice())
        self._expect(")")
        return f"{function}({', '.join(values)})"

    def _take(self) -> str:
        token = self.next
        if not token:
            raise self.unexpected()
        self._advance()
        return token

    def _expect(self, token: str) -> None:
        if self._take() != token:
            raise self.unexpected()

    def _advance(self) -> None:
        found = TOKEN.match(self.text, self.position)
        if found is None:
            if self.text[self.position :].strip():
                raise self.unexpected()
            self.next = ""
            return
        self.position = found.end()
        self.next = found[1] or found[2] or found[3]

    def unexpected(self) -> ValueError:
        return ValueError(f"no integer expression of C as plans have them, near character {self.position}: {self.text}")


def _joined(left: str, symbol: str, right: str) -> str:
    if symbol in CONNECTIVES:
        return f"bool({left} {CONNECTIVES[symbol]} {right})"
    if symbol in CALLS:
        return f"{CALLS[symbol]}({left}, {right})"
    if symbol in ("+", "-", "*"):
        return f"{left}{symbol}{right}" if symbol == "*" else f"({left} {symbol} {right})"
    return f"({left} {symbol} {right})"


def evaluate(text: str, names: dict[str, int]) -> Any:
    """The value of a C expression for given values of its names."""
    return eval(python_text(text), {**FUNCTIONS, **{variable(name): value for name, value in names.items()}})
