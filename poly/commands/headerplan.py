"""A header as it is asked for: nests, sizes, instruction sets. The machine that makes it chooses the schedules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from codegen.ir.program import Threading
from microkernels.isa import ISA
from poly.commands.options import GivenSteps, nest_at
from poly.compilation import compile_nest
from poly.embed.write import make
from poly.ir.nest import Nest
from poly.kernel import Kernel
from poly.machine.target import checked_threads
from poly.records import Store, key_for


@dataclass(frozen=True)
class HeaderPlan:
    """What `poly header` is asked for; a value that can be sent to another machine.

    `sizes` are fixed in all kernels, which follow the `steps` if there are any; `special` sizes have kernels of their
    own, and with `tuned` so has each tuned size. `stem` is the file's name without its suffix; the others are as for
    `write_header`.
    """

    stem: str
    nests: tuple[Nest, ...]
    sizes: Mapping[str, int]
    steps: GivenSteps | None
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

        kernels = [kernel for nest in self.nests for kernel in self.kernels(nest)]
        return header_text(make(self.stem, kernels, self.prefix, self.isas, self.threads, self.dense))

    def kernels(self, nest: Nest) -> list[Kernel]:
        """The kernels of one nest: the general one, at `sizes` and by the given steps, and the specialised ones."""
        count = 1 if self.threads == "none" else checked_threads(self.cores)
        fixed, steps = nest_at(nest, self.sizes, self.steps), self.steps
        base = compile_nest(fixed, schedule=None if steps is None else steps.schedule(fixed), threads=count)
        found = [{**one} for one in self.special if one.keys() <= set(base.nest.sizes)]
        if self.tuned:
            found += [one for one in _tuned_sizes(base.nest, base.isa, count) if one not in found]
        return [base, *(compile_nest(base.nest, sizes=one, threads=count) for one in found)]


def _tuned_sizes(nest: Nest, isa: ISA, threads: int) -> list[dict[str, int]]:
    """Every combination of the nest's open sizes that has a record which poly.compile would follow, smallest first.

    Raises RecordError if the store cannot be used, and ToolchainError if there is no compiler.
    """
    wanted = key_for(nest, isa, threads)
    known = dict(nest.fixed)
    found = []
    for record in Store.open().records():
        sizes = dict(record.key.sizes)
        same = replace(record.key, sizes=wanted.sizes) == wanted
        if same and sizes.keys() == {*known, *nest.sizes} and known.items() <= sizes.items():
            found.append({size: sizes[size] for size in nest.sizes})
    return sorted(found, key=lambda sizes: tuple(sizes.values()))
