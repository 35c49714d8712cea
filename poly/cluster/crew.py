"""The workers of a cluster that tune for this poly, and calls to them: what a dead worker had is given to another.

Which worker gets a call is decided here and not by the scheduler, since a machine may measure one candidate at a time.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from codegen.toolchain.compiler import compiler_name
from microkernels.errors import PolyError, plain, shown
from microkernels.isa import ISA
from poly.cluster.member import Member, announce
from poly.compiled import engine
from poly.errors import SearchError
from poly.records.key import machine_name
from poly.version import __version__

if TYPE_CHECKING:
    from distributed import Client, Future

CONNECTING = 15.0
"""Seconds to wait for a cluster's scheduler."""
PATIENCE = 60.0
"""Seconds to wait for a worker that may carry out a call, when others have ended."""
BEAT = 0.5
"""Seconds between two looks at which workers live."""
TRIES = 3
"""How often a call is given to a worker before it counts as the cause of the workers' deaths."""

Hands = Callable[[Collection[Member]], Iterable[Member]]
"""Those of the workers that may carry out a call; each has as many calls at a time as it is named."""


@dataclass(frozen=True)
class WorkerCall:
    """A function of `poly.cluster.member` and its arguments; `lost` is the result if its workers die."""

    function: Callable[..., object]
    arguments: tuple[object, ...]
    lost: object


class Deserted(SearchError):
    """No worker is left that may carry out a call."""


def builders(isa: ISA) -> Hands:
    """The workers with this machine's compiler on which an instruction set runs."""
    compiler = compiler_name()

    def found(members: Collection[Member]) -> Iterator[Member]:
        for member in members:
            if member.compiler == compiler and isa.name in member.isas:
                yield from [member] * member.slots

    return found


def measurers(isa: ISA) -> Hands:
    """One worker of each machine that is of the same kind as this one, by the name in the keys of records."""
    machine = machine_name()

    def found(members: Collection[Member]) -> Iterable[Member]:
        alike = [member for member in members if member.machine == machine and isa.name in member.isas]
        return {member.host: member for member in reversed(alike)}.values()

    return found


def of_kind(machine: str) -> Hands:
    """One worker on a machine with this name."""
    return lambda members: [member for member in members if member.machine == machine][:1]


