"""The starting points of the search for CLBlast's parameters: good choices on devices of the same kind."""

from __future__ import annotations

from benchmarks.opencl.clblast_space import Parameters


def _indirect(mwg: int, nwg: int, mdim: int, ndim: int, vwm: int, vwn: int, **more: int) -> Parameters:
    same = {
        "GEMMK": 0, "KREG": 1, "KWG": 32, "KWI": 2, "MDIMA": mdim, "MDIMC": mdim, "MWG": mwg, "NDIMB": ndim,
        "NDIMC": ndim, "NWG": nwg, "SA": 0, "SB": 0, "STRM": 0, "STRN": 0, "VWM": vwm, "VWN": vwn,
    }  # fmt: skip
    return {**same, **more}


def _registers(mwg: int, nwg: int, mdim: int, ndim: int, vwm: int, vwn: int, kreg: int) -> Parameters:
    return _indirect(mwg, nwg, mdim, ndim, vwm, vwn, GEMMK=1, KREG=kreg, KWG=1, KWI=1)


def _direct(wgd: int, mdim: int, ndim: int, vwm: int, vwn: int) -> Parameters:
    return {
        "KWID": 2, "MDIMAD": mdim, "MDIMCD": mdim, "NDIMBD": ndim, "NDIMCD": ndim, "PADA": 1, "PADB": 1, "VWMD": vwm,
        "VWND": vwn, "WGD": wgd,
    }  # fmt: skip


SEEDS: dict[str, dict[str, tuple[Parameters, ...]]] = {
    "Xgemm": {
        "cpu": (
            _indirect(64, 32, 4, 4, 8, 8),
            _indirect(64, 128, 8, 8, 8, 4, NDIMB=32),
            _indirect(32, 16, 2, 2, 8, 8),
            _registers(16, 16, 2, 2, 8, 8, 8),
        ),
        "gpu": (
            _indirect(64, 64, 16, 8, 4, 4, SA=1, SB=1),
            _indirect(128, 64, 16, 16, 4, 1, KWG=16, MDIMA=32, SA=1, SB=1),
            _indirect(128, 128, 16, 16, 4, 4, KWG=16, SA=1, SB=1),
            _registers(64, 64, 16, 8, 4, 4, 4),
        ),
    },
    "XgemmDirect": {
        "cpu": (_direct(32, 4, 4, 8, 8), _direct(32, 8, 8, 4, 4), _direct(16, 2, 2, 8, 4)),
        "gpu": (_direct(32, 8, 8, 1, 1), _direct(32, 16, 8, 2, 2), _direct(64, 16, 16, 2, 2)),
    },
    "Transpose": {
        "cpu": (
            {"TRA_DIM": 8, "TRA_PAD": 0, "TRA_SHUFFLE": 0, "TRA_WPT": 4},
            {"TRA_DIM": 16, "TRA_PAD": 1, "TRA_SHUFFLE": 0, "TRA_WPT": 2},
        ),
        "gpu": ({"TRA_DIM": 16, "TRA_PAD": 1, "TRA_SHUFFLE": 0, "TRA_WPT": 2},),
    },
    "Padtranspose": {
        "cpu": ({"PADTRA_PAD": 0, "PADTRA_TILE": 8, "PADTRA_WPT": 4},),
        "gpu": ({"PADTRA_PAD": 1, "PADTRA_TILE": 16, "PADTRA_WPT": 2},),
    },
    "XgemvFastRot": {
        "cpu": ({"VW3": 4, "WGS3": 16, "WPT3": 8}, {"VW3": 1, "WGS3": 64, "WPT3": 1}),
        "gpu": ({"VW3": 4, "WGS3": 64, "WPT3": 8}, {"VW3": 8, "WGS3": 32, "WPT3": 32}),
    },
    "XgemvFast": {
        "cpu": ({"VW2": 4, "WGS2": 16, "WPT2": 4}, {"VW2": 1, "WGS2": 64, "WPT2": 1}),
        "gpu": ({"VW2": 1, "WGS2": 256, "WPT2": 1}, {"VW2": 4, "WGS2": 64, "WPT2": 4}),
    },
}
"""By CLBlast's kernel, and the kind of device."""
