"""Put a microkernel in place of the innermost loops of a contraction.

for i_tile: for j_tile:                         for i_tile: for j_tile:
  for i: for j: for k:               ->           microkernel gemm_avx512_6x64 over i, j, k
    C[i, j] += A[i, k] * B[k, j]
"""

from __future__ import annotations

from dataclasses import replace

import islpy as isl

from codegen.ir.expr import Const, Expr, Load, Unary, number
from codegen.ir.integer import Linear
from microkernels.catalogue import find
from microkernels.contract import Side
from microkernels.dot import holds
from microkernels.errors import plain
from microkernels.kernel import Microkernel, OuterProduct, TileKernel
from microkernels.opencl_isa import is_device
from poly.analysis.contraction import Contraction, distinct, exchange, feeds_itself, formed
from poly.analysis.dependences import dependences
from poly.errors import ScheduleError
from poly.frontends.reductions import neutral
from poly.ir.coordinates import linear
from poly.ir.edits import edit
from poly.ir.instances import Instances, coordinates, loop_values
from poly.ir.layout import step
from poly.ir.nest import Nest, Statement
from poly.ir.paths import loops_around, paths
from poly.ir.tree import Band, Copy, Leaf, Micro, Node, walk
from poly.lowering.calls import inner_bands, involves, iterators_of, taken_bands
from poly.lowering.tile import begins_at_lows, late_start


def insert(nest: Nest, tree: Node, name: str, statement: str | None = None, initial: str | None = None) -> Node:
    """The tree with the microkernel `name` in place of the innermost loops of a contraction.

    `statement` names the contraction (by default, the first one without a kernel); `initial` names a statement that
    sets the output to 0, whose work the kernel takes over.

    Raises:
        ScheduleError: no contraction, a sum whose order must be kept, or loops that do not fit the kernel's tile. The
            message says which, and what to do.
        TargetError: no such microkernel.
    """
    chosen, contraction = _chosen(nest, tree, name, statement)
    kernel = find(name, nest.array(chosen.target.array).dtype)
    if initial is not None and initial != zeroing(nest, chosen):
        raise ScheduleError(
            f"microkernel({kernel}): {plain(initial)} does not set the output of {chosen.name} to 0 directly before it."
        )
    _check_product(chosen, contraction, kernel)
    bands = _innermost(tree, chosen)
    found = [
        (c, m, _misfit(nest, tree, chosen, c, m))
        for c in (contraction, exchange(contraction))
        if c.product == kernel.contract.product and (m := _absorb(chosen, c, bands, kernel))
    ]
    if not found:
        raise ScheduleError(_lacking(chosen, contraction, bands, kernel))
    known = [(c, m, wrong) for c, m, wrong in found if not _foreign(c, m)] or found
    fitting = [(c, m, wrong) for c, m, wrong in known if not wrong and _is_readable(nest, tree, chosen, c, m)]
    oriented, micro, misfit = (fitting or known)[0]
    misfit = misfit or _foreign(oriented, micro) or _unconverted(tree, chosen, oriented, micro)
    if misfit:
        raise ScheduleError(misfit)
    micro = replace(micro, exchanged=oriented is not contraction, initial=initial)
    if initial is not None and not begins_at_lows(chosen, contraction, _around(tree, chosen, micro)):
        raise ScheduleError(late_start(micro))
    taken = next(band for band in reversed(bands) if any(band is one for one in inner_bands(micro)))
    _check_copies(taken, kernel)
    return edit(tree, taken, micro)


def _chosen(nest: Nest, tree: Node, kernel: str, statement: str | None) -> tuple[Statement, Contraction]:
    leaves = {node.statement for node in walk(tree) if isinstance(node, Leaf)}
    for candidate in nest.statements:
        contraction = formed(nest, candidate)
        if contraction is not None and candidate.name in leaves and statement in (None, candidate.name):
            return candidate, contraction
    if not nest.reassociate:
        raise ScheduleError(
            f"microkernel({kernel}): {nest.name} has reassociate=False, and the kernel sums up in registers, with "
            "fused multiply-adds. Remedy: vectorize a loop of the output, or allow reassociation."
        )
    what = f"{plain(statement)} is not" if statement else f"no statement of {nest.name} is"
    raise ScheduleError(
        f"microkernel({plain(kernel)}): {what} a contraction, `C[…] += A[…] * B[…]` "
        "with sums of f32, f64 or i32, to which A and B may be converted."
    )


