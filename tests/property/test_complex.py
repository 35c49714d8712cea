"""Complex nests against the same loops run by Python, within a bound on the rounding errors of each result."""

import numpy as np
import pytest
from opencl_device import device

import poly
from poly import c64, c128, f32, f64

TYPES = {c64: f32, c128: f64}
SIZES = dict(zip("NM", poly.sizes("N M"), strict=True))
SLACK = 8
"""The roundings of one operation on complex numbers."""


class Bounded:
    """A number, and a bound on its error in roundings: the same expression of moduli, with the depth as a factor."""

    def __init__(self, value, size=None, depth=1):
        self.value, self.size, self.depth = value, abs(value) if size is None else size, depth

    def _with(self, other, value, size):
        other = other if isinstance(other, Bounded) else Bounded(other)
        depth = max(self.depth, other.depth) + 1
        return Bounded(value(self.value, other.value), size(self, other), depth)

    def __add__(self, other):
        return self._with(other, lambda a, b: a + b, lambda a, b: a.size + b.size)

    def __sub__(self, other):
        return self._with(other, lambda a, b: a - b, lambda a, b: a.size + b.size)

    def __mul__(self, other):
        return self._with(other, lambda a, b: a * b, lambda a, b: a.size * b.size)

    def __truediv__(self, other):
        return self._with(other, lambda a, b: a / b, lambda a, b: a.size * b.size / abs(b.value) ** 2)

    __radd__ = __add__
    __rmul__ = __mul__

    def __rsub__(self, other):
        return Bounded(other) - self

    def __rtruediv__(self, other):
        return Bounded(other) / self

    def __neg__(self):
        return Bounded(-self.value, self.size, self.depth)

    def __gt__(self, other):
        return self.value > other

    def __abs__(self):
        return Bounded(abs(self.value), self.size, self.depth + 1)

    def conjugate(self):
        return Bounded(np.conj(self.value), self.size, self.depth)

    def exp(self):
        return Bounded(np.exp(self.value), abs(np.exp(self.value)) * (1 + self.size), self.depth + 1)

    real = property(lambda self: Bounded(self.value.real, self.size, self.depth))
    imag = property(lambda self: Bounded(self.value.imag, self.size, self.depth))


def drawn(rng, depth):
    """An expression of the complex arrays x, y and z at i, of the real r, the number a and the scalar t."""
    if depth == 0:
        return rng.choice(["x[i]", "y[i]", "z[i]", "y[i + 1]", "r[i]", "a", "t", "2.5", "1j", "(2 - 3j)", "w"])
    one, other = drawn(rng, depth - 1), drawn(rng, rng.integers(0, depth))
    forms = [
        f"({one} + {other})", f"({one} - {other})", f"({one} * {other})", f"(-{one})", f"np.conj({one})",
        f"({one}).conjugate()" if one[-1] == "]" else f"({one} * {other})", f"({one} / x[i])", f"({one} * r[i] / y[i])",
        f"abs({one} + x[i])", f"complex(({one} + y[i]).real, ({other} + x[i]).imag)", f"np.exp(0.25 * x[i]) * {one}",
        f"({one} if r[i] > 0.7 else {other} * y[i])",
    ]  # fmt: skip
    return rng.choice(forms)


def text(rng, complex_name, real_name):
    """A nest of statements that assign and update elements and scalars, some of which they read."""
    arrays = ", ".join(f"{name}: {complex_name}[N + 1]" for name in "xyz")
    lines = [f"def nest({arrays}, r: {real_name}[N], a: {complex_name}, s: {complex_name}[()]):"]
    lines += ["    for i in range(N):", f"        t = {drawn(rng, 1)} + 1j"]
    for _ in range(3):
        target = rng.choice(["z[i]", "t", "z[i]", "y[i]"])
        lines.append(f"        {target} {rng.choice(['=', '+=', '-=', '*='])} {drawn(rng, 2)}")
    lines += [f"        s[()] += t * {drawn(rng, 1)}", f"        r[i] = abs(z[i]) + ({drawn(rng, 1)} + x[i]).imag"]
    return "\n".join(lines) + "\n"


def numbers(rng, shape, dtype):
    """Complex numbers whose moduli are from 0.5 to 1.5."""
    values = (0.5 + rng.random(shape)) * np.exp(2j * np.pi * rng.random(shape))
    return np.array(values, dtype.numpy_name)


