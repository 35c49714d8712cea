"""`einsum("mk,kn->mn")` as a nest: its loops are written as Python text, which the Python front end reads.

def einsum(A: f32[M, K], B: f32[K, N], C: f32[M, N]):
    for m in range(M):
        for n in range(N):
            C[m, n] = 0.0
            for k in range(K):
                C[m, n] += A[m, k] * B[k, n]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from string import ascii_letters, ascii_uppercase

from codegen.integer import Affine
from microkernels.dtypes import DType, f32
from microkernels.errors import plain, shown
from poly.errors import SpecError
from poly.frontends.contraction_order import OrderedProduct, Price, contraction_order
from poly.frontends.python import parse_text
from poly.frontends.source import Source
from poly.ir.nest import Nest

MOST_OPERANDS = len(ascii_uppercase) - 1
"""Each operand and the output is named by a letter."""

ASSUMED = 256
"""The extent of an index without a size, when orders of products are compared."""


@dataclass(frozen=True)
class Subscripts:
    """The letters of each operand and of the output."""

    text: str
    operands: tuple[str, ...]
    output: str

    @property
    def letters(self) -> str:
        """Every letter once: those of the output, then those that are summed over, in order of appearance."""
        return "".join(dict.fromkeys(self.output + "".join(self.operands)))


def einsum(
    subscripts: str, *, dtype: DType = f32, reassociate: bool = True, price: Price | None = None, **sizes: int
) -> Nest:
    """The nest of an einsum in NumPy's notation; it assigns its output.

    The operands and the output are named in alphabetical order, the output last: `A`, `B` and `C` for two operands. An
    operand without letters is a scalar by value, an output without letters an array of rank 0. The size of the index
    `m` is `M`, or `Nm` if an array or another index is called `M`. Sizes are given by their letter, `m=512`; the others
    stay symbolic.

    With a `price`, operands are multiplied two at a time, in the order of the least time; without it, or if sums may
    not be reassociated, all in one nest of loops. Sizes that are not given count as equally long.

    Raises:
        SpecError: malformed subscripts, an unknown dtype, or a size for a letter that is not an index.
    """
    if not isinstance(subscripts, str):
        raise SpecError(f'the subscripts of an einsum are a text such as "mk,kn->mn", not {shown(subscripts)}.')
    if not isinstance(dtype, DType):
        raise SpecError(f"the dtype of an einsum is one of poly's, such as poly.f32, not {shown(dtype)}.")
    parsed = parse_subscripts(subscripts)
    arrays = ascii_uppercase[: len(parsed.operands) + 1]
    names = {letter: _size(letter, arrays + parsed.letters) for letter in parsed.letters}
    for letter in sizes:
        if letter not in names:
            known = ", ".join(names) or "none"
            problem = f"einsum({shown(subscripts)}) has no index {plain(letter)} to give a size to"
            raise SpecError(f"{problem}. Its indices: {known}.")
    text = _function(parsed, arrays, names, dtype, _products(parsed, sizes, None if reassociate is False else price))
    environment = {name: Affine.name(name) for name in names.values()} | {dtype.name: dtype, "range": range}
    nest = parse_text(Source(text, f'einsum("{subscripts}")', 1), environment, reassociate)
    return nest.with_sizes({names[letter]: value for letter, value in sizes.items()})


def _products(parsed: Subscripts, sizes: Mapping[str, int], price: Price | None) -> list[OrderedProduct]:
    """The products that compute an einsum."""
    if price is None:
        return [OrderedProduct(tuple(range(len(parsed.operands))), parsed.output)]
    extents = {letter: _extent(sizes.get(letter)) for letter in parsed.letters}
    return contraction_order(parsed.operands, parsed.output, extents, price)


def _extent(size: object) -> int:
    """What counts as an index's extent; whether it can be one is checked later."""
    return int(size) if isinstance(size, Integral) and int(size) > 0 else ASSUMED