def _check_product(statement: Statement, contraction: Contraction, kernel: Microkernel) -> None:
    """Refuse a microkernel of other operations than the statement's."""
    families = {c.product: c.product.family for c in (contraction, exchange(contraction))}
    if kernel.contract.product not in families:
        raise ScheduleError(
            f"microkernel({kernel}): it computes {kernel.contract}, and {statement.name} is {plain(statement.text)}. "
            f"Remedy: a microkernel of the family {' or '.join(dict.fromkeys(families.values()))}."
        )


def _innermost(tree: Node, statement: Statement) -> list[Band]:
    """The bands directly around a statement, innermost first, up to a node that is not a band."""
    path = paths(tree)[statement.name]
    bands: list[Band] = []
    for entry in reversed(path):
        if not isinstance(entry, Band):
            break
        bands.append(entry)
    return bands


def _absorb(statement: Statement, contraction: Contraction, bands: list[Band], kernel: Microkernel) -> Micro | None:
    """The microkernel with the bands that it replaces; None if one that it needs is not among the innermost bands."""
    rows: Band | None = None
    columns: Band | None = None
    reduce: list[Band] = []
    for band in bands:
        role = _role(statement, contraction, band) if _is_point(statement, band) else "tiles"
        if role == "rows" and rows is None and kernel.contract.rows:
            rows = band
        elif role == "columns" and columns is None:
            columns = band
        elif role == "reduce" and len(reduce) < kernel.levels:
            reduce.insert(0, band)
        else:
            break
    if kernel.is_whole and (len(reduce) < kernel.levels or (kernel.contract.rows and rows is None)):
        return None
    return Micro(kernel, statement.name, rows, columns, tuple(reduce)) if columns and reduce else None


def _misfit(nest: Nest, tree: Node, statement: Statement, contraction: Contraction, micro: Micro) -> str | None:
    """Why the loops do not fit the kernel; None if they do."""
    around = _around(tree, statement, micro)
    if feeds_itself(nest, statement, [function for _, function in around]):
        return _fed(statement, micro)
    held = (*around, *((band.name, band.function(statement.name)) for band in micro.reduce))
    if not distinct(statement, [function for _, function in held]):
        return _overlap(contraction, micro)
    laid_out = _layout_misfit(nest, statement, contraction, micro, tree)
    return laid_out or _tile_misfit(statement, micro, tree)


def _around(tree: Node, statement: Statement, micro: Micro) -> tuple[tuple[str, isl.PwAff], ...]:
    """The loops around those that the kernel replaces."""
    path = loops_around(tree, statement.name)
    outer = [band for band in path if not any(band is taken for taken in inner_bands(micro))]
    return tuple((band.name, band.function(statement.name)) for band in outer)


def _fed(statement: Statement, micro: Micro) -> str:
    inside = ", ".join(band.name for band in inner_bands(micro))
    return (
        f"microkernel({micro.kernel}): in a tile, iterations of {inside} read elements of {statement.target.array} "
        f"that others of {statement.name} write, and a tile runs them in any order. Remedy: tile the loops such that "
        "no tile has both, or part the statement first."
    )


def _overlap(contraction: Contraction, micro: Micro) -> str:
    names = [band.name for band in (micro.rows, micro.columns) if band is not None]
    return (
        f"microkernel({micro.kernel}): two iterations of {' and '.join(names)} add to one element of "
        f"{contraction.output.array}, and a tile adds up each element on its own. Remedy: keep one of the "
        f"loops that an index of {contraction.output.array} adds outside: order(...)."
    )


def _is_readable(nest: Nest, tree: Node, statement: Statement, contraction: Contraction, micro: Micro) -> bool:
    """Whether the kernel can load the right operand: from panels, or contiguous along a loop over columns."""
    if micro.kernel.contract.contiguous("right") is None or "right" in _packed(tree, statement, contraction):
        return True
    right = contraction.right
    array = nest.array(right.array)
    return any(
        step(array, right, iterator) == Linear.of(1)
        for iterator in contraction.columns
        if micro.columns and involves(statement, micro.columns.function(statement.name), frozenset({iterator}))
    )


