"""A program that installs the packages of missing peers, as far as this user can, and tells the rest.

python -m benchmarks.peers.install
"""

from __future__ import annotations

from benchmarks.peers import PEERS
from benchmarks.peers.package import install, missing


def main() -> None:
    """Install, with a line for each package."""
    for line in install(missing(list(PEERS.values()))):
        print(line)


if __name__ == "__main__":
    main()
