"""BLAS routines as a header to embed: CBLAS's names and semantics over kernels made from plain loops."""

from poly.blas.write import ROUTINES, write_blas

__all__ = ["ROUTINES", "write_blas"]
