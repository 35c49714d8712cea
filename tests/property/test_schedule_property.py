"""Random steps on random nests: what is accepted computes the same, what is refused has a true witness."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st
from interpreter import Instance, accesses, conflict, execute, instances, loop_runs, run_order
from random_nests import VALUE_OF_N, fixed, nests, steps

from poly.errors import ScheduleError
from poly.ir.nest import Nest
from poly.ir.tree import Node, bands
from poly.schedules.schedule import Schedule, schedule
from poly.schedules.steps import (
    Step,
)

WITNESS = re.compile(r"(\w+)\[([^\]]*)\] (must run before|and) (\w+)\[([^\]]*)\](?:.*with N = (\d+))?")


@settings(max_examples=50)
@given(nests(), st.data())
def test_an_accepted_schedule_computes_the_same_and_a_refused_step_has_a_true_witness(nest: Nest, data: st.DataObject):
    made = schedule(nest)
    for _ in range(5):
        step = data.draw(steps(made.tree))
        try:
            made = made.apply([step])
        except ScheduleError as error:
            if "is illegal" in str(error):
                check_witness(made, step, str(error))
    check_same_result(nest, made)
    assert repr(Schedule.from_json(nest, made.to_json())) == repr(made)
    assert repr(eval(repr(made), {"schedule": schedule, nest.name: nest})) == repr(made)


def check_same_result(written: Nest, made: Schedule) -> None:
    """In order, with every marked loop backwards, and with no element shared by two iterations of a parallel loop."""
    nest, tree = fixed(made.nest, made.tree, VALUE_OF_N)
    reference, order = fixed(written, written.tree, VALUE_OF_N)
    expected = execute(reference, run_order(reference, order))
    assert execute(nest, run_order(nest, tree)) == expected
    marked = frozenset(band.name for band in bands(tree) if band.parallel or band.vectorize)
    assert execute(nest, run_order(nest, tree, marked)) == expected
    for band in bands(tree):
        if band.parallel:
            assert all(independent(nest, run) for run in loop_runs(tree, band.name, instances(nest, tree)))


def independent(nest: Nest, run: list[list[Instance]]) -> bool:
    """Whether no iteration writes what another touches."""
    touched = [{element for i in part for element, _ in accesses(nest, i)} for part in run]
    written = [{element for i in part for element, writes in accesses(nest, i) if writes} for part in run]
    return not any(written[a] & touched[b] for a in range(len(run)) for b in range(len(run)) if a != b)


def check_witness(made: Schedule, step: Step, message: str) -> None:
    match = WITNESS.search(message)
    assert match, message
    source, relation, sink, size = instance(match[1], match[2]), match[3], instance(match[4], match[5]), match[6]
    nest, tree = fixed(made.nest, step.apply(made.nest, made.tree), int(size or VALUE_OF_N))
    before, after = run_order(nest, nest.tree), run_order(nest, tree)
    assert conflict(nest, source, sink), message
    assert relation == "and" or before.index(source) < before.index(sink), message
    flagged = [band.name for band in bands(tree) if band.parallel or band.vectorize]
    backwards = after.index(source) > after.index(sink)
    together = any(in_two_iterations(nest, tree, name, source, sink) for name in flagged)
    assert backwards or together, message


def in_two_iterations(nest: Nest, tree: Node, loop: str, first: Instance, second: Instance) -> bool:
    """Whether one pass of a loop runs both, in different iterations."""
    for run in loop_runs(tree, loop, instances(nest, tree)):
        holders = [{first, second} & set(part) for part in run]
        if {first} in holders and {second} in holders:
            return True
    return False


def instance(statement: str, point: str) -> Instance:
    return Instance(statement, tuple(int(number) for number in point.split(",") if number.strip()))
