"""Loops with the usual idioms of simulations, sequence alignment, transforms and compiler tests, as plain Python loops.

The kernels named after Livermore and TSVC are loops of the kinds that these suites are known for, under their numbers.
They are plain functions, which `poly.nest` reads when a case needs them.
"""

from math import cos, exp, sin, sqrt

import poly
from poly import f64, i8, i32

N, M, W, H, D, L = poly.sizes("N M W H D L")


# --- lattice-Boltzmann: streaming and collision in one sweep, with scalars for each site ---


def lbm_d2q9(omega: f64, F: f64[9, H + 2, W + 2], G: f64[9, H + 2, W + 2]) -> None:
    for y in range(1, H + 1):
        for x in range(1, W + 1):
            f0 = F[0, y, x]
            f1 = F[1, y, x - 1]
            f2 = F[2, y - 1, x]
            f3 = F[3, y, x + 1]
            f4 = F[4, y + 1, x]
            f5 = F[5, y - 1, x - 1]
            f6 = F[6, y - 1, x + 1]
            f7 = F[7, y + 1, x + 1]
            f8 = F[8, y + 1, x - 1]
            rho = f0 + f1 + f2 + f3 + f4 + f5 + f6 + f7 + f8
            ux = (f1 - f3 + f5 - f6 - f7 + f8) / rho
            uy = (f2 - f4 + f5 + f6 - f7 - f8) / rho
            base = 1.0 - 1.5 * (ux * ux + uy * uy)
            axis = omega * rho / 9.0
            diagonal = omega * rho / 36.0
            sum = 3.0 * (ux + uy)
            difference = 3.0 * (ux - uy)
            G[0, y, x] = (1.0 - omega) * f0 + omega * rho * 4.0 / 9.0 * base
            G[1, y, x] = (1.0 - omega) * f1 + axis * (base + 3.0 * ux + 4.5 * ux * ux)
            G[2, y, x] = (1.0 - omega) * f2 + axis * (base + 3.0 * uy + 4.5 * uy * uy)
            G[3, y, x] = (1.0 - omega) * f3 + axis * (base - 3.0 * ux + 4.5 * ux * ux)
            G[4, y, x] = (1.0 - omega) * f4 + axis * (base - 3.0 * uy + 4.5 * uy * uy)
            G[5, y, x] = (1.0 - omega) * f5 + diagonal * (base + sum + 0.5 * sum * sum)
            G[6, y, x] = (1.0 - omega) * f6 + diagonal * (base - difference + 0.5 * difference * difference)
            G[7, y, x] = (1.0 - omega) * f7 + diagonal * (base - sum + 0.5 * sum * sum)
            G[8, y, x] = (1.0 - omega) * f8 + diagonal * (base + difference + 0.5 * difference * difference)


