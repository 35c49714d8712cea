"""Results that are contiguous only in runs: the kernel writes a tile on the stack, which is then stored run by run.

columns c_d of C[a, c, d], 30 values of d           ->      runs of 30, at C[a, c_d/30, 0]
columns k of Y[k, q]                                ->      single results, of which those of the rows q are neighbours
"""

from __future__ import annotations

from codegen.ir.instructions import Call, Cell, Let, Pointer, Table, Value, Write
from codegen.ir.integer import Compare, Int, Linear, Test, maximum, minimum, remainder
from codegen.ir.loop_ir import For, If, Node, below
from microkernels.ctext import suffix
from microkernels.isa import ISA
from microkernels.kernel import OuterProduct
from poly.ir.tree import Band
from poly.lowering.address_spaces import word
from poly.lowering.calls import along, each_row, moved
from poly.lowering.tile import KernelTile


def scattered(tile: KernelTile, kernel: OuterProduct, isa: ISA, run: int, accumulate: Int | Test) -> list[Node]:
    """The loops that store the tile on the stack to the output, run by run."""
    node, output = tile.node, tile.output
    columns, row = node.columns, node.rows.name if node.rows else ""
    if run == 1 and all(output.is_linear(band.name) for band in (node.rows, columns) if band):
        return [_one_by_one(tile, kernel, isa, accumulate)]
    by_column = output.part(columns.name if columns else "")
    row_quotients, row_offset = moved(output, output.offset - by_column, row, "this_row")
    offset = Write(Cell("row_offset", Linear.name("row")), row_offset)
    column_quotients, column_offset = moved(output, by_column, columns.name if columns else "", "this_column")
    to = Let("run", Pointer(output.array, column_offset), f"{word(isa, 'global')}{kernel.dtype.c_name} *const ")
    number = Linear.name("this_column") - _begin(columns) if run > 1 else Linear.name("at")
    source = Pointer("tile", Linear.name("row") * kernel.columns + number)
    whole = _has_whole_runs(tile, run)
    length = Linear.of(run) if whole else Linear.name("length")
    target = Pointer("run", Cell("row_offset", Linear.name("row")))
    store = Call(f"store_run_{suffix(isa, kernel.dtype)}", (target, source, length, accumulate))
    return [
        Table("int64_t ", "row_offset", kernel.rows),
        each_row(below([along(node.rows, "row", "this_row"), *row_quotients], [offset])),
        _each_run(columns, run, whole, column_quotients, [to, each_row(store)]),
    ]


def _has_whole_runs(tile: KernelTile, run: int) -> bool:
    """Whether each tile begins and ends where runs do."""
    columns = tile.node.columns
    counts = tile.extents(columns)
    if columns is None or counts is None:
        return run == 1
    return remainder(tile.lows[columns.name], run).number == 0 and not any(count % run for count in counts)


def _one_by_one(tile: KernelTile, kernel: OuterProduct, isa: ISA, accumulate: Int | Test) -> Call:
    """The call that stores the tile on the stack to elements that all have the same distance."""
    node, output = tile.node, tile.output
    down, across = (output.stride(band.name) if band else Linear() for band in (node.rows, node.columns))
    where = (Pointer(output.array, output.offset), down, across)
    stored: tuple[Value, ...] = (
        Pointer("tile"),
        Linear.of(kernel.columns),
        Linear.name("tile_rows"),
        Linear.name("tile_columns"),
    )
    return Call(f"store_apart_{suffix(isa, kernel.dtype)}", (*where, *stored, accumulate))


def ragged(tile: KernelTile, kernel: OuterProduct, isa: ISA, first: Int, length: Int, accumulate: Int | Test) -> Node:
    """The loop that stores each row of the tile on the stack from its column `first` on, `length` columns."""
    node, output = tile.node, tile.output
    column = node.columns.name if node.columns else ""
    quotients, place = moved(output, output.offset, node.rows.name if node.rows else "", "this_row")
    to = Pointer(output.array, place.substitute({column: Linear.name("from")}))
    source = Pointer("tile", Linear.name("row") * kernel.columns + Linear.name("from") - _begin(node.columns))
    apart, kind = output.stride(column), suffix(isa, kernel.dtype)
    if apart.number == 1:
        store = Call(f"store_run_{kind}", (to, source, length, accumulate))
    else:  # one row, along whose columns the inner loop goes
        store = Call(
            f"store_apart_{kind}",
            (to, apart, apart, source, Linear.of(kernel.columns), Linear.of(1), length, accumulate),
        )
    some = If(Compare(Linear(), "<", length), store)  # the places of no columns may be outside of tile and array
    return each_row(below([along(node.rows, "row", "this_row"), *quotients, Let("from", first)], [some]))


def _begin(columns: Band | None) -> Int:
    """The first column of a tile."""
    return Linear.name(columns.name) if columns else Linear()


def _each_run(columns: Band | None, run: int, whole: bool, quotients: list[Let], nodes: list[Node]) -> For:
    """The loop over the runs in a tile: over the first column of each or, for runs of 1, over the columns' numbers."""
    count, begin = Linear.name("tile_columns"), _begin(columns)
    if run == 1:
        return For.counted("at", count, below([along(columns, "at", "this_column"), *quotients], nodes))
    if whole:
        return For.counted("this_column", begin + count, below(quotients, nodes), begin, run)
    first, here = Linear.name("first"), Linear.name("this_column")
    lets = [
        Let("this_column", maximum(begin, first)),
        Let("length", minimum(begin + count, first + run) - here),
        *quotients,
    ]
    return For.counted("first", begin + count, below(lets, nodes), begin - remainder(begin, run), run)
