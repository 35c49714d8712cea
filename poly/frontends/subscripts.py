"""The subscripts of an einsum in NumPy's notation, and what the shapes of its operands make of them.

"...ij,...jk->...ik"   for operands with 3 and 2 dimensions is   "aij,jk->aik"
"ij,ij->ij"            for operands of 1 by 5 and 4 by 5 is      "1j,ij->ij": the one row stands for each of the four
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from string import ascii_letters, ascii_uppercase

from microkernels.errors import plain
from poly.errors import SpecError

MOST_OPERANDS = len(ascii_uppercase) - 1
"""Each operand and the output is named by a letter."""

ELLIPSIS = "..."
ONE = "1"
"""Stands in an operand's subscripts for a dimension of one element, which is broadcast: its index is always 0."""

Shape = Sequence[int | None]
"""The extents of an operand; None is one that is not known."""


@dataclass(frozen=True)
class Subscripts:
    """The letters of each operand and of the output; `ONE` is no letter. `extents` are those that shapes tell."""

    text: str
    operands: tuple[str, ...]
    output: str
    extents: tuple[tuple[str, int], ...] = ()

    @property
    def letters(self) -> str:
        """Every letter once: those of the output, then those that are summed over, in order of appearance."""
        return "".join(dict.fromkeys((self.output + "".join(self.operands)).replace(ONE, "")))


@dataclass(frozen=True)
class Term:
    """An operand's subscripts, or the output's, as written; `at` are the places of their characters in the text."""

    written: str
    at: tuple[int, ...]
    end: int

    @property
    def letters(self) -> str:
        return self.written.replace(ELLIPSIS, "")

    @property
    def has_ellipsis(self) -> bool:
        return ELLIPSIS in self.written

    def place(self, character: int = 0) -> int:
        """The place in the text of one of the characters, or of the term's end if it has none."""
        return self.at[character] if character < len(self.at) else self.end

    def letters_with(self, broadcast: str) -> str:
        """The letters, with these in the ellipsis's place."""
        return self.written.replace(ELLIPSIS, broadcast)


@dataclass(frozen=True)
class WrittenTerms:
    """The terms of a text; `output` is None if it has no arrow."""

    text: str
    operands: tuple[Term, ...]
    output: Term | None = field(default=None)

    def error(self, term: Term, why: str, remedy: str, character: int = 0) -> SpecError:
        return error(self.text, term.place(character), why, remedy)


def parse_subscripts(subscripts: str, shapes: Sequence[Shape] | None = None) -> Subscripts:
    """Parse NumPy's notation; without `->` the output has the broadcast dimensions, then the letters that occur once.

    Raises:
        SpecError: an invalid character, too many operands, an output with a repeated letter or one that no operand
            has, an ellipsis without shapes, or shapes that do not fit.
    """
    written = _written(subscripts)
    if shapes is not None and len(shapes) != len(written.operands):
        count, given = len(written.operands), len(shapes)
        raise SpecError(f"einsum: {plain(subscripts)} has {_count(count)}, and {given} given.")
    broadcast = _broadcast(written, shapes)
    operands = tuple(
        term.letters_with(broadcast[len(broadcast) - rank :])
        for term, rank in zip(written.operands, _ranks(written, shapes), strict=True)
    )
    parsed = Subscripts(subscripts, operands, _output(written, broadcast))
    return parsed if shapes is None else _fitted(parsed, written, broadcast, shapes)


def error(subscripts: str, position: int, why: str, remedy: str) -> SpecError:
    """The error at a place of the text, which it shows."""
    start = max(0, position - 40)
    line = "".join(c if c.isprintable() else "?" for c in subscripts[start : position + 40])
    return SpecError(f"einsum: {why}\n    {line}\n    {' ' * (position - start)}^\n{remedy}")


def _written(subscripts: str) -> WrittenTerms:
    inputs, arrow, output = subscripts.partition("->")
    _check_characters(subscripts, len(inputs) if arrow else len(subscripts))
    terms = tuple(_terms(inputs))
    if len(terms) > MOST_OPERANDS:
        raise SpecError(
            f"einsum: {len(terms)} operands, and {MOST_OPERANDS} are the most. Multiply some of them before."
        )
    return WrittenTerms(subscripts, terms, _term(output, len(inputs) + 2) if arrow else None)


def _terms(inputs: str) -> Iterator[Term]:
    start = 0
    for part in inputs.split(","):
        yield _term(part, start)
        start += len(part) + 1


def _term(part: str, start: int) -> Term:
    characters = [(c, place) for place, c in enumerate(part, start) if c != " "]
    return Term("".join(c for c, _ in characters), tuple(place for _, place in characters), start + len(part))


def _check_characters(subscripts: str, arrow: int) -> None:
    for position, character in enumerate(subscripts):
        if character == "." or position in (arrow, arrow + 1):
            continue
        if character not in ascii_letters + (", " if position < arrow else " "):
            comma = ", a comma" if position < arrow else ""
            why = f"`{plain(character)}` is neither a letter{comma}, an ellipsis `...` nor the one arrow `->`"
            raise error(subscripts, position, why, "Write it like `mk,kn->mn`.")
    _check_ellipses(subscripts)