def lbm_d3q19(omega: f64, F: f64[19, D + 2, H + 2, W + 2], G: f64[19, D + 2, H + 2, W + 2]) -> None:
    for z in range(1, D + 1):
        for y in range(1, H + 1):
            for x in range(1, W + 1):
                f0 = F[0, z, y, x]
                f1 = F[1, z, y, x - 1]
                f2 = F[2, z, y, x + 1]
                f3 = F[3, z, y - 1, x]
                f4 = F[4, z, y + 1, x]
                f5 = F[5, z - 1, y, x]
                f6 = F[6, z + 1, y, x]
                f7 = F[7, z, y - 1, x - 1]
                f8 = F[8, z, y + 1, x + 1]
                f9 = F[9, z, y + 1, x - 1]
                f10 = F[10, z, y - 1, x + 1]
                f11 = F[11, z - 1, y, x - 1]
                f12 = F[12, z + 1, y, x + 1]
                f13 = F[13, z + 1, y, x - 1]
                f14 = F[14, z - 1, y, x + 1]
                f15 = F[15, z - 1, y - 1, x]
                f16 = F[16, z + 1, y + 1, x]
                f17 = F[17, z + 1, y - 1, x]
                f18 = F[18, z - 1, y + 1, x]
                right = f1 + f7 + f9 + f11 + f13
                left = f2 + f8 + f10 + f12 + f14
                rho = right + left + f0 + f3 + f4 + f5 + f6 + f15 + f16 + f17 + f18
                ux = (right - left) / rho
                uy = (f3 - f4 + f7 - f8 - f9 + f10 + f15 - f16 + f17 - f18) / rho
                uz = (f5 - f6 + f11 - f12 - f13 + f14 + f15 - f16 - f17 + f18) / rho
                base = 1.0 - 1.5 * (ux * ux + uy * uy + uz * uz)
                kept = 1.0 - omega
                axis = omega * rho / 18.0
                edge = omega * rho / 36.0
                xy = 3.0 * (ux + uy)
                yx = 3.0 * (ux - uy)
                xz = 3.0 * (ux + uz)
                zx = 3.0 * (ux - uz)
                yz = 3.0 * (uy + uz)
                zy = 3.0 * (uy - uz)
                G[0, z, y, x] = kept * f0 + omega * rho / 3.0 * base
                G[1, z, y, x] = kept * f1 + axis * (base + 3.0 * ux + 4.5 * ux * ux)
                G[2, z, y, x] = kept * f2 + axis * (base - 3.0 * ux + 4.5 * ux * ux)
                G[3, z, y, x] = kept * f3 + axis * (base + 3.0 * uy + 4.5 * uy * uy)
                G[4, z, y, x] = kept * f4 + axis * (base - 3.0 * uy + 4.5 * uy * uy)
                G[5, z, y, x] = kept * f5 + axis * (base + 3.0 * uz + 4.5 * uz * uz)
                G[6, z, y, x] = kept * f6 + axis * (base - 3.0 * uz + 4.5 * uz * uz)
                G[7, z, y, x] = kept * f7 + edge * (base + xy + 0.5 * xy * xy)
                G[8, z, y, x] = kept * f8 + edge * (base - xy + 0.5 * xy * xy)
                G[9, z, y, x] = kept * f9 + edge * (base + yx + 0.5 * yx * yx)
                G[10, z, y, x] = kept * f10 + edge * (base - yx + 0.5 * yx * yx)
                G[11, z, y, x] = kept * f11 + edge * (base + xz + 0.5 * xz * xz)
                G[12, z, y, x] = kept * f12 + edge * (base - xz + 0.5 * xz * xz)
                G[13, z, y, x] = kept * f13 + edge * (base + zx + 0.5 * zx * zx)
                G[14, z, y, x] = kept * f14 + edge * (base - zx + 0.5 * zx * zx)
                G[15, z, y, x] = kept * f15 + edge * (base + yz + 0.5 * yz * yz)
                G[16, z, y, x] = kept * f16 + edge * (base - yz + 0.5 * yz * yz)
                G[17, z, y, x] = kept * f17 + edge * (base + zy + 0.5 * zy * zy)
                G[18, z, y, x] = kept * f18 + edge * (base - zy + 0.5 * zy * zy)


# --- alignment of sequences ---


def smith_waterman(a: i8[N], b: i8[M], S: i32[N + 1, M + 1]) -> None:
    for i in range(1, N + 1):
        for j in range(1, M + 1):
            match: i32 = 3 if a[i - 1] == b[j - 1] else -2
            S[i, j] = max(0, S[i - 1, j - 1] + match, S[i - 1, j] - 2, S[i, j - 1] - 2)


def gotoh(a: i8[N], b: i8[M], S: i32[N + 1, M + 1], E: i32[N + 1, M + 1], F: i32[N + 1, M + 1]) -> None:
    for i in range(1, N + 1):
        for j in range(1, M + 1):
            E[i, j] = max(E[i, j - 1] - 1, S[i, j - 1] - 4)
            F[i, j] = max(F[i - 1, j] - 1, S[i - 1, j] - 4)
            match: i32 = 3 if a[i - 1] == b[j - 1] else -2
            S[i, j] = max(0, S[i - 1, j - 1] + match, E[i, j], F[i, j])


def edit_distance(a: i8[N], b: i8[M], S: i32[N + 1, M + 1]) -> None:
    for i in range(1, N + 1):
        for j in range(1, M + 1):
            change: i32 = 0 if a[i - 1] == b[j - 1] else 1
            S[i, j] = min(S[i - 1, j - 1] + change, S[i - 1, j] + 1, S[i, j - 1] + 1)


# --- passes of fast Fourier transforms, which sort as they go ---


