"""BLAS routines as a C header: CBLAS's names and semantics, over kernels that are compiled from plain loops."""

from poly.blas.write import ROUTINES, write_blas

__all__ = ["ROUTINES", "write_blas"]
