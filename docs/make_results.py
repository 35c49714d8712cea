"""Write the results in README.md, docs/benchmarks.md and the picture of them from the runs in docs/results.

    poly bench --quick --record docs/results    # this machine's run; several with parts of the plan do, too
    python docs/make_results.py

Each CPU and target has a file in docs/results and gets a column. The picture shows the run that --picture names, or
else the first.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.document import read
from benchmarks.plot import plot
from benchmarks.published import stored
from benchmarks.side_by_side import Document, column, details, summary

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "docs" / "results"
PLACE = re.compile(r"(?<=<!-- table: poly bench -->\n).*?(?=<!-- /table -->)", re.DOTALL)
"""Where the README has the summary."""

HEAD = """# Benchmarks

`python docs/make_results.py` makes this page from the runs in `docs/results`, one for each CPU, made by
`poly bench --quick --record docs/results`. A cell contains the percentage of the FMA peak, probed in the same rounds
(GFLOP/s where memory bounds the work), and the speed relative to the best peer, with its name. Nothing is tuned: the
model chose the schedules. All contenders run in turn, on arrays where NumPy puts its own. Threads are awake, except in
`cold`: there each sample is one call by threads that slept.

The rounds of a case are repeated, up to twice, if the quartiles of our times or of the best peer's are more than 20 %
of the median apart; `!` marks cases that remained so. `±` is half the distance of the quartiles of the ratio.
`poly bench --json` has all samples, the peak and the issue rate of each round, and the part of the rounds in which a
neighbour on the core's other hardware thread was busy. `poly bench --aligned` measures each case also on arrays that
start on cache lines. With `--target c:avx2` on a CPU with AVX-512, all contenders use AVX2 alone, as they would on a
CPU without it.

`poly bench --compare OLD.json` tells what changed since a run with `--json OLD.json`, and `poly bench compare OLD.json
NEW.json` what changed between two. A row has changed if its samples, as fractions of the peak in the same round, pass
the Mann-Whitney U test at 5 % after Holm's correction for the number of rows, if the quartiles of both runs are apart,
and if it changed by more than the unchanged peers of the row seem to. The exit status is 1 if a result of ours is wrong
or missing, else 3 if a row is slower (with `--fail-if 5%`, by more than that), else 0.
[`benchmarking.md`](benchmarking.md) is about your own nests.

`poly bench polybench` measures the 30 kernels of PolyBench 4.2.1 in f64, and `poly bench loops` lattice-Boltzmann
steps, alignments, passes of Fourier transforms and loops like those of Livermore and TSVC. Peers are C compilers on the
loops as written in C with constant sizes: gcc, gcc with Graphite, clang, clang with Polly, and Pluto where `polycc` is
on the PATH, each also with `-ffast-math`. Results are compared with those of a compiler that keeps the order of all
operations; a peer with a wrong result is shown and does not count. Columns are the speed relative to the best right
peer and to gcc, our rate as a part of our plain GEMM's where a kernel is mostly contractions, and as a part of what the
machine can do (`% bound`), the workspace beyond the arrays, and the seconds from loops to a shared library with an
empty cache. A peer whose first run takes more than 1.5 times the fastest one's is not run again, but for gcc. Below the
table are the geometric means, and the goals with the programs that miss them; after `--threads 1 --threads 2`, also
what threads gain.
"""


def readme(text: str, documents: Sequence[Document]) -> str:
    """The README with the summary of these runs. Raises ValueError if it has no place for it."""
    table = "".join(f"{line}\n" for line in summary(documents))
    made, places = PLACE.subn(lambda _: table, text)
    if places != 1:
        raise ValueError("README.md has no line `<!-- table: poly bench -->` with `<!-- /table -->` after it")
    return made


def page(documents: Sequence[Document]) -> str:
    """The page with all cases."""
    return "\n".join((HEAD, *details(documents))).rstrip() + "\n"


def files(root: Path, documents: Sequence[Document]) -> Iterator[tuple[Path, str]]:
    """Each file that shows results, with its text."""
    path = root / "README.md"
    yield path, readme(path.read_text(), documents)
    yield root / "docs" / "benchmarks.md", page(documents)


def main() -> None:
    """Write the files, and the picture."""
    parser = argparse.ArgumentParser(description="Write the results in the documentation from docs/results.")
    parser.add_argument("--picture", metavar="FILE", type=Path, help="the run that the picture shows")
    picture = parser.parse_args().picture
    documents = stored(RESULTS)
    for path, text in files(ROOT, documents):
        path.write_text(text)
    shown = read(picture) if picture else documents[0]
    plot(shown["rows"], ROOT / "docs" / "img" / "bench.png", column(shown))


if __name__ == "__main__":
    main()