def fft_radix_2(
    xr: f64[2, L, M], xi: f64[2, L, M], wr: f64[L], wi: f64[L], yr: f64[L, 2, M], yi: f64[L, 2, M]
) -> None:  # fmt: skip
    for j in range(L):
        for k in range(M):
            dr = xr[0, j, k] - xr[1, j, k]
            di = xi[0, j, k] - xi[1, j, k]
            yr[j, 0, k] = xr[0, j, k] + xr[1, j, k]
            yi[j, 0, k] = xi[0, j, k] + xi[1, j, k]
            yr[j, 1, k] = wr[j] * dr - wi[j] * di
            yi[j, 1, k] = wr[j] * di + wi[j] * dr


def fft_radix_4(
    xr: f64[4, L, M], xi: f64[4, L, M], wr: f64[3, L], wi: f64[3, L], yr: f64[L, 4, M], yi: f64[L, 4, M]
) -> None:  # fmt: skip
    for j in range(L):
        for k in range(M):
            ar = xr[0, j, k] + xr[2, j, k]
            ai = xi[0, j, k] + xi[2, j, k]
            br = xr[0, j, k] - xr[2, j, k]
            bi = xi[0, j, k] - xi[2, j, k]
            cr = xr[1, j, k] + xr[3, j, k]
            ci = xi[1, j, k] + xi[3, j, k]
            dr = xr[1, j, k] - xr[3, j, k]
            di = xi[1, j, k] - xi[3, j, k]
            yr[j, 0, k] = ar + cr
            yi[j, 0, k] = ai + ci
            er = br + di
            ei = bi - dr
            yr[j, 1, k] = wr[0, j] * er - wi[0, j] * ei
            yi[j, 1, k] = wr[0, j] * ei + wi[0, j] * er
            gr = ar - cr
            gi = ai - ci
            yr[j, 2, k] = wr[1, j] * gr - wi[1, j] * gi
            yi[j, 2, k] = wr[1, j] * gi + wi[1, j] * gr
            hr = br - di
            hi = bi + dr
            yr[j, 3, k] = wr[2, j] * hr - wi[2, j] * hi
            yi[j, 3, k] = wr[2, j] * hi + wi[2, j] * hr


def fft_interleaved(x: f64[2, L, M, 2], w: f64[L, 2], y: f64[L, 2, M, 2]) -> None:
    for j in range(L):
        for k in range(M):
            dr = x[0, j, k, 0] - x[1, j, k, 0]
            di = x[0, j, k, 1] - x[1, j, k, 1]
            y[j, 0, k, 0] = x[0, j, k, 0] + x[1, j, k, 0]
            y[j, 0, k, 1] = x[0, j, k, 1] + x[1, j, k, 1]
            y[j, 1, k, 0] = w[j, 0] * dr - w[j, 1] * di
            y[j, 1, k, 1] = w[j, 0] * di + w[j, 1] * dr


# --- loops like those of Livermore ---


def livermore_1(q: f64, r: f64, t: f64, x: f64[N], y: f64[N], z: f64[N + 11]) -> None:
    """A fragment of hydrodynamics."""
    for k in range(N):
        x[k] = q + y[k] * (r * z[k + 10] + t * z[k + 11])


def livermore_3(x: f64[N], z: f64[N], s: f64[1]) -> None:
    """An inner product."""
    q = 0.0
    for k in range(N):
        q += z[k] * x[k]
    s[0] = q


def livermore_5(x: f64[N], y: f64[N], z: f64[N]) -> None:
    """Elimination below a tridiagonal."""
    for i in range(1, N):
        x[i] = z[i] * (y[i] - x[i - 1])


def livermore_6(w: f64[M], b: f64[M, M]) -> None:
    """A linear recurrence over all that is before."""
    for i in range(1, M):
        w[i] = 0.01
        for k in range(i):
            w[i] += b[k, i] * w[i - k - 1]


def livermore_7(q: f64, r: f64, t: f64, x: f64[N], y: f64[N], z: f64[N], u: f64[N + 6]) -> None:
    """A fragment of an equation of state."""
    for k in range(N):
        x[k] = u[k] + r * (z[k] + r * y[k]) + t * (
            u[k + 3] + r * (u[k + 2] + r * u[k + 1]) + t * (u[k + 6] + q * (u[k + 5] + q * u[k + 4]))
        )  # fmt: skip


