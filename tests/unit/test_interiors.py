"""Interiors of convolutions: where they begin and end, and when there is nothing to part."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.problems.convolution import Convolution, Layout
from benchmarks.workloads.convolution_nests import nest
from microkernels.isa import AVX512
from poly import f32
from poly.autoschedule.rules.interiors import interiors_apart
from poly.model import Caches
from poly.model.core import Target
from poly.schedules.schedule import schedule

TARGET = Target.nominal(AVX512, Caches(32 << 10, 1 << 20, 16 << 20), 1)

STEM = Convolution(3, 64, 224, 7, 2, 3)


GROUPS = Convolution(128, 128, 56, 3, 1, 1, groups=32)


@pytest.mark.parametrize(
    ("problem", "layout", "ends"),
    [
        (STEM, "NCHW", ["q < 2", "q > 110"]),
        (STEM, "NHWC", ["p < 2", "p > 110"]),
        (GROUPS, "NCHW", ["q < 1", "q > 54"]),
        (GROUPS, "NHWC", ["q < 1", "q > 54"]),
    ],
)
def test_ends_are_where_taps_are_missing(problem: Convolution, layout: Layout, ends: list[str]) -> None:
    """Elements read in one run come together: pixels of a row, or the taps and channels of each one of a column."""
    made = interiors_apart(schedule(nest(replace(problem, layout=layout), f32)), TARGET)
    assert made is not None
    assert [step.where for step in made.steps] == ends


@pytest.mark.parametrize("problem", [Convolution(16, 16, 9, 3, 1, 0), Convolution(256, 256, 28, 3, 1, 1)])
def test_nothing_is_parted_without_borders_or_gain(problem: Convolution) -> None:
    """Many channels make enough steps in a call."""
    assert interiors_apart(schedule(nest(problem, f32)), TARGET) is None
