"""The loops of `nests` in C, for the compiler to optimise. `T` is the scalar type."""

from __future__ import annotations

JACOBI_2D = """
void run(int64_t N, int64_t steps, T (*restrict A)[N], T (*restrict B)[N])
{
    for (int64_t t = 0; t < steps; t++) {
        for (int64_t i = 1; i < N - 1; i++)
            for (int64_t j = 1; j < N - 1; j++)
                B[i][j] = (T)0.2 * (A[i][j] + A[i][j - 1] + A[i][j + 1] + A[i + 1][j] + A[i - 1][j]);
        for (int64_t i = 1; i < N - 1; i++)
            for (int64_t j = 1; j < N - 1; j++)
                A[i][j] = (T)0.2 * (B[i][j] + B[i][j - 1] + B[i][j + 1] + B[i + 1][j] + B[i - 1][j]);
    }
}
"""

HEAT_3D = """
#define HEAT(X)                                                                  \\
    ((T)0.125 * (X[i + 1][j][k] - 2 * X[i][j][k] + X[i - 1][j][k])               \\
     + (T)0.125 * (X[i][j + 1][k] - 2 * X[i][j][k] + X[i][j - 1][k])             \\
     + (T)0.125 * (X[i][j][k + 1] - 2 * X[i][j][k] + X[i][j][k - 1]) + X[i][j][k])

void run(int64_t N, int64_t steps, T (*restrict A)[N][N], T (*restrict B)[N][N])
{
    for (int64_t t = 0; t < steps; t++) {
        for (int64_t i = 1; i < N - 1; i++)
            for (int64_t j = 1; j < N - 1; j++)
                for (int64_t k = 1; k < N - 1; k++)
                    B[i][j][k] = HEAT(A);
        for (int64_t i = 1; i < N - 1; i++)
            for (int64_t j = 1; j < N - 1; j++)
                for (int64_t k = 1; k < N - 1; k++)
                    A[i][j][k] = HEAT(B);
    }
}
"""

SEIDEL_2D = """
void run(int64_t N, int64_t steps, T (*restrict A)[N])
{
    for (int64_t t = 0; t < steps; t++)
        for (int64_t i = 1; i < N - 1; i++)
            for (int64_t j = 1; j < N - 1; j++)
                A[i][j] = (A[i - 1][j - 1] + A[i - 1][j] + A[i - 1][j + 1] + A[i][j - 1] + A[i][j] + A[i][j + 1]
                           + A[i + 1][j - 1] + A[i + 1][j] + A[i + 1][j + 1]) / 9;
}
"""

TRSV = """
void run(int64_t N, T (*restrict L)[N], T *restrict x)
{
    for (int64_t i = 0; i < N; i++) {
        for (int64_t j = 0; j < i; j++)
            x[i] -= L[i][j] * x[j];
        x[i] = x[i] / L[i][i];
    }
}
"""

TRSM = """
void run(int64_t N, int64_t M, T (*restrict L)[N], T (*restrict X)[M])
{
    for (int64_t i = 0; i < N; i++) {
        for (int64_t j = 0; j < i; j++)
            for (int64_t k = 0; k < M; k++)
                X[i][k] -= L[i][j] * X[j][k];
        for (int64_t k = 0; k < M; k++)
            X[i][k] = X[i][k] / L[i][i];
    }
}
"""

SOURCES = {"jacobi_2d": JACOBI_2D, "heat_3d": HEAT_3D, "seidel_2d": SEIDEL_2D, "trsv": TRSV, "trsm": TRSM}
"""The C texts by the nests' names."""
