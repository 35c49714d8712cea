"""The base of all errors, the error of this layer, and how a message shows a value."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable
from itertools import islice

PUBLIC = "poly"
"""The module that hands on all errors, under whose name tracebacks show them and pickles find them."""


class PolyError(Exception):
    """The base of all errors that a user can cause: a message says what is wrong, what was expected and what to do."""

    __module__ = PUBLIC


class SpecError(PolyError, ValueError, TypeError):
    """The loop nest is wrong, or outside the class of nests that poly reads."""

    __module__ = PUBLIC


class TargetError(PolyError, ValueError):
    """A target, an instruction set or a microkernel that does not exist, or that this CPU cannot run."""

    __module__ = PUBLIC


class PluginError(PolyError):
    """Something that a package or a user added to poly cannot be used: which, and what is wrong with it."""

    __module__ = PUBLIC


class _Short(reprlib.Repr):
    """`repr`, cut to about a line; a value whose `repr` fails is shown by its type."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = self.maxlong = 80
        self.maxlist = self.maxtuple = self.maxdict = self.maxset = self.maxfrozenset = self.maxdeque = 6
        self.maxlevel = 3

    def repr_int(self, value: int, level: int) -> str:
        if value.bit_length() > 256:  # Python refuses to write very long numbers
            return f"{'-' * (value < 0)}{hex(abs(value))[:18]}… (an integer of {value.bit_length()} bits)"
        return repr(value)

    def repr_dict(self, value: dict[object, object], level: int) -> str:
        """In the order of the keys; the base class would sort them."""
        if level <= 0:
            return "{…}"
        few = islice(value.items(), self.maxdict)
        items = [f"{self.repr1(key, level - 1)}: {self.repr1(item, level - 1)}" for key, item in few]
        return f"{{{', '.join([*items, *('…',) * (len(value) > self.maxdict)])}}}"

    def repr_instance(self, value: object, level: int) -> str:
        try:
            text = repr(value)
        except Exception:
            return f"<{type(value).__name__} whose repr fails>"
        return text if len(text) <= self.maxother else f"{text[: self.maxother]}…"


shown = _Short().repr
"""A value as text for a message: its `repr`, in about a line at most, whatever the value is."""


def plain(name: object) -> str:
    """A name as text for a message: unchanged if it is a short printable text, else as `shown`."""
    return name if isinstance(name, str) and name.isprintable() and 0 < len(name) <= 200 else shown(name)


LONGEST = 60
"""The most characters of a name that is compared: a longer one is no slip of the keyboard."""


def closest(name: object, known: Iterable[str]) -> str | None:
    """The known name that is most like this one, in any case of letters; None if none is alike."""
    if not isinstance(name, str) or len(name) > LONGEST:
        return None
    import difflib  # only an error needs it

    lower = {one.lower(): one for one in known if one != name}
    found = difflib.get_close_matches(name.lower(), lower, n=1, cutoff=0.7)
    return lower[found[0]] if found else None


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """` Did you mean trials?`, with a space before it; empty if no known name is alike."""
    found = closest(name, known)
    return f" Did you mean {found}?" if found else ""
