"""CLBlast's parameters: which combinations are allowed, and the neighbours of a choice.

Xgemm         tiles of MWG x NWG by a group of MDIMC x NDIMC items, in slabs of KWG, on operands copied into its layout;
              GEMMK=1 is another kernel, whose items keep KREG steps of k in registers
Transpose     copies into that layout, of whole tiles and of others (Padtranspose)
XgemmDirect   tiles of WGD x WGD by a group of MDIMCD x NDIMCD items, on operands in place
Xgemv…        matrix times vector: groups of WGS items, each with WPT rows, by vectors of VW
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

Parameters = dict[str, int]

FEW = (1, 2, 4, 8)
DIMENSIONS = (1, 2, 4, 8, 16, 32)
GROUPS = (8, 16, 32, 64, 128, 256)
GRIDS: Mapping[str, Mapping[str, tuple[int, ...]]] = {
    "Xgemm": {
        "GEMMK": (0, 1),
        "KREG": (1, 2, 4, 8),
        "KWG": (1, 16, 32, 64),
        "KWI": (1, 2, 4, 8, 16),
        "MDIMA": DIMENSIONS,
        "MDIMC": DIMENSIONS,
        "MWG": (8, 16, 32, 64, 128),
        "NDIMB": DIMENSIONS,
        "NDIMC": DIMENSIONS,
        "NWG": (8, 16, 32, 64, 128),
        "SA": (0, 1),
        "SB": (0, 1),
        "STRM": (0, 1),
        "STRN": (0, 1),
        "VWM": FEW,
        "VWN": FEW,
    },
    "XgemmDirect": {
        "KWID": (2, 4, 8, 16),
        "MDIMAD": DIMENSIONS,
        "MDIMCD": DIMENSIONS,
        "NDIMBD": DIMENSIONS,
        "NDIMCD": DIMENSIONS,
        "PADA": (0, 1),
        "PADB": (0, 1),
        "VWMD": FEW,
        "VWND": FEW,
        "WGD": (8, 16, 32, 64),
    },
    "Transpose": {"TRA_DIM": (4, 8, 16, 32), "TRA_PAD": (0, 1), "TRA_SHUFFLE": (0, 1), "TRA_WPT": (*FEW, 16)},
    "Padtranspose": {"PADTRA_PAD": (0, 1), "PADTRA_TILE": (4, 8, 16, 32), "PADTRA_WPT": (*FEW, 16)},
    "XgemvFast": {"VW2": FEW, "WGS2": GROUPS, "WPT2": FEW},
    "XgemvFastRot": {"VW3": FEW, "WGS3": GROUPS, "WPT3": (*FEW, 16, 32)},
}
"""The values of each parameter, by the kernel's name."""

TOGETHER = (
    *({"MDIMA": dim, "MDIMC": dim} for dim in DIMENSIONS),
    *({"NDIMB": dim, "NDIMC": dim} for dim in DIMENSIONS),
    *({"MDIMAD": dim, "MDIMCD": dim} for dim in DIMENSIONS),
    *({"NDIMBD": dim, "NDIMCD": dim} for dim in DIMENSIONS),
)
"""Joint changes of two parameters, since most choices keep them equal."""


def allowed(kernel: str, p: Mapping[str, int]) -> bool:
    """Whether CLBlast's kernel is correct for these parameters, by the requirements in its sources."""
    if any(value not in GRIDS[kernel][name] for name, value in p.items()):
        return False
    rules = {"Xgemm": _indirect, "XgemmDirect": _direct, "XgemvFast": _fast, "XgemvFastRot": _rotated}
    return kernel not in rules or rules[kernel](p)


def _indirect(p: Mapping[str, int]) -> bool:
    items = p["MDIMC"] * p["NDIMC"]
    whole = (
        p["KWG"] % p["KWI"] == 0
        and all(p["MWG"] % (p[dim] * p["VWM"]) == 0 for dim in ("MDIMC", "MDIMA"))
        and all(p["NWG"] % (p[dim] * p["VWN"]) == 0 for dim in ("NDIMC", "NDIMB"))
    )
    if p["GEMMK"] == 1:
        plain = p["KWG"] == p["KWI"] == 1 and not (p["SA"] or p["SB"] or p["STRM"] or p["STRN"])
        same = p["MDIMA"] == p["MDIMC"] and p["NDIMB"] == p["NDIMC"]
        return whole and plain and same and p["KREG"] % p["VWN"] == 0
    panels = all(items % p[dim] == 0 and p["KWG"] % (items // p[dim]) == 0 for dim in ("MDIMA", "NDIMB"))
    return whole and panels and p["KREG"] == 1 and p["KWG"] > 1


def _direct(p: Mapping[str, int]) -> bool:
    items, tile = p["MDIMCD"] * p["NDIMCD"], p["WGD"]
    return (
        tile % p["KWID"] == 0
        and all(tile % (p[dim] * p["VWMD"]) == 0 for dim in ("MDIMCD", "MDIMAD"))
        and all(tile % (p[dim] * p["VWND"]) == 0 for dim in ("NDIMCD", "NDIMBD"))
        and all(items % p[dim] == 0 and tile % (items // p[dim]) == 0 for dim in ("MDIMAD", "NDIMBD"))
    )


def _fast(p: Mapping[str, int]) -> bool:
    return p["WPT2"] % p["VW2"] == 0


def _rotated(p: Mapping[str, int]) -> bool:
    return p["WPT3"] % p["VW3"] == 0 and p["WPT3"] <= p["WGS3"]


def neighbours(kernel: str, p: Parameters) -> Iterator[Parameters]:
    """Choices that differ in one parameter, by the next value up or down, or by a change of TOGETHER."""
    grid = GRIDS[kernel]
    for name, values in grid.items():
        at = values.index(p[name])
        for other in (at - 1, at + 1):
            if 0 <= other < len(values) and allowed(kernel, {**p, name: values[other]}):
                yield {**p, name: values[other]}
    for change in TOGETHER:
        if change.keys() <= p.keys() and change.items() - p.items() and allowed(kernel, {**p, **change}):
            yield {**p, **change}