def livermore_8(q: f64, U1: f64[2, N, 5], U2: f64[2, N, 5], d1: f64[N], d2: f64[N]) -> None:
    """Implicit integration in alternating directions, with short rows and a scalar array for each sweep."""
    for x in range(1, 4):
        for y in range(1, N - 1):
            d1[y] = U1[0, y + 1, x] - U1[0, y - 1, x]
            d2[y] = U2[0, y + 1, x] - U2[0, y - 1, x]
            U1[1, y, x] = U1[0, y, x] + 0.3 * d1[y] + 0.1 * d2[y] + q * (
                U1[0, y, x + 1] - 2.0 * U1[0, y, x] + U1[0, y, x - 1]
            )  # fmt: skip
            U2[1, y, x] = U2[0, y, x] + 0.2 * d1[y] + 0.4 * d2[y] + q * (
                U2[0, y, x + 1] - 2.0 * U2[0, y, x] + U2[0, y, x - 1]
            )  # fmt: skip


def livermore_9(c: f64[8], p: f64[N, 13]) -> None:
    """Integration by predictors: a row of 13 for each point."""
    for i in range(N):
        p[i, 0] = (
            c[6] * p[i, 12] + c[5] * p[i, 11] + c[4] * p[i, 10] + c[3] * p[i, 9] + c[2] * p[i, 8]
            + c[1] * p[i, 7] + c[0] * p[i, 6] + c[7] * (p[i, 4] + p[i, 5]) + p[i, 2]
        )  # fmt: skip


def livermore_10(c: f64[N, 14], p: f64[N, 14]) -> None:
    """Differences of predictors: a chain of scalars through each row."""
    for i in range(N):
        a = c[i, 4]
        b = a - p[i, 4]
        p[i, 4] = a
        d = b - p[i, 5]
        p[i, 5] = b
        e = d - p[i, 6]
        p[i, 6] = d
        f = e - p[i, 7]
        p[i, 7] = e
        p[i, 9] = f - p[i, 8]
        p[i, 8] = f


def livermore_11(x: f64[N], y: f64[N]) -> None:
    """Sums of all that is before."""
    x[0] = y[0]
    for k in range(1, N):
        x[k] = x[k - 1] + y[k]


def livermore_12(x: f64[N], y: f64[N + 1]) -> None:
    """Differences of neighbours."""
    for k in range(N):
        x[k] = y[k + 1] - y[k]


def livermore_18(
    t: f64, s: f64, za: f64[7, N], zb: f64[7, N], zm: f64[7, N], zp: f64[7, N], zq: f64[7, N],
    zr: f64[7, N], zu: f64[7, N], zv: f64[7, N], zz: f64[7, N],
) -> None:  # fmt: skip
    """Explicit hydrodynamics in two dimensions: three sweeps over the same long rows."""
    for k in range(1, 6):
        for j in range(1, N - 1):
            za[k, j] = (
                (zp[k + 1, j - 1] + zq[k + 1, j - 1] - zp[k, j - 1] - zq[k, j - 1])
                * (zr[k, j] + zr[k, j - 1]) / (zm[k, j - 1] + zm[k + 1, j - 1])
            )  # fmt: skip
            zb[k, j] = (
                (zp[k, j - 1] + zq[k, j - 1] - zp[k, j] - zq[k, j])
                * (zr[k, j] + zr[k - 1, j]) / (zm[k, j] + zm[k, j - 1])
            )  # fmt: skip
    for k in range(1, 6):
        for j in range(1, N - 1):
            zu[k, j] += s * (
                za[k, j] * (zz[k, j] - zz[k, j + 1]) - za[k, j - 1] * (zz[k, j] - zz[k, j - 1])
                - zb[k, j] * (zz[k, j] - zz[k - 1, j]) + zb[k + 1, j] * (zz[k, j] - zz[k + 1, j])
            )  # fmt: skip
            zv[k, j] += s * (
                za[k, j] * (zr[k, j] - zr[k, j + 1]) - za[k, j - 1] * (zr[k, j] - zr[k, j - 1])
                - zb[k, j] * (zr[k, j] - zr[k - 1, j]) + zb[k + 1, j] * (zr[k, j] - zr[k + 1, j])
            )  # fmt: skip
    for k in range(1, 6):
        for j in range(1, N - 1):
            zr[k, j] = zr[k, j] + t * zu[k, j]
            zz[k, j] = zz[k, j] + t * zv[k, j]


def livermore_19(sa: f64[N], sb: f64[N], b: f64[N]) -> None:
    """A recurrence forward, then one backward that goes on from its end."""
    stb = 0.1
    for k in range(N):
        b[k] = sa[k] + stb * sb[k]
        stb = b[k] - stb
    for k in range(N - 1, -1, -1):
        b[k] = sa[k] + stb * sb[k]
        stb = b[k] - stb


