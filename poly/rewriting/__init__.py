"""C files with their scops optimised in place: `poly optimize`."""

from poly.rewriting import report
from poly.rewriting.rewrite import Rewritten, rewrite

__all__ = ["Rewritten", "report", "rewrite"]
