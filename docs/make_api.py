"""Write docs/api.md, the reference of poly's public names, from their signatures and docstrings.

    python docs/make_api.py

A public name is one in `poly.__all__`. The classes that public functions return are described after them.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import poly

OURS = ("poly", "codegen", "microkernels")
SECTION = re.compile(r"(Args|Returns|Raises|Yields)( \(.*\))?:")
ITEM = re.compile(r"    (?P<name>[\w, *`]+): (?P<text>.*)")
HEAD = """# API reference

This page is made from the docstrings by `python docs/make_api.py`. [`schedules.md`](schedules.md) shows each step of a
schedule with pictures, [`errors.md`](errors.md) each error with an example.
"""


class Bare:
    """An annotation that is printed without quotes."""

    def __init__(self, annotation: Any) -> None:
        self.text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)

    def __repr__(self) -> str:
        return self.text


def signature(name: str, function: Callable[..., Any]) -> str:
    """`name(…)` with types and defaults, one parameter a line where it is long; without `self`."""
    found = inspect.signature(function)
    bare = [
        p if p.annotation is p.empty else p.replace(annotation=Bare(p.annotation))
        for p in found.parameters.values()
        if p.name != "self"
    ]
    back = found.return_annotation
    made = found.replace(parameters=bare, return_annotation=back if back is found.empty else Bare(back))
    text = f"{name}{made}"
    if len(text) <= 120:
        return text
    lines = str(made.replace(return_annotation=found.empty))[1:-1]
    ends = "" if back is found.empty else f" -> {Bare(back)!r}"
    parts = re.split(r", (?=\*|/|\w+: |\w+=)", lines)
    return f"{name}(\n" + "".join(f"    {part},\n" for part in parts) + f"){ends}"


def prose(text: str) -> Iterator[str]:
    """A docstring as Markdown: its sections as lists; examples stay as they are, indented."""
    section = False
    for line in text.splitlines():
        item = ITEM.fullmatch(line)
        if SECTION.fullmatch(line):
            section = True
            yield f"*{line[:-1]}:*\n"
        elif section and item:
            yield f"- `{item['name']}`: {item['text']}"
        elif section and line.startswith("    "):
            yield f"  {line.strip()}" if line.startswith("     ") else f"- {line.strip()}"
        else:
            section = section and not line.strip()
            yield line
    yield ""


def described(thing: Any) -> str:
    return "\n".join(prose(inspect.getdoc(thing) or ""))


def parent(kind: type) -> type | None:
    """The base of a class that is a public name itself, so that what it has is described there."""
    return next((base for base in kind.__mro__[1:] if base in vars(poly).values()), None)


def own(kind: type) -> list[type]:
    """The class and its bases of ours, without those of its parent."""
    above = parent(kind)
    inherited = above.__mro__ if above else ()
    return [base for base in kind.__mro__ if base.__module__.split(".")[0] in OURS and base not in inherited]


def fields(kind: type) -> Iterator[str]:
    """The public fields of a class, each with the docstring below it."""
    for base in reversed(own(kind)):
        (body,) = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        assert isinstance(body, ast.ClassDef)
        for node, after in zip(body.body, [*body.body[1:], None], strict=True):
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                if node.target.id.startswith("_") or "ClassVar" in ast.unparse(node.annotation):
                    continue
                about = after.value if isinstance(after, ast.Expr) else None
                told = about.value if isinstance(about, ast.Constant) and isinstance(about.value, str) else ""
                yield f"- `{node.target.id}: {ast.unparse(node.annotation)}` {' '.join(told.split())}".rstrip()


def members(kind: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties of a class."""
    seen = set()
    for base in own(kind):
        for name, value in vars(base).items():
            plain = value.__func__ if isinstance(value, staticmethod | classmethod) else value
            public = not name.startswith("_") or (name == "__call__" and value.__doc__)
            if public and name not in seen and (inspect.isfunction(plain) or isinstance(plain, property)):
                seen.add(name)
                yield name, plain


def of_class(name: str, kind: type) -> str:
    """A class: its docstring, fields, properties and methods."""
    parts = [f"## {name}\n", described(kind)]
    if issubclass(kind, BaseException):
        return "\n".join(parts)
    above = parent(kind)
    if above:
        parts.append(f"It also has the fields and methods of [`{above.__name__}`](#{above.__name__.lower()}).\n")
    listed = list(fields(kind))
    if listed:
        parts += ["*Fields:*\n", "\n".join(listed), ""]
    for member, value in members(kind):
        if isinstance(value, property):
            parts += [f"### {name}.{member}\n", described(value)]
        else:
            shown = name.lower() if member == "__call__" else f"{name}.{member}"
            parts += [f"### {name}.{member}\n", f"```python\n{signature(shown, value)}\n```\n", described(value)]
    return "\n".join(parts)


def of_function(name: str, function: Callable[..., Any]) -> str:
    return f"## {name}\n\n```python\n{signature(f'poly.{name}', function)}\n```\n\n{described(function)}"


def meant(function: Callable[..., Any], name: str) -> Any:
    """What a name in an annotation stands for, also where it is imported under TYPE_CHECKING alone."""
    if name in function.__globals__:
        return function.__globals__[name]
    for node in ast.walk(ast.parse(Path(inspect.getsourcefile(function) or "").read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and any(alias.name == name for alias in node.names):
            return getattr(import_module(node.module), name)
    return None


def returned(functions: list[Callable[..., Any]]) -> list[type]:
    """The classes of ours that functions return and that are not public names themselves."""
    found: dict[type, None] = {}
    for function in map(inspect.unwrap, functions):
        for name in str(function.__annotations__.get("return")).split(" | "):
            back = meant(function, name)
            if isinstance(back, type) and back.__module__.split(".")[0] in OURS and name not in poly.__all__:
                found[back] = None
    return list(found)


def text() -> str:
    """The page."""
    public = {name: getattr(poly, name) for name in poly.__all__ if not name.startswith("_")}
    functions = {name: value for name, value in public.items() if inspect.isroutine(inspect.unwrap(value))}
    classes = {name: value for name, value in public.items() if isinstance(value, type)}
    errors = {name: kind for name, kind in classes.items() if issubclass(kind, BaseException)}
    kinds = {name: kind for name, kind in classes.items() if name not in errors}
    kinds |= {kind.__name__: kind for kind in returned(list(functions.values()))}
    types = [name for name, value in public.items() if isinstance(value, poly.DType)]
    assert len(functions) + len(classes) + len(types) == len(public)
    return "\n".join(
        [
            HEAD,
            "# Functions\n",
            *(of_function(name, function) for name, function in functions.items()),
            "# Scalar types\n",
            ", ".join(f"`poly.{name}`" for name in types) + ", each a [`DType`](#dtype).\n",
            "# Classes\n",
            *(of_class(name, kind) for name, kind in kinds.items()),
            "# Errors and warnings\n",
            *(of_class(name, kind) for name, kind in errors.items()),
        ]
    )


if __name__ == "__main__":
    Path(__file__).with_name("api.md").write_text(text())
