"""The price of a product of two arrays whose schedule is not chosen yet: an einsum of several compares orders by it."""

from __future__ import annotations

from collections.abc import Callable

from microkernels.dtypes import DType
from poly.machine import machine
from poly.model.rates import nominal


def pricing(dtype: DType) -> Callable[[float, float], float]:
    """The seconds of so many multiply-adds on arrays with so many elements in all, on one core of this machine.

    Operations run at the peak, and the arrays move once, from the nearest level that holds them. The rates are those of
    the instruction set, not measured ones, so that the same einsum is the same nest before and after the calibration.
    """
    here = machine()
    rates = nominal(here.isa, tuple(cache.bytes for cache in here.caches))
    levels = [
        (found.bytes, rate)
        for level, rate in ((2, rates.l2), (3, rates.l3))
        if (found := here.cache(level)) is not None
    ]

    def price(multiply_adds: float, elements: float) -> float:
        moved = elements * dtype.size
        rate = next((rate for held, rate in levels if moved <= held), rates.memory)
        return 2 * multiply_adds / rates.peak(dtype) + moved / rate

    return price