def livermore_21(px: f64[N, 25], cx: f64[25, 25], vy: f64[N, 25]) -> None:
    """A product with a long side and two of 25."""
    for k in range(25):
        for i in range(25):
            for j in range(N):
                px[j, i] += vy[j, k] * cx[k, i]


def livermore_22(x: f64[N], y: f64[N], u: f64[N], v: f64[N], w: f64[N]) -> None:
    """A Planck distribution."""
    for k in range(N):
        y[k] = u[k] / v[k]
        w[k] = x[k] / (exp(y[k]) - 1.0)


def livermore_23(za: f64[7, N], zb: f64[7, N], zr: f64[7, N], zu: f64[7, N], zv: f64[7, N], zz: f64[7, N]) -> None:
    """Implicit hydrodynamics in two dimensions, in place."""
    for j in range(1, 6):
        for k in range(1, N - 1):
            qa = (
                za[j + 1, k] * zr[j, k] + za[j - 1, k] * zb[j, k] + za[j, k + 1] * zu[j, k]
                + za[j, k - 1] * zv[j, k] + zz[j, k]
            )  # fmt: skip
            za[j, k] += 0.175 * (qa - za[j, k])


# --- loops like those of TSVC ---


def tsvc_s000(a: f64[N], b: f64[N]) -> None:
    for i in range(N):
        a[i] = b[i] + 1.0


def tsvc_s111(a: f64[2 * N], b: f64[2 * N]) -> None:
    for i in range(N):
        a[2 * i + 1] = a[2 * i] + b[2 * i + 1]


def tsvc_s112(a: f64[N], b: f64[N]) -> None:
    for i in range(N - 2, -1, -1):
        a[i + 1] = a[i] + b[i]


def tsvc_s116(a: f64[5 * N + 5]) -> None:
    for i in range(N):
        a[5 * i] = a[5 * i + 1] * a[5 * i]
        a[5 * i + 1] = a[5 * i + 2] * a[5 * i + 1]
        a[5 * i + 2] = a[5 * i + 3] * a[5 * i + 2]
        a[5 * i + 3] = a[5 * i + 4] * a[5 * i + 3]
        a[5 * i + 4] = a[5 * i + 5] * a[5 * i + 4]


def tsvc_s118(a: f64[M], bb: f64[M, M]) -> None:
    for i in range(1, M):
        for j in range(i):
            a[i] += bb[j, i] * a[i - j - 1]


def tsvc_s119(aa: f64[M, M], bb: f64[M, M]) -> None:
    for i in range(1, M):
        for j in range(1, M):
            aa[i, j] = aa[i - 1, j - 1] + bb[i, j]


def tsvc_s121(a: f64[N + 1], b: f64[N]) -> None:
    for i in range(N):
        a[i] = a[i + 1] + b[i]


def tsvc_s127(a: f64[2 * N], b: f64[N], c: f64[N], d: f64[N], e: f64[N]) -> None:
    for i in range(N):
        a[2 * i] = b[i] + c[i] * d[i]
        a[2 * i + 1] = b[i] + d[i] * e[i]


def tsvc_s1111(a: f64[2 * N], b: f64[N], c: f64[N], d: f64[N]) -> None:
    for i in range(N):
        a[2 * i] = c[i] * b[i] + d[i] * b[i] + c[i] * c[i] + d[i] * b[i] + d[i] * c[i]


def tsvc_s1112(a: f64[N], b: f64[N]) -> None:
    for i in range(N - 1, -1, -1):
        a[i] = b[i] + 1.0


def tsvc_s176(a: f64[M], b: f64[2 * M], c: f64[M]) -> None:
    for j in range(M):
        for i in range(M):
            a[i] += b[i + M - j - 1] * c[j]


def tsvc_s211(a: f64[N + 1], b: f64[N + 1], c: f64[N], d: f64[N], e: f64[N]) -> None:
    for i in range(1, N):
        a[i] = b[i - 1] + c[i] * d[i]
        b[i] = b[i + 1] - e[i] * d[i]


def tsvc_s212(a: f64[N + 1], b: f64[N], c: f64[N], d: f64[N]) -> None:
    for i in range(N):
        a[i] *= c[i]
        b[i] += a[i + 1] * d[i]


