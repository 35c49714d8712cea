"""The price of a product of two arrays whose schedule is not chosen yet: an einsum of several compares orders by it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from microkernels.dtypes import ComplexType, DType
from poly.machine import machine
from poly.model.rates import Rates, nominal


def pricing(dtype: DType) -> Callable[[float, float], float]:
    """The seconds of so many multiply-adds on arrays with so many elements in all, on one core of this machine.

    Operations run at the peak, and the arrays move once, from the nearest level that holds them. The rates are those of
    the instruction set, not measured ones, so that the same einsum is the same nest before and after the calibration.
    """

    part, products = (dtype.part, 4) if isinstance(dtype, ComplexType) else (dtype, 1)

    @cache
    def rates() -> tuple[Rates, list[tuple[int, float]]]:
        here = machine()
        found = nominal(here.isa, tuple(one.bytes for one in here.caches))
        caches = ((here.cache(2), found.l2), (here.cache(3), found.l3))
        return found, [(held.bytes, rate) for held, rate in caches if held is not None]

    def price(multiply_adds: float, elements: float) -> float:
        own, levels = rates()  # most einsums have one order, and ask no price
        moved = elements * dtype.size
        rate = next((rate for held, rate in levels if moved <= held), own.memory)
        return 2 * products * multiply_adds / own.peak(part) + moved / rate

    return price
