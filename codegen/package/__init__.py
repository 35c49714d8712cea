"""Self-contained C packages: files with a contract, checked entry points, kernels, and a self-test.

A header to embed and an OpenCL library are two flavours: what they share is here.
"""

from codegen.package.values import Header, Routine, SelfTestSizes, Variant

__all__ = ["Header", "Routine", "SelfTestSizes", "Variant"]