def tsvc_s221(a: f64[N], b: f64[N], c: f64[N], d: f64[N]) -> None:
    for i in range(1, N):
        a[i] += c[i] * d[i]
        b[i] = b[i - 1] + a[i] + d[i]


def tsvc_s222(a: f64[N], b: f64[N], c: f64[N], e: f64[N]) -> None:
    for i in range(1, N):
        a[i] += b[i] * c[i]
        e[i] = e[i - 1] * e[i - 1]
        a[i] -= b[i] * c[i]


def tsvc_s231(aa: f64[M, M], bb: f64[M, M]) -> None:
    for i in range(M):
        for j in range(1, M):
            aa[j, i] = aa[j - 1, i] + bb[j, i]


def tsvc_s232(aa: f64[M, M], bb: f64[M, M]) -> None:
    for j in range(1, M):
        for i in range(1, j + 1):
            aa[j, i] = aa[j, i - 1] * 0.5 + bb[j, i]


def tsvc_s233(aa: f64[M, M], bb: f64[M, M], cc: f64[M, M]) -> None:
    for i in range(1, M):
        for j in range(1, M):
            aa[j, i] = aa[j - 1, i] + cc[j, i]
        for j in range(1, M):
            bb[j, i] = bb[j, i - 1] + cc[j, i]


def tsvc_s235(a: f64[M], b: f64[M], c: f64[M], aa: f64[M, M], bb: f64[M, M]) -> None:
    for i in range(M):
        a[i] += b[i] * c[i]
        for j in range(1, M):
            aa[j, i] = aa[j - 1, i] + bb[j, i] * a[i]


def tsvc_s241(a: f64[N + 1], b: f64[N], c: f64[N], d: f64[N]) -> None:
    for i in range(N):
        a[i] = b[i] * c[i] * d[i]
        b[i] = a[i] * a[i + 1] * d[i]


def tsvc_s243(a: f64[N + 1], b: f64[N], c: f64[N], d: f64[N], e: f64[N]) -> None:
    for i in range(N):
        a[i] = b[i] + c[i] * d[i]
        b[i] = a[i] + d[i] * e[i]
        a[i] = b[i] + a[i + 1] * d[i]


def tsvc_s251(a: f64[N], b: f64[N], c: f64[N], d: f64[N]) -> None:
    for i in range(N):
        s = b[i] + c[i] * d[i]
        a[i] = s * s


def tsvc_s252(a: f64[N], b: f64[N], c: f64[N]) -> None:
    t = 0.0
    for i in range(N):
        s = b[i] * c[i]
        a[i] = s + t
        t = s


def tsvc_s256(a: f64[M], aa: f64[M, M], bb: f64[M, M], d: f64[M]) -> None:
    for i in range(M):
        for j in range(1, M):
            a[j] = 1.0 - a[j - 1]
            aa[j, i] = a[j] + bb[j, i] * d[j]


def tsvc_s271(a: f64[N], b: f64[N], c: f64[N]) -> None:
    for i in range(N):
        if b[i] > 0.0:
            a[i] += b[i] * c[i]


def tsvc_s273(a: f64[N], b: f64[N], c: f64[N], d: f64[N], e: f64[N]) -> None:
    for i in range(N):
        a[i] += d[i] * e[i]
        if a[i] < 0.0:
            b[i] += d[i] * e[i]
        c[i] += a[i] * d[i]


def tsvc_s274(a: f64[N], b: f64[N], c: f64[N], d: f64[N], e: f64[N]) -> None:
    for i in range(N):
        a[i] = c[i] + e[i] * d[i]
        if a[i] > 0.0:
            b[i] = a[i] + b[i]
        else:
            a[i] = d[i] * e[i]


def tsvc_s2710(a: f64[N], b: f64[N], c: f64[N], d: f64[N], e: f64[N]) -> None:
    for i in range(N):
        above = a[i] - b[i]
        if above > 0.0:
            a[i] += b[i] * d[i]
            c[i] += d[i] * d[i]
        else:
            b[i] = a[i] + e[i] * e[i]
            c[i] = a[i] + d[i] * d[i]


def tsvc_s311(a: f64[N], s: f64[1]) -> None:
    sum = 0.0
    for i in range(N):
        sum += a[i]
    s[0] = sum


def tsvc_s312(a: f64[N], s: f64[1]) -> None:
    product = 1.0
    for i in range(N):
        product *= a[i]
    s[0] = product


