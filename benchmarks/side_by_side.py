"""Runs on several CPUs side by side, as Markdown: a summary with the worst cases, and a table of all cases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

from benchmarks.document import Row
from benchmarks.report import UNRELIABLE
from poly.machine.topology import size_text
from poly.timing.summary import geometric_mean

Document = Mapping[str, Any]

ARITHMETIC = ("gemm", "einsum", "conv2d", "cold")
"""The workloads whose operations are multiplications and additions that can be fused."""

WEAK = 0.95
"""Below this part of the best peer's speed, a case is named."""

NONE = "-"


class Group(NamedTuple):
    """Rows that one line summarises."""

    workload: str
    dtype: str
    parallel: bool

    @staticmethod
    def of(row: Row) -> Group:
        return Group(row["workload"], row["dtype"], row["threads"] > 1)

    @property
    def title(self) -> str:
        return f"{self.workload} {self.dtype}, {'all cores' if self.parallel else 'one thread'}"


def summary(documents: Sequence[Document]) -> Iterator[str]:
    """A line for each workload, type and number of threads, with a column for each CPU."""
    yield from _table([("", *map(column, documents)), *_summary_rows(documents)])


def details(documents: Sequence[Document]) -> Iterator[str]:
    """For each group a table of its cases, with a column for each CPU; then the peers of each CPU."""
    for group in groups(documents):
        yield f"## {group.title}"
        yield ""
        members = [[row for row in document["rows"] if Group.of(row) == group] for document in documents]
        sizes = dict.fromkeys(row["size"] for rows in members for row in rows)
        columns = [{row["size"]: row for row in rows} for rows in members]
        cells = ((size, *(case(rows.get(size)) for rows in columns)) for size in sizes)
        yield from _table([("", *map(column, documents)), *cells])
        yield ""
    for document in documents:
        yield f"## {column(document)}"
        yield ""
        yield from (f"* {line}" for line in libraries(document))
        yield ""


def column(document: Document) -> str:
    """The heading of a CPU's column."""
    machine = document["machine"]
    targets = sorted({row["target"] for row in document["rows"]} - {"c"})
    return ", ".join([machine["cpu"], machine["isa"], f"{machine['cores']} cores", *targets])


def groups(documents: Sequence[Document]) -> list[Group]:
    """The groups of all documents, those of the first one first."""
    return list(dict.fromkeys(Group.of(row) for document in documents for row in document["rows"]))


def case(row: Row | None) -> str:
    """A case's cell: the percentage of the peak, and the speed relative to the best peer with its name."""
    if row is None or row["gflops"] is None:
        return NONE
    parts = [_percent(row["peak_fraction"]) if arithmetic(row) else f"{row['gflops']:.1f} GFLOP/s"]
    if row["ratio_to_best_peer"] is not None:
        parts.append(f"{_ratio(row):.2f} ± {_percent(row['ratio_spread'])} of {row['best_peer']}")
    return ", ".join(parts) + f" {UNRELIABLE}" * (not row["reliable"])


def cell(rows: Sequence[Row]) -> str:
    """A group's cell: the geometric means, the worst case, and how many cases are unreliable."""
    known = [row for row in rows if row["gflops"]]
    compared = [row for row in known if row["ratio_to_best_peer"] is not None]
    parts = []
    bounded = [row["peak_fraction"] for row in known if arithmetic(row)]
    if bounded:
        parts.append(_percent(geometric_mean(bounded)))
    if compared:
        worst = min(compared, key=_ratio)
        parts.append(f"{geometric_mean(map(_ratio, compared)):.2f}, least {_ratio(worst):.2f} ({_named(worst)})")
    unreliable = sum(not row["reliable"] for row in known)
    return "; ".join(parts) + f" {unreliable} {UNRELIABLE}" * bool(unreliable) or NONE


def arithmetic(row: Row) -> bool:
    """Whether the FMA peak bounds a row: of what memory bounds, a percentage of it says nothing."""
    return row["workload"] in ARITHMETIC and row["bound"] > 0.99 * row["gflops"] / row["peak_fraction"]


def libraries(document: Document) -> Iterator[str]:
    """The caches, and the peers with their versions and the kernels that they chose."""
    caches = (f"L{cache['level']} {size_text(cache['bytes'])}" for cache in document["machine"]["caches"])
    yield f"caches: {', '.join(caches)}"
    found = {(name, peer["version"], peer["config"]) for row in document["rows"] for name, peer in row["peers"].items()}
    yield from (f"{name} {version}: {config}" for name, version, config in sorted(found))


def _summary_rows(documents: Sequence[Document]) -> Iterator[tuple[str, ...]]:
    yield ("FMA peak of a core, GFLOP/s", *(_peaks(document["rows"]) for document in documents))
    for group in groups(documents):
        members = [[row for row in document["rows"] if Group.of(row) == group] for document in documents]
        count = max(map(len, members))
        yield (f"{group.title}, {count} case{'s' * (count > 1)}", *map(cell, members))
    yield (f"below {WEAK} of the best peer", *(_weak(document["rows"]) for document in documents))


def _peaks(rows: Sequence[Row]) -> str:
    """The median of the peaks probed beside one thread."""
    found = {
        dtype: [row["gflops"] / row["peak_fraction"] for row in rows if _alone(row, dtype)] for dtype in ("f32", "f64")
    }
    return ", ".join(f"{median(peaks):.0f} {dtype}" for dtype, peaks in found.items() if peaks) or NONE


def _alone(row: Row, dtype: str) -> bool:
    return bool(row["gflops"]) and row["threads"] == 1 and row["dtype"] == dtype


def _weak(rows: Sequence[Row]) -> str:
    found = [row for row in rows if row["ratio_to_best_peer"] is not None and _ratio(row) < WEAK]
    named = (f"{_ratio(row):.2f} {row['workload']} {row['dtype']} {_named(row)}" for row in sorted(found, key=_ratio))
    return "; ".join(named) or NONE


def _named(row: Row) -> str:
    threads = f" on {row['threads']} threads" if row["threads"] > 1 else ""
    return f"{row['size']}{threads}, {row['best_peer']}"


def _ratio(row: Row) -> float:
    return float(row["ratio_to_best_peer"])


def _percent(value: float | None) -> str:
    return NONE if value is None else f"{100 * value:.0f} %"


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    head, *body = rows
    yield _line(head)
    yield _line(["---"] * len(head))
    yield from map(_line, body)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |"