def parse_subscripts(subscripts: str) -> Subscripts:
    """Parse NumPy's notation; without `->` the output has the letters that occur once, sorted.

    Raises:
        SpecError: an invalid character, too many operands, or an output with a repeated letter or one that no operand
            has.
    """
    inputs, arrow, output = subscripts.partition("->")
    _check_characters(subscripts, len(inputs) if arrow else len(subscripts))
    operands = tuple(inputs.replace(" ", "").split(","))
    if len(operands) > MOST_OPERANDS:
        raise SpecError(
            f"einsum: {len(operands)} operands, and {MOST_OPERANDS} are the most. Multiply some of them before."
        )
    counts = Counter("".join(operands))
    if not arrow:
        return Subscripts(subscripts, operands, "".join(sorted(letter for letter in counts if counts[letter] == 1)))
    for position, letter in enumerate(output, len(inputs) + 2):
        if letter == " ":
            continue
        if letter not in counts:
            why = f"the output's index `{letter}` is in no operand"
            raise _error(subscripts, position, why, "Take it out, or name it there.")
        if letter in subscripts[len(inputs) + 2 : position]:
            raise _error(subscripts, position, f"the output has the index `{letter}` twice", "Name it once.")
    return Subscripts(subscripts, operands, output.replace(" ", ""))


def _check_characters(subscripts: str, arrow: int) -> None:
    for position, character in enumerate(subscripts):
        allowed = ascii_letters + (", " if position < arrow else " ")
        if character not in allowed and position not in (arrow, arrow + 1):
            comma = ", a comma" if position < arrow else ""
            why = f"`{plain(character)}` is neither a letter{comma} nor the one arrow `->`"
            remedy = "Give each dimension its own letter." if character == "." else "Write it like `mk,kn->mn`."
            raise _error(subscripts, position, why, remedy)


def _error(subscripts: str, position: int, why: str, remedy: str) -> SpecError:
    start = max(0, position - 40)
    line = "".join(c if c.isprintable() else "?" for c in subscripts[start : position + 40])
    return SpecError(f"einsum: {why}\n    {line}\n    {' ' * (position - start)}^\n{remedy}")


def _size(letter: str, taken: str) -> str:
    return f"N{letter}" if letter.upper() in taken else letter.upper()


def _function(
    parsed: Subscripts, arrays: str, names: dict[str, str], dtype: DType, products: Sequence[OrderedProduct]
) -> str:
    """The text of the Python function: the loops of each product, with a local for each but the last."""
    values = list(zip(arrays, parsed.operands, strict=False))
    lines = [f"def {_name(parsed)}({_arguments(parsed, arrays, names, dtype)}):"]
    for number, product in enumerate(products, 1):
        last = number == len(products)
        result = arrays[-1] if last else f"T{number}"
        if not last:
            lines.append(f"    {result}: {dtype.name}{_shape(product.output, names)}")
        terms = [values[place] for place in product.values]
        lines.extend(_loops(result, product.output, terms, names, dtype, scalar=not (last or product.output)))
        values.append((result, product.output))
    return "\n".join(lines) + "\n"


def _loops(
    array: str, output: str, terms: Sequence[tuple[str, str]], names: dict[str, str], dtype: DType, *, scalar: bool
) -> Iterator[str]:
    """The loops that assign the product of some elements, summed over the indices that are not in the output."""
    product = " * ".join(_element(term, letters) if letters else term for term, letters in terms)
    result = array if scalar else _element(array, output)
    indent = "    "
    for letter in output:
        yield f"{indent}for {letter} in range({names[letter]}):"
        indent += "    "
    summed = [letter for letter in dict.fromkeys("".join(letters for _, letters in terms)) if letter not in output]
    if not summed:
        yield f"{indent}{result} = {product}"
        return
    yield f"{indent}{result} = {'0.0' if dtype.is_float else '0'}"
    for letter in summed:
        yield f"{indent}for {letter} in range({names[letter]}):"
        indent += "    "
    yield f"{indent}{result} += {product}"


def _shape(letters: str, names: dict[str, str]) -> str:
    return f"[{', '.join(names[letter] for letter in letters)}]" if letters else ""


def _element(array: str, letters: str) -> str:
    return f"{array}[{', '.join(letters) or '()'}]"


def _name(parsed: Subscripts) -> str:
    return "_".join(filter(None, ("einsum", *parsed.operands, "to", parsed.output)))


def _arguments(parsed: Subscripts, arrays: str, names: dict[str, str], dtype: DType) -> str:
    texts = []
    for array, letters in zip(arrays, (*parsed.operands, parsed.output), strict=True):
        shape = f"[{', '.join(names[letter] for letter in letters) or '()'}]"
        is_value = not letters and array != arrays[-1]
        texts.append(f"{array}: {dtype.name}{'' if is_value else shape}")
    return ", ".join(texts)
