"""The scalar types as mypy sees them: a name that can be anything may have anything in brackets behind it.

Nothing imports this file when a program runs; `poly/scalar_types.py` has the types.
"""

from typing import Any

bf16: Any
c64: Any
c128: Any
f16: Any
f32: Any
f64: Any
u8: Any
u16: Any
i8: Any
i16: Any
i32: Any
i64: Any
