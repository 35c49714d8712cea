"""The search for the fastest schedule in a space: strategies, decisions, budgets.

These names are all that a custom strategy needs; `poly.search.run.search` runs it.
"""

from poly.search.events import Ask, Trial
from poly.search.journal import Journal
from poly.search.neighbourhood import across, along, elsewhere, neighbours
from poly.search.strategies import register

__all__ = ["Ask", "Journal", "Trial", "across", "along", "elsewhere", "neighbours", "register"]
