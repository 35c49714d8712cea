"""A header as it is asked for: nests, sizes, instruction sets. The machine that makes it chooses the schedules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from codegen.program import Threading
from poly.compilation import compile_nest
from poly.embed.tuned import tuned_sizes
from poly.embed.write import make
from poly.ir.nest import Nest
from poly.kernel import Kernel
from poly.machine.target import checked_threads


@dataclass(frozen=True)
class HeaderPlan:
    """What `poly header` is asked for; a value that can be sent to another machine.

    `sizes` are fixed in all kernels, `special` have kernels of their own, and with `tuned` so has each tuned size.
    `stem` is the file's name without its suffix; the others are as for `write_header`.
    """

    stem: str
    nests: tuple[Nest, ...]
    sizes: Mapping[str, int]
    special: Sequence[Mapping[str, int]]
    tuned: bool
    isas: Sequence[str] | None
    threads: Threading
    cores: int | None
    prefix: str | None
    dense: bool

    def text(self) -> str:
        """The header, by the records and the model of this machine. Raises the errors of `write_header`."""
        from codegen.package.header.text import header_text

        count = 1 if self.threads == "none" else checked_threads(self.cores)
        kernels = [kernel for nest in self.nests for kernel in self._kernels(nest, count)]
        return header_text(make(self.stem, kernels, self.prefix, self.isas, self.threads, self.dense))

    def _kernels(self, nest: Nest, threads: int) -> list[Kernel]:
        """The kernels of one nest: the general one, with `sizes` fixed, and the specialised ones."""
        fixed = {name: value for name, value in self.sizes.items() if name in nest.sizes}
        base = compile_nest(nest, sizes=fixed, threads=threads)
        found = [{**one} for one in self.special if one.keys() <= set(base.nest.sizes)]
        if self.tuned:
            found += [one for one in tuned_sizes(base.nest, base.isa, threads) if one not in found]
        return [base, *(compile_nest(base.nest, sizes=one, threads=threads) for one in found)]
