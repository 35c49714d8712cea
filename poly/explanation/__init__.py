"""Explanations: what a schedule moves and reuses, what binds it, and why one is expected to be faster than another."""

from poly.explanation.comparison import Comparison, compare
from poly.explanation.explained import explain
from poly.explanation.explanation import Explanation
from poly.explanation.values import Level, Measurement

__all__ = ["Comparison", "Explanation", "Level", "Measurement", "compare", "explain"]
