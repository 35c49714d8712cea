"""One C file to embed: declarations, a contract, kernels for several instruction sets, and the choice between them."""

from codegen.header.values import Header, Routine, SelfTestSizes, Variant

__all__ = ["Header", "Routine", "SelfTestSizes", "Variant"]
