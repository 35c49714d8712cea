"""`einsum("mk,kn->mn")` as a nest: its loops are written as Python text, which the Python front end reads.

def einsum(A: f32[M, K], B: f32[K, N], C: f32[M, N]):
    for m in range(M):
        for n in range(N):
            C[m, n] = 0.0
            for k in range(K):
                C[m, n] += A[m, k] * B[k, n]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from numbers import Integral
from string import ascii_uppercase

from codegen.ir.integer import Affine
from microkernels.dtypes import DType, f32
from microkernels.errors import plain, shown
from poly.errors import SpecError
from poly.frontends.contraction_order import MOST_SEARCHED, Optimize, OrderedProduct, Price, contraction_order
from poly.frontends.python import parse_text
from poly.frontends.source import Source
from poly.frontends.subscripts import ONE, Subscripts, parse_subscripts
from poly.ir.nest import Nest

ASSUMED = 256
"""The extent of an index without a size, when orders of products are compared."""


def einsum(
    subscripts: str | Subscripts,
    *,
    dtype: DType = f32,
    reassociate: bool = True,
    optimize: object = True,
    price: Price | None = None,
    **sizes: int,
) -> Nest:
    """The nest of an einsum in NumPy's notation; it assigns its output.

    The operands and the output are named in alphabetical order, the output last: `A`, `B` and `C` for two operands. An
    operand without letters is a scalar by value, an output without letters an array of rank 0. The size of the index
    `m` is `M`, or `Nm` if an array or another index is called `M`. Sizes are given by their letter, `m=512`; the others
    stay symbolic.

    With a `price`, operands are multiplied two at a time, in the order that `optimize` asks for; without it, or if sums
    may not be reassociated, all in one nest of loops. Sizes that are not given count as equally long.

    Raises:
        SpecError: malformed subscripts, an unknown dtype, a size for a letter that is not an index, or no such order.
    """
    if not isinstance(subscripts, str | Subscripts):
        raise SpecError(f'the subscripts of an einsum are a text such as "mk,kn->mn", not {shown(subscripts)}.')
    if not isinstance(dtype, DType):
        raise SpecError(f"the dtype of an einsum is one of poly's, such as poly.f32, not {shown(dtype)}.")
    parsed = parse_subscripts(subscripts) if isinstance(subscripts, str) else subscripts
    order = checked_optimize(optimize, len(parsed.operands), reassociate)
    arrays = ascii_uppercase[: len(parsed.operands) + 1]
    names = size_names(parsed)
    for letter in sizes:
        if letter not in names:
            known = ", ".join(names) or "none"
            problem = f"einsum({shown(parsed.text)}) has no index {plain(letter)} to give a size to"
            raise SpecError(f"{problem}. Its indices: {known}.")
    sizes = _merged(parsed, sizes)
    products = _products(parsed, sizes, order, None if reassociate is False else price)
    text = _function(parsed, arrays, names, dtype, products)
    environment = {name: Affine.name(name) for name in names.values()} | {dtype.name: dtype, "range": range}
    nest = parse_text(Source(text, f'einsum("{parsed.text}")', 1), environment, reassociate)
    return nest.with_sizes({names[letter]: value for letter, value in sizes.items()})


def size_names(parsed: Subscripts) -> dict[str, str]:
    """The size of each index."""
    taken = ascii_uppercase[: len(parsed.operands) + 1] + parsed.letters
    return {letter: _size(letter, taken) for letter in parsed.letters}


def checked_optimize(optimize: object, count: int, reassociate: object) -> Optimize:
    """How the order of products is found, checked.

    Raises:
        SpecError: neither True, False, "greedy", "optimal" nor a path that multiplies all operands, or an order where
            sums may not be reassociated.
    """
    if isinstance(optimize, bool):
        return optimize
    if reassociate is False:
        remedy = "which reassociate=False forbids. Leave one out."
        raise SpecError(f"optimize={shown(optimize)} reassociates sums, {remedy}")
    if isinstance(optimize, str) and optimize == "greedy":
        return "greedy"
    if isinstance(optimize, str) and optimize == "optimal":
        if count > MOST_SEARCHED:
            raise SpecError(
                f"the orders of {count} operands are too many to search all of them: {MOST_SEARCHED} operands are the "
                "most. Use optimize=True."
            )
        return "optimal"
    return _checked_path(optimize, count)


def _checked_path(path: object, count: int) -> tuple[tuple[int, ...], ...]:
    """A path as `numpy.einsum_path` gives it, or without its first word."""
    steps = list(path) if isinstance(path, list | tuple) else []
    if steps and isinstance(steps[0], str) and steps[0] == "einsum_path":
        del steps[0]
    if not steps or not all(isinstance(step, list | tuple) and step for step in steps):
        forms = "True, False, 'greedy', 'optimal' or a path such as [(0, 1), (0, 1)]"
        raise SpecError(f"optimize is {forms}, not {shown(path)}.")
    left, checked = count, []
    for step in steps:
        places = [int(place) for place in step if isinstance(place, Integral) and 0 <= int(place) < left]
        if len(set(places)) != len(step):
            known = f"the places 0 to {left - 1}" if left > 1 else "only the place 0"
            raise SpecError(f"optimize: {shown(step)} is no product: each operand is named once, and {known} are left.")
        checked.append(tuple(places))
        left -= len(places) - 1
    if left != 1:
        raise SpecError(f"optimize: the path leaves {left} operands. Its last product must take all that are left.")
    return tuple(checked)


def _merged(parsed: Subscripts, sizes: Mapping[str, int]) -> dict[str, int]:
    """The sizes that are given, and those that shapes tell. Raises SpecError if they differ."""
    told = dict(parsed.extents)
    for letter, value in sizes.items():
        if letter in told and told[letter] != value:
            given = f"{letter} = {shown(value)} is given"
            raise SpecError(f"einsum: {given}, and the shapes tell {letter} = {told[letter]}. Leave it out.")
    return {**told, **sizes}


def _products(
    parsed: Subscripts, sizes: Mapping[str, int], order: Optimize, price: Price | None
) -> list[OrderedProduct]:
    """The products that compute an einsum."""
    if price is None:
        return [OrderedProduct(tuple(range(len(parsed.operands))), parsed.output)]
    extents = {letter: _extent(sizes.get(letter)) for letter in parsed.letters}
    operands = [letters.replace(ONE, "") for letters in parsed.operands]
    return contraction_order(operands, parsed.output, extents, price, order)


def _extent(size: object) -> int:
    """What counts as an index's extent; whether it can be one is checked later."""
    return int(size) if isinstance(size, Integral) and int(size) > 0 else ASSUMED


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
    summed = [x for x in dict.fromkeys("".join(letters for _, letters in terms)) if x not in output + ONE]
    if not summed:
        yield f"{indent}{result} = {product}"
        return
    yield f"{indent}{result} = {'0.0' if dtype.is_float else '0'}"
    for letter in summed:
        yield f"{indent}for {letter} in range({names[letter]}):"
        indent += "    "
    yield f"{indent}{result} += {product}"


def _shape(letters: str, names: dict[str, str]) -> str:
    return f"[{_extents(letters, names)}]" if letters else ""


def _extents(letters: str, names: dict[str, str]) -> str:
    return ", ".join(ONE if letter == ONE else names[letter] for letter in letters)


def _element(array: str, letters: str) -> str:
    return f"{array}[{', '.join(letters).replace(ONE, '0') or '()'}]"


def _name(parsed: Subscripts) -> str:
    return "_".join(filter(None, ("einsum", *parsed.operands, "to", parsed.output)))


def _arguments(parsed: Subscripts, arrays: str, names: dict[str, str], dtype: DType) -> str:
    texts = []
    for array, letters in zip(arrays, (*parsed.operands, parsed.output), strict=True):
        shape = f"[{_extents(letters, names) or '()'}]"
        is_value = not letters and array != arrays[-1]
        texts.append(f"{array}: {dtype.name}{'' if is_value else shape}")
    return ", ".join(texts)
