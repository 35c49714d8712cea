"""Keywords that a caller may have misspelt: they are refused, with the one that was probably meant."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache, wraps
from inspect import Parameter, signature
from typing import Any, ParamSpec, TypeVar

from microkernels.errors import closest, did_you_mean, plain
from poly.errors import ScheduleError, SpecError

P = ParamSpec("P")
R = TypeVar("R")


@lru_cache
def options(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of the parameters that a function takes by keyword alone."""
    return tuple(p.name for p in signature(function).parameters.values() if p.kind is Parameter.KEYWORD_ONLY)


def check_sizes_meant(given: Iterable[str], sizes: Iterable[str], function: Callable[..., Any]) -> None:
    """Refuse a keyword that is no size and is almost an option of the function: `trails=3` is meant for `trials`.

    Any other keyword that is no size is left to the check of sizes, which lists them.

    Raises:
        SpecError: such a keyword.
    """
    known = tuple(sizes)
    for name in given:
        if name not in known and (meant := closest(name, (*options(function), *known))) in options(function):
            raise SpecError(f"there is no option and no size {plain(name)}. Did you mean {meant}=…?")


def known_keywords(method: Callable[P, R]) -> Callable[P, R]:
    """The step of a schedule, which refuses keywords that are no parameters, and says which one was meant.

    Raises (when called):
        ScheduleError: such a keyword.
    """
    known = [name for name in signature(method).parameters if name != "self"]

    @wraps(method)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        for name in kwargs:
            if name not in known:
                takes = f"{method.__name__} takes {', '.join(known)}"
                raise ScheduleError(f"{takes}, and no {plain(name)}.{did_you_mean(name, known)}")
        return method(*args, **kwargs)

    return checked