class Crew:
    """The workers of a cluster, each asked once who it is. Those that join later take part, too."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: dict[str, Member] = {}

    def members(self) -> tuple[Member, ...]:
        """The workers that live. Raises SearchError if one has another poly, or cannot run it."""
        alive = self._alive()
        for address in [address for address in alive if address not in self._known]:
            self._meet(address, alive[address])
        return tuple(self._known[address] for address in alive if address in self._known)

    def check(self, isa: ISA) -> None:
        """Raise SearchError if no worker may build for an instruction set, or none may measure for this machine."""
        members = self.members()
        if not members:
            raise SearchError(f"the cluster {self._address} has no workers: start some, as with `dask worker`.")
        if not list(builders(isa)(members)):
            have = sorted({f"{m.compiler} ({', '.join(sorted(m.isas))})" for m in members})
            raise SearchError(
                f"no worker can build for {isa.name} with {compiler_name()}, as this machine does; "
                f"the workers have {'; '.join(have)}."
            )
        if not list(measurers(isa)(members)):
            have = sorted({m.machine for m in members})
            raise SearchError(
                f"no worker runs on a machine like this one ({machine_name()}), so none can measure for it; "
                f"they run on {'; '.join(have)}. Call poly on one of these."
            )

    def results(self, calls: Sequence[WorkerCall], hands: Hands) -> Iterator[Any]:
        """The results of some calls, in order, each as soon as it is there.

        Raises Deserted if there is nobody to carry them out, and what a call raises.
        """
        work = _Work(calls)
        deserted_since = monotonic()
        try:
            for number in range(len(calls)):
                while number not in work.done:
                    members = self.members()
                    work.take_back({member.address for member in members})
                    free = Counter(member.address for member in hands(members)) - work.busy
                    for address in free.elements():
                        work.give(address, self._client)
                    if work.running:
                        deserted_since = monotonic()
                        work.collect(self._client)
                    elif number not in work.done:
                        self._wait(deserted_since)
                yield work.done.pop(number)
        finally:
            work.cancel()

    def each_kind(self, call: WorkerCall) -> dict[str, Any]:
        """The results of a call on one worker of each kind of machine, by the machines' names in records; all at once.

        A kind whose workers all die has the call's `lost`. Raises what the call raises.
        """

        def carried_out(machine: str) -> Any:
            try:
                return next(self.results([call], of_kind(machine)))
            except Deserted:
                return call.lost

        kinds = sorted({member.machine for member in self.members()})
        with ThreadPoolExecutor(max(1, len(kinds))) as pool:
            return dict(zip(kinds, pool.map(carried_out, kinds), strict=True))

    def everywhere(self, function: Callable[..., object], *arguments: object) -> None:
        """Call a function on all workers, without their results; a worker may die meanwhile."""
        with suppress(Exception):
            self._client.run(function, *arguments, on_error="ignore")

    def _alive(self) -> dict[str, int]:
        """The addresses of the workers and their threads. Raises Deserted if the cluster is gone."""
        try:
            return dict(self._client.nthreads())
        except OSError as error:  # also a time limit
            raise Deserted(f"the cluster {self._address} does not answer: {error}") from error

    def _meet(self, address: str, threads: int) -> None:
        """Ask a worker who it is, unless it dies meanwhile."""
        found = self._client.run(announce, address, threads, workers=[address], on_error="return").get(address)
        if isinstance(found, OSError) or found is None:
            return
        if not isinstance(found, Member):
            said = f"{type(found).__name__}: {plain(str(found))}"
            raise SearchError(f"the worker {address} cannot tune with poly {__version__}: {said}. Install it there.")
        if (found.version, found.engine) != (__version__, engine()):
            raise SearchError(
                f"the worker {address} has another poly: {found.version} ({found.engine[:8]}), "
                f"and this is {__version__} ({engine()[:8]}). Install the same one everywhere."
            )
        self._known[address] = found

    def _wait(self, since: float) -> None:
        """Wait for a worker to join."""
        if monotonic() - since > PATIENCE:
            raise Deserted(f"no worker of the cluster {self._address} is left that may carry out the work.")
        sleep(BEAT)

    @property
    def _address(self) -> str:
        return str(self._client.scheduler.address) if self._client.scheduler else "(closed)"


class _Work:
    """Calls that wait, those that a worker has, and the results."""

    def __init__(self, calls: Sequence[WorkerCall]) -> None:
        self.calls = calls
        self.done: dict[int, object] = {}
        self.running: dict[Future, tuple[int, str]] = {}
        self._waiting = deque(range(len(calls)))
        self._tries: Counter[int] = Counter()

    @property
    def busy(self) -> Counter[str]:
        """How many calls each worker has, by its address."""
        return Counter(address for _, address in self.running.values())

    def give(self, address: str, client: Client) -> None:
        """Give the next call to a worker."""
        if self._waiting:
            number = self._waiting.popleft()
            self._tries[number] += 1
            call = self.calls[number]
            future = client.submit(
                call.function, *call.arguments, workers=[address], allow_other_workers=False, pure=False
            )
            self.running[future] = number, address

    def take_back(self, alive: Collection[str]) -> None:
        """Give the calls of dead workers to others, before those that wait."""
        for future, (number, address) in list(self.running.items()):
            if address not in alive or future.status in ("cancelled", "lost"):
                self._lose(future, number)

    def collect(self, client: Client) -> None:
        """Wait a moment for results, and take those that are there. Raises what a call raised."""
        from distributed import KilledWorker, wait

        with suppress(TimeoutError), client.as_current():
            wait(list(self.running), timeout=BEAT, return_when="FIRST_COMPLETED")
        for future, (number, _) in list(self.running.items()):
            if future.status == "finished":
                del self.running[future]
                self.done[number] = future.result()
            elif future.status == "error":
                error = future.exception()
                if not isinstance(error, KilledWorker):
                    raise error if isinstance(error, PolyError) else SearchError(f"a worker failed: {shown(error)}")
                self._lose(future, number)

    def cancel(self) -> None:
        for future in self.running:
            with suppress(Exception):
                future.cancel()

    def _lose(self, future: Future, number: int) -> None:
        del self.running[future]
        with suppress(Exception):
            future.cancel()
        if self._tries[number] < TRIES:
            self._waiting.appendleft(number)
        else:
            self.done[number] = self.calls[number].lost


@contextmanager
def connected(workers: str | Client) -> Iterator[Crew]:
    """The workers of the cluster at an address, such as `tcp://host:8786`, or of a client.

    Raises SearchError if the package `distributed` is missing, or the cluster cannot be reached.
    """
    try:
        from distributed import Client
    except ModuleNotFoundError as error:
        raise SearchError("workers need the package distributed: pip install 'poly-loops[cluster]'") from error
    if isinstance(workers, Client):
        if workers.asynchronous:
            raise SearchError("workers: this client is asynchronous, and poly.tune waits: give the cluster's address.")
        yield Crew(workers)
        return
    if not isinstance(workers, str):
        raise SearchError(f"workers must be a cluster's address such as 'tcp://host:8786', not {shown(workers)}.")
    try:
        client = Client(workers, timeout=CONNECTING, set_as_default=False)
    except (OSError, ValueError) as error:
        raise SearchError(f"the cluster {shown(workers)} cannot be reached: {plain(str(error))}") from error
    try:
        yield Crew(client)
    finally:
        client.close()