def plain(source, arguments):
    """The loops run by Python, on arrays of bounded numbers."""
    values = [
        np.array([Bounded(v.item()) for v in a.reshape(-1)], object).reshape(a.shape) if a.shape else a
        for a in arguments
    ]
    values[4] = Bounded(complex(arguments[4]))
    values[5] = np.array(Bounded(arguments[5].item()), object)
    known = {"np": np, "w": 0.5 - 0.25j, **SIZES, **{t.name: t for t in (*TYPES, *TYPES.values())}}
    known["complex"] = lambda real, imag: real + 1j * imag
    known["range"] = lambda _: range(len(arguments[3]))
    exec(source, known)
    known["nest"](*values)
    return values


@pytest.mark.parametrize("seed", range(10))
def test_drawn_nests(seed):
    rng = np.random.default_rng(seed)
    dtype = [c64, c128][seed % 2]
    source = text(rng, dtype.name, TYPES[dtype].name)
    nest = poly.parse(source, {"np": np, "w": 0.5 - 0.25j, **SIZES})
    count = 21
    x, y, z = (numbers(rng, count + 1, dtype) for _ in range(3))
    r = (0.5 + rng.random(count)).astype(dtype.part.numpy_name)
    a, s = 0.75 - 0.5j, numbers(rng, (), dtype)
    given = (x, y, z, r, a, s)
    expected = plain(source, (x, y, z, r, numbers(rng, (), dtype) * 0 + a, s))
    epsilon = SLACK * np.finfo(dtype.numpy_name).eps
    for run in (nest, nest.reference):
        found = [value.copy() if isinstance(value, np.ndarray) else value for value in given]
        run(*found)
        for name, got, wanted in zip("xyzr", found, expected, strict=False):
            for one, other in zip(got, wanted, strict=True):
                assert abs(one - other.value) <= epsilon * other.depth * other.size, f"{name}\n{source}"
        total = expected[5].item()
        assert abs(found[5] - total.value) <= epsilon * (total.depth + count) * total.size, source


PRODUCTS = ["C[i, j] += A[i, k] * B[k, j]", "C[i, j] -= np.conj(A[i, k]) * B[k, j]", "C[i, j] += A[i, k] * R[k, j]"]


@pytest.mark.parametrize(("product", "dtype"), list(zip(PRODUCTS, (c64, c128, c64), strict=True)))
def test_contractions(product, dtype):
    """Arrays with gaps, transposed, backwards and apart; their products are run by microkernels."""
    c, r = dtype.name, TYPES[dtype].name
    nest = poly.parse(
        f"""
        def product(A: {c}[M, K], B: {c}[K, N], R: {r}[K, N], C: {c}[M, N]):
            for i in range(M):
                for j in range(N):
                    for k in range(K):
                        {product}
        """,
        {"np": np, **SIZES, "K": poly.sizes("K")},
    )
    rng = np.random.default_rng(0)
    big = numbers(rng, (90, 140), dtype)
    for A, B in ((big[:33, :40], big[:40, :70]), (big.T[:35, :40], big[::-1][:40, ::2])):
        R = np.ascontiguousarray(B.real)
        C = numbers(rng, (A.shape[0], B.shape[1]), dtype)
        right = R if "R[" in product else B
        wanted = C + (-(A.conj() @ right) if "-=" in product else A @ right)
        for run in (nest, nest.reference):
            found = C.copy()
            run(A, B, R, found)
            np.testing.assert_allclose(found, wanted, rtol=0, atol=64 * 40 * np.finfo(dtype.numpy_name).eps)
    assert "microkernel" in str(poly.compile(nest, M=256, N=256, K=256, threads=1).schedule)


@pytest.mark.parametrize("dtype", TYPES)
def test_a_matrix_of_parts_is_read_as_it_lies(dtype):
    text = f"def f(A: {dtype.name}[N, N], x: {dtype.name}[N], y: {dtype.name}[N]):\n    for i in range(N):\n"
    nest = poly.parse(f"{text}        for j in range(N):\n            y[i] += A[i, j] * x[j]", SIZES)
    for size in (200, 1000):
        assert "for j in range" in str(poly.compile(nest, N=size, threads=1).schedule).splitlines()[1]


@pytest.mark.parametrize("subscripts", ["ij,jk", "ij,jk,kl->li", "ij,ij->", "ij,ij->i", "ij->ji"])
def test_einsum(subscripts):
    rng = np.random.default_rng(1)
    operands = [numbers(rng, (6, 6), c128) for _ in subscripts.partition("->")[0].split(",")]
    operands[-1] = operands[-1].real.copy() if len(operands) > 1 else operands[-1]
    np.testing.assert_allclose(poly.einsum(subscripts, *operands), np.einsum(subscripts, *operands), atol=1e-12)


