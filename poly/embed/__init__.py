"""From kernels to one C header: what each instruction set and size runs."""

from poly.embed.write import write_header

__all__ = ["write_header"]