def tsvc_s314(a: f64[N], s: f64[1]) -> None:
    most = a[0]
    for i in range(N):
        most = max(most, a[i])
    s[0] = most


def tsvc_s319(a: f64[N], b: f64[N], c: f64[N], d: f64[N], e: f64[N], s: f64[1]) -> None:
    sum = 0.0
    for i in range(N):
        a[i] = c[i] + d[i]
        sum += a[i]
        b[i] = c[i] + e[i]
        sum += b[i]
    s[0] = sum


def tsvc_s3111(a: f64[N], s: f64[1]) -> None:
    sum = 0.0
    for i in range(N):
        if a[i] > 0.0:
            sum += a[i]
    s[0] = sum


def tsvc_s321(a: f64[N], b: f64[N]) -> None:
    for i in range(1, N):
        a[i] += a[i - 1] * b[i]


def tsvc_s322(a: f64[N], b: f64[N], c: f64[N]) -> None:
    for i in range(2, N):
        a[i] = a[i] + a[i - 1] * b[i] + a[i - 2] * c[i]


def tsvc_s323(a: f64[N], b: f64[N], c: f64[N], d: f64[N], e: f64[N]) -> None:
    for i in range(1, N):
        a[i] = b[i - 1] + c[i] * d[i]
        b[i] = a[i] + c[i] * e[i]


def tsvc_s351(alpha: f64, a: f64[5 * N], b: f64[5 * N]) -> None:
    for i in range(N):
        a[5 * i] += alpha * b[5 * i]
        a[5 * i + 1] += alpha * b[5 * i + 1]
        a[5 * i + 2] += alpha * b[5 * i + 2]
        a[5 * i + 3] += alpha * b[5 * i + 3]
        a[5 * i + 4] += alpha * b[5 * i + 4]


def tsvc_s451(a: f64[N], b: f64[N], c: f64[N]) -> None:
    for i in range(N):
        a[i] = sin(b[i]) + cos(c[i])


def tsvc_s452(a: f64[N], b: f64[N], c: f64[N]) -> None:
    for i in range(N):
        a[i] = b[i] + c[i] * (i + 1)


def tsvc_vpvtv(a: f64[N], b: f64[N], c: f64[N]) -> None:
    for i in range(N):
        a[i] += b[i] * c[i]


def tsvc_vdotr(a: f64[N], b: f64[N], s: f64[1]) -> None:
    dot = 0.0
    for i in range(N):
        dot += a[i] * b[i]
    s[0] = dot


def tsvc_vbor(a: f64[N], b: f64[N], c: f64[N], d: f64[N], e: f64[N], x: f64[N]) -> None:
    for i in range(N):
        p = b[i] * c[i] + b[i] * d[i] + b[i] * e[i] + c[i] * d[i] + c[i] * e[i] + d[i] * e[i]
        q = a[i] * p + b[i] * c[i] * d[i] + b[i] * c[i] * e[i] + b[i] * d[i] * e[i] + c[i] * d[i] * e[i]
        x[i] = p * q + a[i] * q * q


# --- other idioms ---


def softmax(X: f64[M, M], Y: f64[M, M]) -> None:
    for i in range(M):
        m = X[i, 0]
        for j in range(1, M):
            m = max(m, X[i, j])
        s = 0.0
        for j in range(M):
            Y[i, j] = exp(X[i, j] - m)
            s += Y[i, j]
        for j in range(M):
            Y[i, j] /= s


def n_body(x: f64[M], y: f64[M], z: f64[M], m: f64[M], ax: f64[M], ay: f64[M], az: f64[M]) -> None:
    for i in range(M):
        ax[i] = 0.0
        ay[i] = 0.0
        az[i] = 0.0
        for j in range(M):
            dx = x[j] - x[i]
            dy = y[j] - y[i]
            dz = z[j] - z[i]
            square = dx * dx + dy * dy + dz * dz + 0.01
            inverse = m[j] / (square * sqrt(square))
            ax[i] += inverse * dx
            ay[i] += inverse * dy
            az[i] += inverse * dz


def transposed(A: f64[M, M], B: f64[M, M]) -> None:
    for i in range(M):
        for j in range(M):
            B[j, i] = A[i, j]


def floyd(D: f64[M, M]) -> None:
    for k in range(M):
        for i in range(M):
            for j in range(M):
                D[i, j] = min(D[i, j], D[i, k] + D[k, j])
