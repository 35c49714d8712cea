"""The libraries to compare with, each optional, each at its best configuration."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.contender import Peer
from benchmarks.peers.blis import Blis
from benchmarks.peers.compiler import Compiler
from benchmarks.peers.libxsmm import Libxsmm
from benchmarks.peers.mkl import Mkl
from benchmarks.peers.numpy_peer import Numpy
from benchmarks.peers.onednn import OneDnn
from benchmarks.peers.torch_peer import Torch

PEERS: Mapping[str, Peer] = {
    peer.name: peer for peer in (Numpy(), Mkl(), Torch(), OneDnn(), Blis(), Libxsmm(), Compiler())
}
"""By the names that `--against` takes."""
