"""C expressions as Python expressions with the meaning that they have in C."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from pycparser import c_ast

from poly.frontends.c import declarations
from poly.frontends.c.arithmetic import BITS, BITS_OF, Arithmetic, integer_literal
from poly.frontends.c.declarations import (
    ArrayName,
    CounterName,
    ElementName,
    Known,
    ScalarName,
    SizeName,
    Unknown,
    Unusable,
)
from poly.frontends.c.facts import implied
from poly.frontends.c.place import marked, shown
from poly.frontends.c.tree import below
from poly.frontends.c.typed import (
    ARITHMETIC,
    FLOATS,
    IMAGINARY,
    INDICES,
    INTEGERS,
    NARROW,
    OF_COMPLEX,
    PARTS,
    UNIT,
    UNSIGNED,
    Value,
    call,
    common,
    converted,
    extreme,
    in_single,
    literal,
    numeral,
    of_complex,
    operation,
)
from poly.frontends.effects import REMEDY
from poly.frontends.polynomials import Polynomial, polynomial

COMPARISONS: Mapping[str, type[ast.cmpop]] = {
    "<": ast.Lt, "<=": ast.LtE, ">": ast.Gt, ">=": ast.GtE, "==": ast.Eq, "!=": ast.NotEq,
}  # fmt: skip
FOLDED: Mapping[str, Callable[[float, float], float]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}
FUNCTIONS = (
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "sinh", "cosh", "tanh", "erf", "sin", "cos", "tan",
    "atan", "floor", "ceil", "pow", "atan2", "fabs", "fmin", "fmax",
)  # fmt: skip
"""The functions of math.h that poly knows; each may end in `f`."""
OF_TWO = ("pow", "atan2", "fmin", "fmax")
"""Those of two arguments."""
ABSOLUTE = {"abs": "i32", "labs": "i64", "llabs": "i64"}
"""The functions of stdlib.h that poly knows, and the type to which each converts what it gets."""
BUILT_IN = "__builtin_"
"""What the names begin with that compilers have behind macros of math.h."""
ODD = {"inf": math.inf, "huge_val": math.inf, "nan": math.nan}
"""The values of the built-in functions behind INFINITY, HUGE_VAL and NAN; each may end in `f`."""
CLASSES = ("isnan", "isinf", "isfinite")
SUM = c_ast.ID | c_ast.Constant | c_ast.BinaryOp | c_ast.UnaryOp | c_ast.Cast
CAST = c_ast.Typename | c_ast.TypeDecl | c_ast.IdentifierType
"""The nodes in the sides of comparisons of which something is known where they hold, and those in casts."""
KNOWN = f"The functions are {', '.join(FUNCTIONS)}, these with an f at the end for float, abs, {', '.join(CLASSES)}."


class Values(Arithmetic):
    """Translates the expressions of one function, given the meanings of names at the present place."""

    def value(self, node: c_ast.Node) -> Value:
        """An expression.

        Raises:
            SpecError: poly's nests have no such expression.
        """
        found = self._value(node)
        marked(found.node, node, self.source)
        return found

    def _value(self, node: c_ast.Node) -> Value:
        match node:
            case c_ast.Constant():
                return self._constant(node)
            case c_ast.ID(name=name):
                return self._name(node, name)
            case c_ast.ArrayRef():
                return self.element(node)
            case c_ast.UnaryOp(op="+", expr=operand):
                return self.value(operand)
            case c_ast.UnaryOp(op="-", expr=operand):
                return self._negative(node, self.value(operand))
            case c_ast.UnaryOp(op="*", expr=operand):
                return self.element(c_ast.ArrayRef(*_pointed(operand), coord=node.coord))
            case c_ast.BinaryOp(op=op, left=left, right=right) if op in ARITHMETIC or op == "%":
                return self.binary(node, op, self.value(left), self.value(right))
            case c_ast.BinaryOp(op=op) if op in COMPARISONS or op in ("&&", "||"):
                return self._flag(node)
            case c_ast.UnaryOp(op="!"):
                return self._flag(node)
            case c_ast.TernaryOp(cond=cond, iftrue=then, iffalse=other):
                test, *values = self.test(cond), self._where(cond, True, then), self._where(cond, False, other)
                return self._choice(node, test, *values)
            case c_ast.Cast(to_type=wanted, expr=operand):
                return self._cast(node, wanted, self.value(operand))
            case c_ast.FuncCall():
                return self._flag(node) if _class(node) else self._call(node)
            case c_ast.Assignment() | c_ast.UnaryOp(op="p++" | "p--" | "++" | "--") | c_ast.ExprList():
                why = f"`{shown(node)}` has a side effect inside an expression"
                raise self.refuse(node, why, "Write it as a statement of its own.")
            case c_ast.BinaryOp(op="&" | "|" | "^" | "<<" | ">>" as op, left=left, right=right):
                return self.bits(node, op, self.value(left), self.value(right))
            case c_ast.UnaryOp(op="~"):
                raise self.refuse(node, f"`{shown(node)}` is an operation on bits, which poly has not", BITS)
        raise self.refuse(
            node, f"`{shown(node)}` is no value that poly knows", "Use numbers, elements, scalars, + - * / and ?:."
        )

    def _flag(self, node: c_ast.Node) -> Value:
        """A condition as 1 or 0; glibc's isinf is -1 for the negative infinity."""
        made: ast.expr = ast.IfExp(self.test(node), numeral(1), numeral(0))
        if isinstance(node, c_ast.FuncCall) and node.name.name.endswith("_sign"):
            below_0 = c_ast.BinaryOp("<", node.args.exprs[0], c_ast.Constant("int", "0"), node.coord)
            made = ast.IfExp(ast.BoolOp(ast.And(), [self.test(node), self.test(below_0)]), numeral(-1), made)
        return Value(made, "int", weak=True)

    def _constant(self, node: c_ast.Constant) -> Value:
        text = node.value
        match node.type:
            case "double":
                number: float = float.fromhex(text) if text[:2].lower() == "0x" else float(text)
                return literal(number, "f64")
            case "float":
                return literal(float(np.float32(text.rstrip("fF"))), "f32")
            case kind if "int" in kind:
                return integer_literal(text)
            case "char" if len(text) == 3:
                return literal(ord(text[1]), "int")
        raise self.refuse(node, f"`{text}` is no number that poly knows", "Use int, float and double.")

    def _name(self, node: c_ast.ID, name: str) -> Value:
        match self.names.get(name):
            case None if name == UNIT:
                return IMAGINARY
            case CounterName(kind=kind) | SizeName(kind=kind):
                return Value(ast.Name(name, ast.Load()), kind, weak=True)
            case ScalarName(dtype):
                return Value(ast.Name(name, ast.Load()), dtype)
            case ElementName(dtype):
                return Value(ast.Subscript(ast.Name(name, ast.Load()), ast.Constant(0), ast.Load()), dtype)
            case Known(value, kind):
                number = value.value if isinstance(value, ast.Constant) else None
                return Value(value, kind, weak=kind not in INDICES, number=number)  # type: ignore[arg-type]
            case Unknown(why):
                self.lost.add(name)
                raise self.refuse(node, why, REMEDY)
            case Unusable(why, remedy):
                raise self.refuse(node, why, remedy)
            case ArrayName():
                raise self.refuse(node, f"`{name}` is a whole array", f"Name one element of it: `{name}[i]`.")
        raise self.refuse(
            node, f"`{name}` is not declared in this file", "Declare it as a parameter, a local or a constant."
        )

    def element(self, node: c_ast.ArrayRef) -> Value:
        """One element of an array."""
        subscripts: list[c_ast.Node] = []
        base: c_ast.Node = node
        while isinstance(base, c_ast.ArrayRef):
            subscripts.insert(0, base.subscript)
            base = base.name
        meaning = self.names.get(base.name) if isinstance(base, c_ast.ID) else None
        if isinstance(meaning, Unusable):
            raise self.refuse(node, meaning.why, meaning.remedy)
        if not isinstance(base, c_ast.ID) or not isinstance(meaning, ArrayName):
            raise self.refuse(base, f"`{shown(base)}` is no array", "Index a parameter or local array: `A[i][j]`.")
        if len(subscripts) != len(meaning.type.extents):
            rank = len(meaning.type.extents)
            why = f"`{base.name}` has {rank} dimensions, and gets {len(subscripts)} subscripts"
            raise self.refuse(node, why, "Give one subscript for each dimension.")
        values = [self._subscript(subscript) for subscript in subscripts]
        index = values[0] if len(values) == 1 else ast.Tuple(values, ast.Load())
        return Value(ast.Subscript(ast.Name(base.name, ast.Load()), index, ast.Load()), meaning.type.dtype)

    def _subscript(self, node: c_ast.Node) -> ast.expr:
        """A subscript, in which an element of an array of integers may be looked up."""
        with self.wrapping(self._is_address(node)):
            if any(isinstance(part, c_ast.ArrayRef) or self._is_element(part) for part in below(node)):
                found = self.value(node)
                if found.kind in INDICES:
                    return found.node
            return self.integer(node)

    def stored(self, node: c_ast.Node, kind: str) -> Value:
        """A value that is stored in a type, of which a small integer has the lowest bits alone."""
        with self.wrapping(self.keeps_bits(node, kind)):
            return self.value(node)

    def keeps_bits(self, node: c_ast.Node, kind: str) -> bool:
        """Whether the bits of a type depend on no higher ones, as in sums and products of integers."""
        if kind not in (*NARROW, "i32"):
            return False
        match node:
            case c_ast.BinaryOp(op="+" | "-" | "*", left=left, right=right):
                return self.keeps_bits(left, kind) and self.keeps_bits(right, kind)
            case c_ast.UnaryOp(op="+" | "-", expr=operand):
                return self.keeps_bits(operand, kind)
            case c_ast.Constant(type=number):
                return "int" in number
            case c_ast.ArrayRef(name=c_ast.ArrayRef() as row):
                return self.keeps_bits(row, kind)
            case c_ast.ArrayRef(name=c_ast.ID(name=name)) | c_ast.ID(name=name):
                match self.names.get(name):
                    case ArrayName(type=found):
                        return found.is_integer
                    case ScalarName(dtype=dtype) | ElementName(dtype=dtype):
                        return dtype not in (*FLOATS, *PARTS)
                    case CounterName(kind=kind) | SizeName(kind=kind) | Known(kind=kind):
                        return kind not in (*FLOATS, *PARTS)
        return False

    def _is_element(self, node: c_ast.Node) -> bool:
        """Whether a name is that of an integer that stands for an element."""
        known = self.names.get(node.name) if isinstance(node, c_ast.ID) else None
        return isinstance(known, Known) and known.kind in INDICES

    def _is_address(self, node: c_ast.Node) -> bool:
        """Whether a subscript is a sum of products in which only numbers of 64 bits wrap around.

        It is inside its array, so that it is the number that it would be if nothing wrapped around.
        """
        match node:
            case c_ast.BinaryOp(op="+" | "-" | "*", left=left, right=right):
                return self._is_address(left) and self._is_address(right)
            case c_ast.Constant(type=kind, value=text):
                return kind == "int" and "u" not in text.lower()
            case c_ast.ID(name=name):
                match self.names.get(name):
                    case CounterName(kind=kind) | SizeName(kind=kind):
                        return kind != "uint"
                    case Known(kind=kind):
                        return kind in ("int", "long")
        return False

    def integer(self, node: c_ast.Node) -> ast.expr:
        """A subscript or bound: an expression of counters, sizes and integers."""
        return self.integer_value(node).node

    def integer_value(self, node: c_ast.Node) -> Value:
        found = self.value(node)
        if found.kind not in INTEGERS:
            self.indexes_data = True
            why = f"`{shown(node)}` is data: a subscript, bound or extent can't depend on it"
            remedy = "Write what a statement advances in terms of the counters: `2*i` for a `j` that grows by 2."
            if any(isinstance(part, c_ast.UnaryOp) and part.op == "*" for part in below(node)):
                remedy = "Copy it to a local integer before these loops: `int n = *p;`."
            elif any(isinstance(part, c_ast.ArrayRef) for part in below(node)):
                remedy = "Gather the elements into an array of their own before these loops."
            raise self.refuse(node, why, remedy)
        return found

    def _negative(self, node: c_ast.Node, value: Value) -> Value:
        self.check_sign(node, literal(0, value.kind), value)
        if value.number is not None:
            return literal(-value.number, value.kind)
        kind = common(value.kind, "int") if value.kind in NARROW else value.kind
        return Value(ast.UnaryOp(ast.USub(), converted(value, kind)), kind, value.weak)

    def binary(self, node: c_ast.Node, op: str, left: Value, right: Value) -> Value:
        kind = common(left.kind, right.kind)
        if op == "-":
            self.check_sign(node, left, right)
        self.check_wrap(node, left, right)
        if op in ("/", "%") and kind not in (*FLOATS, *PARTS):
            return self.divided(node, op, left, right)
        if op == "%":
            raise self.refuse(node, f"`{shown(node)}` is the rest of a fraction", "Use / and floor.")
        if left.number is not None and right.number is not None:
            return self._folded(node, op, left.number, right.number, kind)
        made = operation(op, converted(left, kind), converted(right, kind))
        if op in "+*":
            self.check_top(node, Value(made, kind))
        if kind == "f32" and left.weak and right.weak:
            return Value(call("f32", made), kind)
        return Value(made, kind, left.weak and right.weak, single=in_single(op, left, right, kind))

    def _folded(self, node: c_ast.Node, op: str, left: float, right: float, kind: str) -> Value:
        if kind not in FLOATS:
            number = FOLDED[op](left, right)
            if not -(1 << BITS_OF[kind]) * (kind not in UNSIGNED) <= number < 1 << BITS_OF[kind]:
                raise self.refuse(node, f"`{shown(node)}` overflows int", "Write one of its numbers as long: `65536L`.")
            return literal(number, kind)
        of = np.float32 if kind == "f32" else np.float64
        with np.errstate(all="ignore"):
            found = of(left) / of(right) if op == "/" else of(FOLDED[op](of(left), of(right)))  # type: ignore[arg-type]
        if not math.isfinite(found):
            raise self.refuse(node, f"`{shown(node)}` is no finite number", "Write a number.")
        return literal(float(found), kind)

    def _choice(self, node: c_ast.Node, test: ast.expr, then: Value, other: Value) -> Value:
        self.check_wrap(node, then, other)
        kind = common(then.kind, other.kind)
        made = ast.IfExp(test, converted(then, kind), converted(other, kind))
        if kind == "f32" and then.weak and other.weak:
            return Value(call("f32", made), kind)
        return Value(made, kind, then.weak and other.weak)

    def _cast(self, node: c_ast.Cast, wanted: c_ast.Node, value: Value) -> Value:
        to = declarations.type_of(wanted, self.typedefs)
        if to is None or to.extents:
            raise self.refuse(node, f"`{shown(node)}` is a conversion to no scalar type of poly", "Use int and double.")
        if to.is_complex or value.kind in PARTS:
            return Value(converted(value, to.dtype), to.dtype, value.weak)
        if to.is_integer and value.number is not None and math.isfinite(value.number):
            return literal(to.rounded(int(value.number)), to.counting)
        if to.dtype in declarations.COUNTING and value.kind in INTEGERS:
            self.check_kept(node, value, to.counting)
            return replace(value, kind=to.counting)
        if to.unsigned:
            raise self.refuse(node, f"`{shown(node)}` makes data unsigned, which wraps around", "Use a signed type.")
        if value.number is not None and not to.is_integer:
            number = float(np.float32(value.number)) if to.dtype == "f32" else float(value.number)
            return literal(number, to.dtype)
        if value.kind == to.dtype:
            return value
        if value.single is not None and to.dtype == "f32":
            return Value(value.single, "f32")
        return Value(call(to.dtype, value.node), to.dtype)

    def _call(self, node: c_ast.FuncCall) -> Value:
        name = node.name.name if isinstance(node.name, c_ast.ID) else ""
        given = node.args.exprs if node.args else []
        odd = name.removeprefix(BUILT_IN)
        if name != odd and (odd in ODD or odd.removesuffix("f") in ODD):
            return literal(ODD[odd if odd in ODD else odd[:-1]], "f64" if odd in ODD else "f32")
        if OF_COMPLEX.get(name) == len(given):
            return of_complex(name, [self.value(arg) for arg in given])
        self._check_function(node, name, len(given))
        args = [self.value(arg) for arg in given]
        if name in ABSOLUTE:
            kind = common(args[0].kind, "int" if name == "abs" else "long")
            kind = kind if kind in INTEGERS else ABSOLUTE[name]
            return Value(call("abs", converted(args[0], kind)), kind, args[0].weak)
        plain, kind = (name[:-1], "f32") if name[:-1] in FUNCTIONS and name.endswith("f") else (name, "f64")
        nodes = [converted(arg, kind) for arg in args]
        if kind == "f32" and all(arg.weak for arg in args):
            nodes = [call(kind, nodes[0]), *nodes[1:]]
        if plain in ("fmin", "fmax"):
            return Value(extreme(plain, nodes[0], nodes[1]), kind)
        python = "abs" if plain == "fabs" else plain
        exact = kind == "f64" and python in ("abs", "sqrt", "floor", "ceil") and args[0].kind == "f32"
        single = call(python, args[0].node) if exact and not args[0].weak else None
        return Value(call(python, *nodes), kind, single=single)

    def _check_function(self, node: c_ast.FuncCall, name: str, count: int) -> None:
        known = {f: 2 if f in OF_TWO else 1 for f in FUNCTIONS}
        known |= {f"{f}f": takes for f, takes in known.items()} | dict.fromkeys(ABSOLUTE, 1)
        if known.get(name) != count:
            why = f"`{name or shown(node)}` is no function that poly knows, and may have side effects"
            raise self.refuse(node, why, f"Write its body here, or as a macro. {KNOWN}")

    def told(self, cond: c_ast.Node, holds: bool) -> list[Polynomial]:
        """What a condition, which has been translated here, tells of counters and sizes where it holds or does not."""

        def integer(node: c_ast.Node) -> Polynomial | None:
            if not all(isinstance(part, SUM | CAST) for part in below(node)):
                return None
            with self.wrapping(True):
                found = self.value(node)
            return polynomial(found.node) if found.kind in INTEGERS else None

        return list(implied(cond, holds, self.facts, integer))

    def _where(self, cond: c_ast.Node, holds: bool, node: c_ast.Node) -> Value:
        """The value of an expression where a condition holds or does not."""
        with self.knowing(self.told(cond, holds)):
            return self.value(node)

    def test(self, node: c_ast.Node) -> ast.expr:
        """A condition, as Python's comparisons joined by and, or, not."""
        match node:
            case c_ast.BinaryOp(op="&&" | "||" as op, left=left, right=right):
                first_test = self.test(left)
                with self.knowing(self.told(left, op == "&&")):
                    made: ast.expr = ast.BoolOp(ast.And() if op == "&&" else ast.Or(), [first_test, self.test(right)])
            case c_ast.UnaryOp(op="!", expr=operand):
                made = ast.UnaryOp(ast.Not(), self.test(operand))
            case c_ast.BinaryOp(op=op, left=left, right=right) if op in COMPARISONS:
                first, second = self.value(left), self.value(right)
                self.check_wrap(node, first, second)
                kind = common(first.kind, second.kind)
                made = ast.Compare(converted(first, kind), [COMPARISONS[op]()], [converted(second, kind)])
            case c_ast.FuncCall() if wanted := _class(node):
                made = self._of_class(wanted, self.value(node.args.exprs[0]))
            case _:
                made = ast.Compare(self.value(node).node, [ast.NotEq()], [numeral(0)])
        return marked(made, node, self.source)

    def _of_class(self, kind: str, value: Value) -> ast.expr:
        """Whether a value is NaN, infinite or finite: it is not equal to itself, or its size is or isn't infinity."""
        node = value.node if value.kind in FLOATS else converted(value, "f64")
        if kind == "isnan":
            return ast.Compare(node, [ast.NotEq()], [node])
        return ast.Compare(call("abs", node), [ast.Eq() if kind == "isinf" else ast.Lt()], [numeral(math.inf)])


def _class(node: c_ast.FuncCall) -> str | None:
    """The one of CLASSES that a call asks for, if it does."""
    name = node.name.name.removeprefix(BUILT_IN).removesuffix("_sign") if isinstance(node.name, c_ast.ID) else ""
    return name if name in CLASSES and node.args and len(node.args.exprs) == 1 else None


def _pointed(node: c_ast.Node) -> tuple[c_ast.Node, c_ast.Node]:
    """The pointer and the subscript in `*p` and `*(p + i)`."""
    match node:
        case c_ast.BinaryOp(op="+", left=left, right=right):
            return left, right
    return node, c_ast.Constant("int", "0", coord=node.coord)
