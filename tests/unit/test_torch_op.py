"""A kernel as an operator of PyTorch: what it takes and returns, its gradients, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from shared_nests import jacobi, matmul, product, transpose

import poly
from poly import f32, f64, torch_op
from poly.analysis.initial import keeps_initial

M, N, T = poly.sizes("M N T")


@poly.nest
def scaled(x: f32[N], factor: f32, y: f32[N]):
    for i in range(N):
        y[i] = factor * x[i]


@poly.nest
def scaled_back(x: f32[N], factor: f32, dy: f32[N], dx: f32[N]):
    for i in range(N):
        dx[i] += factor * dy[i]


@poly.nest
def spread(x: f64[N], y: f64[2 * N + 1, T]):
    for i in range(2 * N + 1):
        for t in range(T):
            y[i, t] = x[i // 2] if i < 2 * N else 1.0


@poly.nest
def half(x: f32[N], y: f32[N]):
    for i in range(N // 2):
        y[i] = x[i]


@poly.nest
def later(x: f32[N], y: f32[N]):
    """Reads an element before it is written."""
    for i in range(N):
        y[i] = x[i] + (y[i + 1] if i < N - 1 else 0.0)


@pytest.mark.parametrize(
    ("nest", "array", "keeps"),
    [
        (matmul, "C", True),
        (product, "C", False),
        (transpose, "B", False),
        (jacobi, "B", True),
        (half, "y", True),
        (later, "y", True),
        (spread, "y", False),
    ],
)
def test_what_an_array_holds_before_matters_or_not(nest: poly.Nest, array: str, keeps: bool) -> None:
    assert keeps_initial(nest, array) == keeps


class Tensor(np.ndarray):
    """An array with PyTorch's name for a copy."""

    def clone(self) -> np.ndarray:
        return self.copy()


def new(buffer: Any, shape: tuple[int, ...], zero: bool) -> np.ndarray:
    return np.full(shape, 0 if zero else np.nan, buffer.dtype.numpy_name)


def test_results_are_returned_and_inputs_stay() -> None:
    rng = np.random.default_rng(0)
    a, b, c = (rng.random(shape, np.float32) for shape in ((3, 4), (4, 5), (3, 5)))
    kept = c.copy()
    made = torch_op.operator(poly.compile(matmul))
    assert made.schema == "(Tensor A, Tensor B, Tensor C) -> Tensor"
    (found,) = made.run((a, b, c.view(Tensor)), new)
    np.testing.assert_allclose(found, c + a @ b, rtol=1e-5)
    np.testing.assert_array_equal(c, kept)
    made = torch_op.operator(poly.compile(product))
    assert made.schema == "(Tensor A, Tensor B) -> Tensor"
    np.testing.assert_allclose(made.run((a, b), new)[0], a @ b, rtol=1e-5)


def test_sizes_that_no_input_tells_are_arguments() -> None:
    """`T` is an extent of the result alone."""
    made = torch_op.operator(spread)
    assert made.schema == "(Tensor x, SymInt T) -> Tensor"
    x = np.arange(3.0)
    assert made.shapes((x, 2)) == {"y": (7, 2)}
    np.testing.assert_array_equal(made.run((x, 2), new)[0][:, 1], [0, 0, 1, 1, 2, 2, 1])


def test_gradients_are_put_where_they_belong() -> None:
    """They are summed from 0 on; an input without one is refused if it needs one."""
    forward, backward = torch_op.operator(scaled), torch_op.operator(scaled_back)
    assert forward.schema == "(Tensor x, float factor) -> Tensor"
    gradients = torch_op.Backward.of(backward, forward)
    assert gradients.operator.schema == "(Tensor x, float factor, Tensor dy) -> Tensor"
    x, dy = np.ones(3, np.float32), np.arange(3, dtype=np.float32)
    arguments = gradients.arguments({"x": x, "factor": 2.0}, [dy])
    found = gradients.operator.run(arguments, new)
    np.testing.assert_array_equal(found[0], 2 * dy)
    assert gradients.in_order(found, (True, False)) == (found[0], None)
    with pytest.raises(poly.ArgumentError, match=r"factor requires a gradient.*factor.detach\(\)"):
        gradients.in_order(found, (True, True))


def test_what_is_no_operator_is_refused() -> None:
    made = poly.compile(scaled)
    with pytest.raises(poly.ArgumentError, match="'namespace::name', not 'scaled'"):
        made.torch_op("scaled")
    with pytest.raises(poly.SpecError, match="matmul is no backward nest of scaled: it has A"):
        made.torch_op("own::scaled", backward=matmul)
    with pytest.raises(poly.SpecError, match="3 is no nest and no kernel"):
        made.torch_op("own::scaled", backward=3)  # type: ignore[arg-type]


def test_pytorch_differentiates_and_compiles_it() -> None:
    torch = pytest.importorskip("torch")
    own = poly.compile(scaled).torch_op("polytest::scaled", backward=scaled_back)
    x = torch.randn(5, requires_grad=True)
    torch.library.opcheck(own, (x, 3.0))
    torch.compile(lambda x: own(x, 3.0), fullgraph=True, backend="aot_eager")(x[::1]).sum().backward()
    assert torch.equal(x.grad, torch.full((5,), 3.0))
    assert torch.equal(own(x[::2], 2.0), 2.0 * x[::2])


def test_without_pytorch_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(f"no module {name}")

    monkeypatch.setattr(torch_op, "import_module", missing)
    with pytest.raises(poly.ArgumentError, match=r"torch_op needs PyTorch.*no module torch"):
        poly.compile(scaled).torch_op("own::scaled")
