"""C files with their scops optimised in place: `poly optimize`."""

from poly.rewriting import report
from poly.rewriting.rewritten import Rewritten, rewrite

__all__ = ["Rewritten", "report", "rewrite"]