def _unconverted(tree: Node, statement: Statement, contraction: Contraction, micro: Micro) -> str | None:
    """Why an operand of another type cannot be converted; None if packing does, or if there is none."""
    sides: dict[str, Load] = {"left": contraction.left, "right": contraction.right}
    missing = sorted(sides[side].array for side in contraction.converted - _packed(tree, statement, contraction))
    if contraction.converted and (is_device(micro.kernel.isa) or not isinstance(micro.kernel, OuterProduct)):
        names = " and ".join(sorted({sides[side].array for side in contraction.converted}))
        return f"microkernel({micro.kernel}): it does not convert {names}. Remedy: a gemm kernel for a CPU, target='c'."
    if missing:
        return (
            f"microkernel({micro.kernel}): {missing[0]} is converted while it is packed, and it is not. "
            f"Remedy: pack({missing[0]}) before."
        )
    return None


def _foreign(contraction: Contraction, micro: Micro) -> str | None:
    """Why the elements of the operands are no elements of the kernel's words; None if they are, or if it has none."""
    dot = micro.kernel.dot if isinstance(micro.kernel, OuterProduct) else None
    if dot is None:
        return None
    sides = ((contraction.left, dot.left), (contraction.right, dot.right))
    for (load, element), own in zip(sides, contraction.elements, strict=True):
        if not holds(element, own):
            return (
                f"microkernel({micro.kernel}): it multiplies {dot.left} by {dot.right}, and {load.array} is of {own}. "
                "Remedy: a microkernel for these types."
            )
    return None


def _packed(tree: Node, statement: Statement, contraction: Contraction) -> set[Side]:
    """The operands that copies in the tree lay out in panels."""
    copies = [node for node in walk(tree) if isinstance(node, Copy) and node.statement in (None, statement.name)]
    sides: tuple[tuple[Side, str], ...] = (("left", contraction.left.array), ("right", contraction.right.array))
    return {side for side, array in sides for copy in copies if copy.array == array and copy.role in (None, side)}


def _lacking(statement: Statement, contraction: Contraction, bands: list[Band], kernel: Microkernel) -> str:
    around = ", ".join(band.name for band in reversed(bands)) or "none"
    return (
        f"microkernel({kernel}): the innermost loops around {statement.name} must be one of the columns and up to "
        f"{kernel.levels} of the reduction, with one of the rows. Loops around it alone: {around}. "
        f"Rows: {', '.join(contraction.rows) or 'none'}; columns: {', '.join(contraction.columns) or 'none'}; "
        f"reduction: {', '.join(contraction.reduce) or 'none'}. "
        "Remedy: distribute the loops, and order them so that these are innermost."
    )


def _check_copies(taken: Band, kernel: Microkernel) -> None:
    """Refuse loops that have a copy inside them."""
    for node in walk(taken):
        if isinstance(node, Copy):
            raise ScheduleError(
                f"microkernel({kernel}): a copy of {node.array} is made inside loop {taken.name}, which the kernel "
                f"takes. Remedy: pack({node.array}) at a loop around {taken.name}."
            )


def _is_point(statement: Statement, band: Band) -> bool:
    """Whether the loop counts points, not tiles: its function is linear."""
    return linear(statement.iterators, band.function(statement.name)) is not None


def _role(statement: Statement, contraction: Contraction, band: Band) -> str:
    """The role of the iterators that the loop counts, or `mixed` if they have several roles."""
    function = band.function(statement.name)
    roles = [
        role
        for role in ("rows", "columns", "reduce", "batch")
        if involves(statement, function, frozenset(getattr(contraction, role)))
    ]
    return roles[0] if len(roles) == 1 else "mixed"


def _layout_misfit(nest: Nest, statement: Statement, contraction: Contraction, micro: Micro, tree: Node) -> str | None:
    """Why an array is not contiguous along the loop that the kernel's contract wants; None if all arrays fit."""
    contract = micro.kernel.contract
    if not (micro.kernel.in_place or micro.kernel.is_whole):
        return None
    accesses: dict[Side, Load] = {"right": contraction.right, "left": contraction.left, "output": contraction.output}
    packed = _packed(tree, statement, contraction) if micro.kernel.is_whole else set()
    for side in accesses:
        loop = contract.contiguous(side)
        band = taken_bands(micro)[loop] if loop is not None and side not in packed else None
        if band is not None and not _is_contiguous(nest, statement, accesses[side], band):
            return (
                f"microkernel({micro.kernel}): neighbours along loop {band.name} are not neighbours in "
                f"{accesses[side].array}. Its contract is {contract}, in which {contract.access(side)} is contiguous "
                f"along {loop}. Remedy: {_other_layout(micro.kernel, side, accesses[side].array)}."
            )
    return None


