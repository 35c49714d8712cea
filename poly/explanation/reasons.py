"""Why not: for each loop of a schedule why it is not parallel or not vectorised, for each statement why no microkernel.

Every reason is the answer of the function that decides: of the proofs of `poly/analysis`, with two iterations as a
witness, of the conditions of the rules in `poly/autoschedule`, or of the model, with the times that it expects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Literal

from poly.analysis.dependences import Dependence
from poly.analysis.legality import Witness, is_written_out, lane_conflict, race, witness
from poly.analysis.roles import roles
from poly.analysis.together import apart
from poly.autoschedule.default import expectation
from poly.autoschedule.rules.lanes import FEW, is_short, unpaid
from poly.autoschedule.rules.microkernels import contracted, unserved
from poly.autoschedule.rules.shapes import INNER_GUESS
from poly.autoschedule.rules.sharing import WORTH, lacking_work
from poly.display import time_text
from poly.errors import ScheduleError
from poly.ir.budget import QUESTION, TooCostly, limited
from poly.ir.strides import extent
from poly.ir.tree import Band, Micro, Node, bands, children, statements, walk
from poly.model.core import Target
from poly.schedules.schedule import Schedule

What = Literal["parallel", "vectorised", "in a microkernel"]
PARALLEL: What = "parallel"
VECTORISED: What = "vectorised"
KERNEL: What = "in a microkernel"

Cause = Literal[
    "dependence",
    "one iteration",
    "one thread",
    "another loop",
    "work",
    "kernel",
    "strides",
    "form",
    "model",
    "rule",
    "cost",
]
"""Kinds of reasons: the model decides what is legal and pays in general."""


@dataclass(frozen=True)
class Reason:
    """Why the loop or statement `subject` is not `what`.

    `text` is the reason in words. A dependence has its `witness`. Where the change is possible, `seconds` are the times
    of a call that the model expects of the schedule as it is and with the change.
    """

    subject: str
    what: What
    cause: Cause
    text: str
    witness: Witness | None = None
    seconds: tuple[float, float] | None = None

    def __str__(self) -> str:
        """`k: not parallel: S[0] and S[1] update one element of s …`."""
        return f"{self.subject}: not {self.what}: {self.text}"


def reasons(made: Schedule, target: Target) -> tuple[Reason, ...]:
    """All reasons for a schedule: those of the loops, outermost first, then those of the statements.

    Loops that a microkernel has absorbed are not among them. Open sizes are assumed to be large.
    """
    asked = _Asked(made, target)
    return (*asked.of_loops(made.tree, ()), *asked.of_statements())


def reason_lines(found: tuple[Reason, ...]) -> Iterator[str]:
    """A line for each reason, those of one loop together."""
    width = max((len(reason.subject) for reason in found), default=0)
    column = max((len(reason.what) for reason in found), default=0)
    for number, reason in enumerate(found):
        first = not number or found[number - 1].subject != reason.subject
        subject = (reason.subject if first else "").ljust(width)
        yield f"{subject}  not {reason.what.ljust(column)}  {reason.text}"


@dataclass(frozen=True)
class _Asked:
    """A schedule for a target, about which is asked."""

    made: Schedule
    target: Target

    def of_loops(self, node: Node, above: tuple[Band, ...]) -> Iterator[Reason]:
        inside = above
        if isinstance(node, Band):
            inside = (*above, node)
            if not node.parallel:
                yield _answer(node.name, PARALLEL, partial(self._parallel, node, above))
            if not node.vectorize:
                yield _answer(node.name, VECTORISED, partial(self._vectorised, node))
        for child in children(node):
            yield from self.of_loops(child, inside)

    def _parallel(self, band: Band, above: tuple[Band, ...]) -> Reason:
        nest, tree, name = self.made.nest, self.made.tree, band.name
        carried = race(nest, tree, name)
        if carried is not None:
            found = witness(carried)
            return Reason(name, PARALLEL, "dependence", str(found), found)
        if extent(nest, band) == 1:
            return Reason(name, PARALLEL, "one iteration", "it has one iteration")
        if self.target.threads == 1:
            return Reason(name, PARALLEL, "one thread", "the schedule is for one thread")
        shared = next((other.name for other in above if other.parallel), None)
        if shared is not None:
            return Reason(name, PARALLEL, "another loop", f"the threads share {shared}, which is around it")
        shared = next((other.name for other in bands(band.body) if other.parallel), None)
        if shared is not None:
            return Reason(name, PARALLEL, "another loop", f"the threads share {shared}, which is inside it")
        few = self._lacking_work(band, above)
        if few is not None:
            return Reason(name, PARALLEL, "work", few)
        return self._by_the_model(name, PARALLEL, lambda: self.made.parallel(name))

    def _lacking_work(self, band: Band, above: tuple[Band, ...]) -> str | None:
        """Why the work is too little for threads, by the rule for contractions or that for other loops."""
        nest = self.made.nest
        kernel = next((node for node in walk(band) if isinstance(node, Micro)), None)
        if kernel is None:
            few = lacking_work(nest, band, INNER_GUESS if above else WORTH)
            return None if few is None else f"one run of it has at most {few} iterations, and threads pay from {WORTH}"
        r, dtype = roles(nest, nest.statement(kernel.statement)), kernel.kernel.dtype
        if r is None:
            return None
        work = prod(axis.guess for axis in (*r.rows, *r.columns, *r.reduce, *r.batch, *r.overlaps))
        least = self.target.worthwhile(dtype)
        return None if work >= least else f"the contraction has {work} multiply-adds, and threads pay from {least:.0f}"

    def _vectorised(self, band: Band) -> Reason:
        nest, tree, name = self.made.nest, self.made.tree, band.name
        kernels = [node.kernel.name for node in walk(band) if isinstance(node, Micro)]
        if kernels:
            return Reason(name, VECTORISED, "kernel", f"the microkernel {kernels[0]} inside it computes in vectors")
        inner = [other.name for other in bands(band.body) if not is_written_out(nest, tree, other)]
        if inner:
            return self._around(band, inner)
        if is_short(nest, band):
            return Reason(name, VECTORISED, "work", f"it has {extent(nest, band)} iterations, and lanes pay from {FEW}")
        return self._unless(lane_conflict(nest, tree, name), band)

    def _around(self, band: Band, inner: list[str]) -> Reason:
        """Why a loop around others has no lanes, which would go through these together."""
        nest, tree, name = self.made.nest, self.made.tree, band.name
        lanes = next((other.name for other in bands(band.body) if other.vectorize), None)
        if lanes is not None:
            return Reason(name, VECTORISED, "another loop", f"loop {lanes} inside it has lanes")
        own = apart(nest, tree, band)
        if own is not None:
            text = f"it has inner loops, {', '.join(inner)}, and each of its iterations its own of {own}"
            return Reason(name, VECTORISED, "another loop", text)
        return self._unless(race(nest, tree, name), band)

    def _unless(self, carried: Dependence | None, band: Band) -> Reason:
        """Why a loop that could have lanes, unless it carries a dependence, has none."""
        if carried is not None:
            found = witness(carried)
            return Reason(band.name, VECTORISED, "dependence", str(found), found)
        strided = unpaid(self.made, band)
        if strided is not None:
            return Reason(band.name, VECTORISED, "strides", strided)
        return self._by_the_model(band.name, VECTORISED, lambda: self.made.vectorize(band.name))

    def of_statements(self) -> Iterator[Reason]:
        """The reasons of the statements that no microkernel computes."""
        kernels = [node for node in walk(self.made.tree) if isinstance(node, Micro)]
        computed = {name for node in kernels for name in (node.statement, node.initial)}
        for name in dict.fromkeys(statements(self.made.tree)):
            if name not in computed:
                yield _answer(name, KERNEL, partial(self._in_no_kernel, name))

    def _in_no_kernel(self, name: str) -> Reason:
        why = unserved(self.made.nest, self.made.nest.statement(name), self.target)
        if why is not None:
            return Reason(name, KERNEL, "form", why)
        return self._by_the_model(name, KERNEL, lambda: contracted(self.made.nest, self.target))

    def _by_the_model(self, subject: str, what: What, change: Callable[[], Schedule]) -> Reason:
        """The reason where the change is possible: the times that the model expects."""
        try:
            other = change()
        except ScheduleError as error:
            return Reason(subject, what, "form", str(error))
        now, then = (expectation(made, self.target).seconds for made in (self.made, other))
        text = f"the model expects {time_text(now)} as it is, and {time_text(then)} with that"
        if then < now:
            return Reason(subject, what, "rule", f"no rule did so in this schedule; {text}", seconds=(now, then))
        return Reason(subject, what, "model", f"it could be, but {text}", seconds=(now, then))


def _answer(subject: str, what: What, ask: Callable[[], Reason]) -> Reason:
    """The reason, if finding it takes no more work than any other question."""
    try:
        with limited(QUESTION, reserve=50):  # the other questions and figures take the same budget
            return ask()
    except TooCostly:
        return Reason(subject, what, "cost", "it takes too much work to find out")
