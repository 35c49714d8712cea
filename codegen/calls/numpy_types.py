"""NumPy's types of the scalar types; bf16 is that of the package ml_dtypes."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from codegen.errors import ArgumentError
from microkernels.dtypes import DType, bf16


@cache
def numpy_type(dtype: DType) -> np.dtype[Any]:
    """The type of the elements of a NumPy array of a scalar type.

    Raises:
        ArgumentError: bf16 without the package ml_dtypes.
    """
    return _bfloat16() if dtype == bf16 else np.dtype(dtype.numpy_name)


def _bfloat16() -> np.dtype[Any]:
    try:
        from ml_dtypes import bfloat16
    except ImportError as error:
        raise ArgumentError(
            "NumPy has no bf16 of its own: its arrays need the package ml_dtypes. pip install ml_dtypes"
        ) from error
    found: np.dtype[Any] = np.dtype(bfloat16)
    return found
