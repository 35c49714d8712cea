"""`poly records`: list, show, export, import and remove tuning records."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from poly.commands.outputs import check_file
from poly.commands.tables import print_table, print_text
from poly.display import time_text
from poly.records import Record, RecordFilter, Store, StoredTrial, read_point
from poly.records.exchange import export, merge
from poly.records.machines import machines_of
from poly.version import RELEASE

Command = Callable[..., Any]


@click.group("records")
def command() -> None:
    """Tuning records: the schedules that searches found, which poly.compile follows."""


def chosen(wrapped: Command) -> Command:
    """Add the options that select records, which become the argument `choice`."""

    @functools.wraps(wrapped)
    def run(nest: str | None, target: str | None, all_machines: bool, **others: Any) -> Any:
        isa = target.removeprefix("c:") if target else None
        machines = None if all_machines else machines_of(Store.open())
        return wrapped(choice=RecordFilter(nest=nest, target=isa, machines=machines), **others)

    with_machines = click.option("--all-machines", is_flag=True, help="Include those of other machines.")(run)
    with_target = click.option("--target", metavar="ISA", help="Only those for an instruction set: avx512, opencl512.")
    with_nest = click.option("--nest", metavar="NAME", help="Only those of nests with this name.")
    return with_nest(with_target(with_machines))


@command.command("list")
@chosen
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
def list_records(choice: RecordFilter, as_json: bool) -> None:
    """List the records, by default those of this machine."""
    found = Store.open().records(choice)
    if as_json:
        click.echo(json.dumps([{"id": record.id, **record.facts()} for record in found], indent=1))
    elif found:
        print_table(*_record_rows(found, machines=choice.machines is None))
    else:
        others = len(Store.open().records())
        hint = f" There are {others} others: see poly records list --all-machines." if others else ""
        click.echo(f"no records{' that match' if others else ' yet'}.{hint}")


@command.command("show")
@click.argument("number", metavar="ID", type=int)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def show_record(number: int, as_json: bool) -> None:
    """Show one record: its problem, how it was found, and its schedule."""
    store = Store.open()
    found = store.record(number)
    if as_json:
        click.echo(json.dumps({"id": found.id, **found.facts()}, indent=1))
    else:
        print_text(_record_text(found, store.trials(found.key)))


@command.command("export")
@click.argument("file", type=click.Path(path_type=Path))
@chosen
def export_records(file: Path, choice: RecordFilter) -> None:
    """Write records to FILE, as JSON lines that `poly records import` reads elsewhere."""
    check_file("FILE", file)
    count = export(Store.open(), file, choice)
    click.echo(f"{count} record{'s' if count != 1 else ''} written to {file}")


def merge_and_report(file: Path) -> None:
    """Merge a file into the store, and report what became of its records."""
    done = merge(Store.open(), file)
    click.echo(
        f"{done.new} new, {done.better} in place of worse ones, {done.left} left out: no better than what is here"
    )
    if done.elsewhere:
        click.echo(f"{done.elsewhere} of another machine: kept and listed (--all-machines), but not used here")


@command.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def import_records(file: Path) -> None:
    """Add the records of FILE, from `poly records export`. Of two records for one problem, the better is kept."""
    merge_and_report(file)


@command.command("merge")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def merge_records(file: Path) -> None:
    """Add the records of another store, a file records.sqlite. Of two records for one problem, the better is kept."""
    merge_and_report(file)


@command.command("clear")
@chosen
@click.option("--id", "number", type=int, help="Only the record with this number.")
@click.option("--outdated", is_flag=True, help="Only those of other versions of poly, which are no longer used.")
@click.option("--yes", is_flag=True, help="Don't ask.")
def clear_records(choice: RecordFilter, number: int | None, outdated: bool, yes: bool) -> None:
    """Remove records, and the trials of the searches that found them."""
    store = Store.open()
    machines = choice.machines if number is None else None
    meant = RecordFilter(number, choice.nest, choice.target, machines, RELEASE if outdated else None)
    count = store.count(meant)
    if not count.problems:
        click.echo("there is nothing to remove")
        return
    if not yes:
        click.confirm(f"Remove {count}?", abort=True)
    click.echo(f"removed {store.clear(meant)}")


def _record_rows(records: Iterable[Record], machines: bool) -> tuple[list[str], list[list[str]]]:
    """The headings and rows of a table of records; with `machines`, or if one is of a device, it has their machines.

    A target `avx2 x 4` means 4 threads.
    """
    records = list(records)
    machines = machines or any(record.key.of_device for record in records)
    head = ["nest", "id", "sizes", "dtype", "target", "time", "GFLOP/s", "trials", "search", "tuned, UTC"]
    rows = [[*_cells(record), *([record.key.machine.partition(", L1")[0]] if machines else [])] for record in records]
    return [*head, *(["machine"] if machines else [])], rows


def _cells(record: Record) -> list[str]:
    key = record.key
    return [
        key.name,
        str(record.id),
        _sizes_text(record),
        " ".join(dict.fromkeys(key.dtypes)),
        key.target if key.threads == 1 else f"{key.target} x {key.threads}",
        time_text(record.seconds),
        _rate_text(record),
        str(record.trials),
        record.strategy + ("" if record.finished else " (unfinished)"),
        f"{record.when:%Y-%m-%d %H:%M}",
    ]


def _record_text(record: Record, trials: Sequence[StoredTrial]) -> str:
    """A whole record, one fact per line, and the steps of its schedule."""
    key = record.key
    traits, values = read_point(record.point)
    failed = sum(bool(trial.failure) for trial in trials)
    unit = "compute unit" if key.of_device else "thread"
    facts = {
        "nest": f"{key.name} ({', '.join(key.dtypes)}), structure {key.structure}",
        "sizes": _sizes_text(record),
        "target": f"{key.target}, {key.threads} {unit}{'s' if key.threads != 1 else ''}",
        "device" if key.of_device else "machine": key.machine,
        "driver" if key.of_device else "compiler": key.compiler,
        "engine": f"poly {key.engine}",
        "time": f"{time_text(record.seconds)} ± {time_text(record.spread)}, {_rate_text(record)} GFLOP/s",
        "search": f"{record.strategy}, {record.trials} trials in {record.tuning_seconds:.1f} s"
        + ("" if record.finished else ", not finished"),
        "tuned": f"{record.when:%Y-%m-%d %H:%M:%S} UTC",
        "kept": f"{len(trials)} trials, {failed} of them failed",
        "structure": ", ".join(f"{name} {value}" for name, value in traits) or "as written",
        "knobs": ", ".join(f"{name} {'uncut' if value is None else value}" for name, value in values.items()) or "none",
    }
    lines = [f"{name:10} {value}" for name, value in facts.items()]
    return "\n".join(
        (f"record {record.id}", *lines, "schedule", *(f"  .{step}" for step in _step_texts(record.schedule)))
    )


def _step_texts(schedule: str) -> list[str]:
    """The steps in a schedule's JSON as calls: `tile(i=6, j=64)`."""
    return [
        f"{step['step']}({', '.join((*map(repr, step['args']), *(f'{n}={v!r}' for n, v in step['kwargs'].items())))})"
        for step in json.loads(schedule)
    ]


def _sizes_text(record: Record) -> str:
    """`K=512 M=512`; or `any (K=512 M=512)` for open sizes, with the values at which they were measured."""
    fixed = " ".join(f"{name}={value}" for name, value in record.key.sizes)
    at = " ".join(f"{name}={value}" for name, value in record.at)
    return " ".join(filter(None, (fixed, f"any ({at})" if at else ""))) or "none"


def _rate_text(record: Record) -> str:
    return "-" if record.gflops is None else f"{record.gflops:.1f}"
