"""What the Rust program computes: a polynomial at many points, by Horner's rule."""

import poly
from poly import f64

N, D = poly.sizes("N D")


@poly.nest
def horner(coefficients: f64[D], x: f64[N], y: f64[N]):
    for i in range(N):
        y[i] = 0
    for d in range(D):
        for i in range(N):
            y[i] = y[i] * x[i] + coefficients[d]
