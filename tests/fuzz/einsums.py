"""Random einsums: the loops that an einsum stands for, according to the documentation of `poly.einsum`."""

from __future__ import annotations

from random import Random

from fuzz.contractions import KINDS, sizes_of
from fuzz.nests import Drawn
from fuzz.syntax import Arg, Assign, Binary, Expr, For, Lin, Number, Program, Read, Stmt

LETTERS = "abcijkmnpq"


def einsum(rng: Random) -> Drawn:
    """One to three operands, letters in any order, some of them twice, and an output of some of them."""
    letters = rng.sample(LETTERS, rng.choices((1, 2, 3, 4, 5), (1, 3, 6, 4, 1))[0])
    operands = ["".join(_some(rng, letters)) for _ in range(rng.choices((1, 2, 3), (3, 12, 2))[0])]
    used = [letter for letter in letters if any(letter in operand for operand in operands)]
    free = [letter for letter in used if sum(letter in operand for operand in operands) == 1]
    output = "".join(_some(rng, rng.choice((used, free)), 0.8)) if used else ""
    dtype = rng.choices(*KINDS)[0]
    program = program_of(",".join(operands) + "->" + output, dtype, rng.random() > 0.1)
    settings = [sizes_of(rng, list(program.sizes)) for _ in range(rng.choice((1, 2, 2)))]
    return Drawn(program, tuple(settings))


def _some(rng: Random, letters: list[str], share: float = 0.65) -> list[str]:
    """Some of the letters in any order, sometimes one of them twice, which means a diagonal."""
    found = [letter for letter in rng.sample(letters, len(letters)) if rng.random() < share]
    twice = [rng.choice(found)] if found and share < 0.8 and rng.random() < 0.04 else []
    return (found + twice)[:5]


def program_of(subscripts: str, dtype: str, reassociate: bool = True) -> Program:
    """The loops of an einsum, those of the output outside, and the names that poly gives."""
    inputs, _, output = subscripts.partition("->")
    operands = inputs.split(",")
    letters = list(dict.fromkeys(output + "".join(operands)))
    arrays = "ABCDEFGH"[: len(operands) + 1]
    taken = arrays + "".join(letters)
    size = {letter: f"N{letter}" if letter.upper() in taken else letter.upper() for letter in letters}

    def argument(name: str, indices: str) -> Arg:
        shape = tuple(Lin.name(size[letter]) for letter in indices)
        return Arg(name, dtype, shape if indices or name == arrays[-1] else None)

    def element(name: str, indices: str) -> Read:
        return Read(name, tuple(map(Lin.name, indices)), not indices and name != arrays[-1])

    target = element(arrays[-1], output)
    value: Expr = element(arrays[0], operands[0])
    for name, indices in zip(arrays[1:], operands[1:], strict=False):
        value = Binary("*", value, element(name, indices))
    summed = letters[len(output) :]
    body: tuple[Stmt, ...] = (Assign(target, "=", value),)
    if summed:
        zero = Number(0.0 if dtype[0] == "f" else 0)
        body = (Assign(target, "=", zero), *_loops(summed, size, (Assign(target, "+=", value),)))
    args = tuple(argument(name, indices) for name, indices in zip(arrays, (*operands, output), strict=True))
    name = "_".join(filter(None, ("einsum", *operands, "to", output)))
    sizes = dict.fromkeys(size[letter] for letter in "".join(operands) + output)
    body = _loops(list(output), size, body)
    return Program(name, args, body, tuple(sizes), (), reassociate, einsum=subscripts)


def _loops(letters: list[str], size: dict[str, str], body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    for letter in reversed(letters):
        body = (For(letter, (Lin(),), (Lin.name(size[letter]),), 1, body),)
    return body
