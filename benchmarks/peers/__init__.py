"""The libraries to compare with, each optional, each at its best configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.arrays import Array
from benchmarks.case import Case
from benchmarks.contender import Contender, Peer
from benchmarks.peers.blis import Blis
from benchmarks.peers.compiler import CompiledLoops
from benchmarks.peers.libxsmm import Libxsmm
from benchmarks.peers.mkl import Mkl
from benchmarks.peers.numpy_peer import Numpy
from benchmarks.peers.onednn import OneDnn
from benchmarks.peers.scipy_peer import SciPy
from benchmarks.peers.torch_peer import Torch

PEERS: Mapping[str, Peer] = {
    peer.name: peer for peer in (Numpy(), Mkl(), Torch(), OneDnn(), Blis(), Libxsmm(), SciPy(), CompiledLoops())
}
"""The peers, by their names for `--against`."""


@dataclass(frozen=True)
class NamedPeer:
    """A peer by name, as a solver for a worker."""

    name: str

    def __call__(self, case: Case, arrays: tuple[Array, ...], threads: int) -> Contender | None:
        """The peer's contender for the case. Raises NotInstalled."""
        return PEERS[self.name].prepare(case.problem, arrays, threads)
