"""Explanations: what data a schedule moves and reuses, what bounds it, and why it should beat another one."""

from poly.explanation.comparison import Comparison, compare
from poly.explanation.explained import explain
from poly.explanation.explanation import Explanation
from poly.explanation.values import Level, Measurement

__all__ = ["Comparison", "Explanation", "Level", "Measurement", "compare", "explain"]
