"""What the C++ program computes: heat that flows on a plate, from one array to the other and back, T times."""

import poly
from poly import f64

H, W, T = poly.sizes("H W T")


@poly.nest
def heat(c: f64, now: f64[H, W], later: f64[H, W]):
    for t in range(T):
        for i in range(1, H - 1):
            for j in range(1, W - 1):
                later[i, j] = now[i, j] + c * (
                    now[i - 1, j] + now[i + 1, j] + now[i, j - 1] + now[i, j + 1] - 4 * now[i, j]
                )
        for i in range(1, H - 1):
            for j in range(1, W - 1):
                now[i, j] = later[i, j] + c * (
                    later[i - 1, j] + later[i + 1, j] + later[i, j - 1] + later[i, j + 1] - 4 * later[i, j]
                )