def _other_layout(kernel: Microkernel, side: Side, array: str) -> str:
    """A remedy for an array whose layout does not fit the contract."""
    lanes = {"left": kernel.contract.rows, "right": kernel.contract.columns}.get(side)
    packable = kernel.is_whole and lanes == kernel.contract.contiguous(side)
    return f"pack({array}) before" if packable else f"another kernel, or {array} stored in another order"


def _is_contiguous(nest: Nest, statement: Statement, access: Load, band: Band) -> bool:
    """Whether an array is contiguous along a loop: its elements are numbered as the iterations are, up to a constant.

    The loop may be flattened: along `i_j = 28*i + j`, `A[i, j]` of 28 columns is contiguous.
    """
    function = linear(statement.iterators, band.function(statement.name))
    if function is None:
        return False
    counted = {iterator: function.coefficient(iterator) for iterator in statement.iterators}
    array = nest.array(access.array)
    steps = {iterator: step(array, access, iterator) for iterator, count in counted.items() if count}
    return 1 in map(abs, counted.values()) and all(
        apart == Linear.of(counted[iterator]) for iterator, apart in steps.items()
    )


def _tile_misfit(statement: Statement, micro: Micro, tree: Node) -> str | None:
    """Why the loops' tiles do not fit the kernel's tile: one is larger; None if they fit."""
    kernel = micro.kernel
    if not isinstance(kernel, TileKernel):
        return None
    instances = Instances("tile", statement.domain, _around(tree, statement, micro))
    bands = taken_bands(micro)
    for loop, most in kernel.tile.items():
        band = bands.get(loop)
        if band is None:
            continue
        count = instances.count(band.function(statement.name))
        if not _exceeds(count, most).intersect(instances.domain).is_empty():
            what = {kernel.contract.rows: "rows", kernel.contract.columns: "columns"}.get(loop, "steps")
            return (
                f"microkernel({kernel}): loop {band.name} runs over more than {most} {what} at a time, "
                f"which is the kernel's tile. Remedy: split({band.name}={most}) first."
            )
    return None


def _exceeds(count: isl.PwAff, most: int) -> isl.Set:
    """The set where a count exceeds a number."""
    limit = isl.PwAff.zero_on_domain(isl.LocalSpace.from_space(count.get_domain_space())).add_constant_val(
        isl.Val(most)
    )
    return count.gt_set(limit)


def zeroing(nest: Nest, statement: Statement) -> str | None:
    """The statement that sets a contraction's output to 0 before it, if nothing touches the output in between.

    For minima it sets it to infinity, for maxima to the negative one.
    """
    before = nest.statements[: nest.statements.index(statement)]
    touching = [s for s in before if any(load.array == statement.target.array for load in (s.target, *s.reads))]
    if not touching or touching[-1].op != "=" or not _is_neutral(nest, statement, touching[-1].expr):
        return None
    zero = touching[-1]
    written, zeroed = statement.relation(statement.target), zero.relation(zero.target)
    once = zeroed.is_injective() and written.range().is_subset(zeroed.range())
    return zero.name if once and is_sum(statement) and not _seen_between(nest, zero, statement) else None


def _is_neutral(nest: Nest, statement: Statement, expr: Expr) -> bool:
    """Whether an expression is the number that an update of the statement leaves every value as it is with."""
    value = number(expr) if isinstance(expr, Const | Unary) else None
    return value == neutral(statement.op, nest.array(statement.target.array).dtype)


def is_sum(statement: Statement) -> bool:
    """Whether each output element has one value of each output iterator, so that only the reduction revisits it."""
    own = iterators_of(statement, statement.target)
    held = [c for name, c in coordinates(statement.domain, statement.iterators).items() if name in own]
    results = loop_values(statement.domain, held).reverse().apply_range(statement.relation(statement.target))
    return bool(results.is_injective())


def _seen_between(nest: Nest, zero: Statement, statement: Statement) -> bool:
    """Whether an instance touches an element after it is set to 0 and before the contraction adds to it."""
    array = statement.target.array
    return any(
        d.sink == statement.name and d.array == array and d.source != zero.name for d in dependences(nest).binding
    )