def _check_ellipses(subscripts: str) -> None:
    """Each dot is one of three, and no operand has two ellipses."""
    position, seen = 0, False
    while position < len(subscripts):
        if subscripts.startswith(ELLIPSIS, position) and not seen:
            position, seen = position + len(ELLIPSIS), True
            continue
        if subscripts[position] == ".":
            why = "a second ellipsis in one operand" if subscripts.startswith(ELLIPSIS, position) else "a single dot"
            remedy = "One ellipsis `...` stands for all dimensions that have no letter."
            raise error(subscripts, position, why, remedy)
        seen = seen and subscripts[position] not in ",>"
        position += 1


def _ranks(written: WrittenTerms, shapes: Sequence[Shape] | None) -> list[int]:
    """How many dimensions each operand's ellipsis stands for."""
    if shapes is None:
        return [0] * len(written.operands)
    ranks = []
    for number, (term, shape) in enumerate(zip(written.operands, shapes, strict=True)):
        rank = len(shape) - len(term.letters)
        if rank < 0 or (rank and not term.has_ellipsis):
            named = f"operand {number} has {len(term.letters)} {'index' if len(term.letters) == 1 else 'indices'}"
            why = f"{named}, and its shape {_text(shape)} has {len(shape)}"
            remedy = (
                "Give each dimension a letter, or write `...` for those without one."
                if rank > 0
                else ("Take out the indices that it does not have.")
            )
            raise written.error(term, why, remedy)
        ranks.append(rank)
    return ranks


def _broadcast(written: WrittenTerms, shapes: Sequence[Shape] | None) -> str:
    """Letters of their own for the dimensions that ellipses stand for."""
    dotted = next((term for term in written.operands if term.has_ellipsis), None)
    if dotted is None:
        return ""
    if shapes is None:
        remedy = "Give the arrays, einsum(subscripts, A, B), or their shapes, shapes=[(8, 4, 5), (5, 6)]."
        why = "how many dimensions `...` stands for is only known with the operands"
        raise written.error(dotted, why, remedy, dotted.written.index(ELLIPSIS))
    most = max(_ranks(written, shapes))
    free = [letter for letter in ascii_letters if letter not in written.text]
    if most > len(free):
        raise written.error(dotted, f"`...` stands for {most} dimensions, more than are possible", "Flatten some.")
    return "".join(free[:most])


def _output(written: WrittenTerms, broadcast: str) -> str:
    counts = Counter("".join(term.letters for term in written.operands))
    term = written.output
    if term is None:
        return broadcast + "".join(sorted(letter for letter in counts if counts[letter] == 1))
    for character, letter in enumerate(term.written):
        if letter == ".":
            continue
        if letter not in counts:
            why = f"the output's index `{letter}` is in no operand"
            raise written.error(term, why, "Take it out, or name it there.", character)
        if letter in term.written[:character]:
            raise written.error(term, f"the output has the index `{letter}` twice", "Name it once.", character)
    if broadcast and not term.has_ellipsis:
        why = "the output has no `...`, and the dimensions that it stands for in the operands cannot be summed over"
        raise written.error(term, why, "Write `...` in the output, or give these dimensions letters.")
    return term.letters_with(broadcast)


def _fitted(parsed: Subscripts, written: WrittenTerms, broadcast: str, shapes: Sequence[Shape]) -> Subscripts:
    """The extents that shapes tell, and `ONE` where a dimension of one element stands for several."""
    pairs = [tuple(zip(letters, shape, strict=True)) for letters, shape in zip(parsed.operands, shapes, strict=True)]
    dimensions = [(number, letter, extent) for number, own in enumerate(pairs) for letter, extent in own]
    several: dict[str, int | None] = {}
    told: dict[tuple[str, int | None], int] = {}
    for number, letter, extent in dimensions:
        own = {e for name, e in pairs[number] if name == letter and e is not None}
        if len(own) > 1:
            raise _unlike(written, broadcast, letter, *((number, e) for e in sorted(own)[:2]))
        if extent == 1:
            continue
        known = several.get(letter)
        if known is not None and extent is not None and known != extent:
            raise _unlike(written, broadcast, letter, (told[letter, known], known), (number, extent))
        several[letter] = known if extent is None else extent
        told.setdefault((letter, extent), number)
    operands = tuple("".join(ONE if e == 1 and letter in several else letter for letter, e in own) for own in pairs)
    extents = ((letter, several.get(letter, 1)) for letter in parsed.letters)
    return replace(parsed, operands=operands, extents=tuple((x, e) for x, e in extents if e is not None))


def _unlike(
    written: WrittenTerms, broadcast: str, letter: str, one: tuple[int, int], other: tuple[int, int]
) -> SpecError:
    """The error for an index with two extents, each given with its operand."""
    term, dotted = written.operands[other[0]], letter in broadcast
    name = f"dimension {broadcast.index(letter) - len(broadcast)} of `...`" if dotted else f"the index `{letter}`"
    first = f"{one[1]} in operand {one[0]}," if one[0] != other[0] else f"{one[1]}"
    why = f"{name} is {first} and {other[1]} in operand {other[0]}"
    remedy = "Only an extent of 1 is broadcast, and not beside another one in the same operand."
    return written.error(term, why, remedy, term.written.find(ELLIPSIS if dotted else letter))


def _text(shape: Shape) -> str:
    return f"({', '.join('?' if e is None else str(e) for e in shape)}{',' * (len(shape) == 1)})"


def _count(operands: int) -> str:
    return f"{operands} operand{'s' * (operands != 1)}"