IN_PLACE = """
def nest(A: c128[N, N], x: c128[N]):
    for i in range(N):
        for j in range(i):
            x[i] -= A[i, j] * x[j]
        x[i] /= A[i, i]
    for k in range(N):
        for i in range(k + 1, N):
            A[i, k] /= A[k, k]
        for i in range(k + 1, N):
            for j in range(k + 1, N):
                A[i, j] -= A[i, k] * A[k, j]
    for i in range(1, N):
        for j in range(N):
            A[i, j] -= A[j, i] * A[i, N - 1 - j]
            x[j] = x[i - 1] * x[j] + 1j * x[i]
            for k in range(N - 1, 0, -1):
                A[i, k] += A[i, k - 1] * A[k, i]
"""


def test_an_output_that_is_an_input():
    text = "def f(x: c64[N, N], y: c64[N, N], z: c64[N, N]):\n    for i in range(N):\n        for j in range(N):\n"
    nest = poly.parse(f"{text}            z[i, j] = x[i, j] / y[i, j] * x[i, j]", SIZES)
    x, y = numbers(np.random.default_rng(5), (6, 6), c64), numbers(np.random.default_rng(6), (6, 6), c64)
    wanted = x / y * x
    nest(x, y, x)
    np.testing.assert_allclose(x, wanted, rtol=1e-5)


def test_in_place():
    """Parts are kept where the same element may be read, in loops that tell elements apart and in others."""
    rng = np.random.default_rng(4)
    A, x = numbers(rng, (7, 7), c128) / 8 + np.eye(7), numbers(rng, 7, c128)
    nest, known = poly.parse(IN_PLACE, SIZES), {"c128": c128, "N": SIZES["N"]}
    exec(IN_PLACE, known)
    known["N"] = 7
    wanted = A.copy(), x.copy()
    known["nest"](*wanted)
    for run in (nest, nest.reference):
        found = A.copy(), x.copy()
        run(*found)
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-11)


IN_C = """
#include <complex.h>
void f(int m, int n, int k, double complex alpha, double complex A[m][k], float complex B[k][n], double complex C[m][n],
       double *restrict r)
{
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < n; j++) {
            double complex s = 0;
            for (int l = 0; l < k; l++)
                s += A[i][l] * conj(B[l][j]);
            C[i][j] = alpha * s - 2.0 * I * C[i][j] / cexp(A[i][0]);
        }
        r[i] = cabs(C[i][0]) + creal(A[i][0] * CMPLX(1, r[i])) + cimagf(B[0][0]);
        A[i][0] = r[i] + (float)r[i] * I;
    }
}
"""


def test_in_c():
    rng = np.random.default_rng(3)
    A, B, C = numbers(rng, (7, 9), c128), numbers(rng, (9, 5), c64), numbers(rng, (7, 5), c128)
    r, alpha = rng.random(7), 0.5 - 2j
    wanted = alpha * (A @ B.conj()) - 2j * C / np.exp(A[:, :1])
    reals = abs(wanted[:, 0]) + (A[:, 0] * (1 + 1j * r)).real + B[0, 0].imag
    nest = poly.from_c(IN_C)
    for run in (nest, nest.reference):
        given = [A.copy(), B, C.copy(), r.copy()]
        run(alpha, *given)
        np.testing.assert_allclose(given[2], wanted, rtol=1e-12)
        np.testing.assert_allclose(given[3], reals, rtol=1e-12)
        np.testing.assert_allclose(given[0][:, 0], reals + 1j * reals.astype(np.float32), rtol=1e-6)


def test_a_nest_in_a_nest():
    N = SIZES["N"]

    @poly.nest
    def scale(x: c128[N], y: c128[N]):
        for i in range(N):
            x[i] = x[i] * y[i]

    @poly.nest
    def twice(x: c128[N], y: c128[N]):
        scale(x, y)
        scale(x, y)

    rng = np.random.default_rng(2)
    x, y = numbers(rng, 9, c128), numbers(rng, 9, c128)
    wanted = x * y * y
    on_device = x.copy()
    twice(x, y)
    np.testing.assert_allclose(x, wanted, rtol=1e-14)
    device()
    poly.compile(twice, target="opencl")(on_device, y)
    np.testing.assert_allclose(on_device, wanted, rtol=1e-14)
