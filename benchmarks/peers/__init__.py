"""The libraries to compare with, each optional, each at its best configuration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from benchmarks.arrays import Array
from benchmarks.case import Case, Problem
from benchmarks.contender import Contender, Failed, NotInstalled, Peer
from benchmarks.peers.blis import Blis
from benchmarks.peers.compiler import CompiledLoops
from benchmarks.peers.libxsmm import Libxsmm
from benchmarks.peers.mkl import Mkl
from benchmarks.peers.numpy_peer import Numpy
from benchmarks.peers.onednn import OneDnn
from benchmarks.peers.scipy_peer import SciPy
from benchmarks.peers.torch_peer import Torch
from microkernels.errors import shown
from microkernels.plugins import load, names

GROUP = "poly.peers"
"""The entry point group in which packages offer peers, each under the name for `--against`."""
OWN: Mapping[str, Peer] = {
    peer.name: peer for peer in (Numpy(), Mkl(), Torch(), OneDnn(), Blis(), Libxsmm(), SciPy(), CompiledLoops())
}
"""Our peers by name."""


class Peers(Mapping[str, Peer]):
    """All peers by name, of which those of other packages are loaded when they are asked for."""

    def __getitem__(self, name: str) -> Peer:
        if name in OWN:
            return OWN[name]
        offered = load(GROUP, name, lambda one: getattr(one, "name", None) == name and hasattr(one, "prepare"), "peer")
        if offered is None:
            raise KeyError(name)
        return Offered(offered)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*OWN, *names(GROUP))))

    def __len__(self) -> int:
        return len(tuple(iter(self)))


PEERS: Mapping[str, Peer] = Peers()
"""The peers, by their names for `--against`."""


@dataclass(frozen=True)
class Offered:
    """A peer of another package: whatever it raises, a row of the table says so."""

    peer: Peer

    @property
    def name(self) -> str:
        return self.peer.name

    def prepare(self, problem: Problem, arrays: tuple[Array, ...], threads: int) -> Contender | None:
        """The peer's contender. Raises NotInstalled and Failed."""
        try:
            made = self.peer.prepare(problem, arrays, threads)
        except (NotInstalled, Failed):
            raise
        except Exception as error:  # a package's code may raise anything
            raise Failed(f"the peer {self.name} failed: {type(error).__name__}: {error}") from error
        if made is not None and not isinstance(made, Contender):
            raise Failed(f"the peer {self.name} prepared {shown(made)}, which is no contender")
        return made


@dataclass(frozen=True)
class NamedPeer:
    """A peer by name, as a solver for a worker."""

    name: str

    def __call__(self, case: Case, arrays: tuple[Array, ...], threads: int) -> Contender | None:
        """The peer's contender for the case. Raises NotInstalled."""
        return PEERS[self.name].prepare(case.problem, arrays, threads)
