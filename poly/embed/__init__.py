"""Write kernels as a single C header, with variants for each instruction set and size."""

from poly.embed.write import write_header

__all__ = ["write_header"]
