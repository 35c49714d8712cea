"""Names for arrays, sizes, loops, scalars, constants and functions: plain ones, and those that clash with others.

The odd ones are words of C++ and OpenCL, of the headers, of isl's text, and of generated code.
"""

from __future__ import annotations

from random import Random

ARRAYS = ("A", "B", "C", "D", "x", "y", "z", "u", "v", "W")
SIZES = ("N", "M", "K", "P", "Q", "T", "R")
LOOPS = ("i", "j", "k", "l", "p", "q", "r", "s", "t")
SCALARS = ("alpha", "beta", "a0")
LOCALS = ("tmp", "acc", "tot", "w", "h")
CONSTANTS = ("factor", "PERIOD", "offset")
FUNCTIONS = ("nest", "f", "run_it")

ODD_WORDS = """
    x0 x1 x2 d0 d1 d2 i0 i1 c0 c1 o0 o1 e0 p0 p1 s0 t0 k0 k1 S0 S1 S S_ n0 n1 a b c e M_ FP M N_ N_ld A_ld
    x_ld C_ld A_stride0 x_bytes A_bytes threads threads_ workspace tile tile_rows row lane lanes item group at
    past first mine number offsets run call barrier thread length given this_row steps0 this new delete
    template class_ namespace private public operator xor bitand typename half constant kernel local pipe
    uchar uint float4 int8 double2 index j0 y1 yn gamma_ pow main abs_ select div labs free NAN_ INFINITY_
    HUGE linux unix I INT32 UINT8 BYTE SIZE result status problem isa variant total count_ value buffer memory
    packed panel left right alpha_ beta_ i_tile j_tile k_tile i_2 j_2 i_j N_tile near S0_near tmp_2 A_2 int_
    double_ poly_ np_ imin imax align64 overlap fma v_f32 load store zero ints vec tail omp_get_thread_num
    bool_ u8 u16 i16 f16_ ld lda ldb ldc
"""
ODD = tuple(ODD_WORDS.split())


class Names:
    """Names for one nest, each given once. With `odd`, about half of them are odd ones."""

    def __init__(self, rng: Random, odd: bool) -> None:
        self._rng, self._odd = rng, odd
        self._used: set[str] = set()

    def array(self) -> str:
        return self._one(ARRAYS)

    def size(self) -> str:
        return self._one(SIZES)

    def loop(self, around: tuple[str, ...]) -> str:
        """A loop's name, which may be reused, but not inside the loop."""
        free = [n for n in LOOPS if n not in self._used and n not in around]
        if self._odd and self._rng.random() < 0.4:
            return self._one(LOOPS)
        return self._rng.choice(free[:5]) if free else self._one(LOOPS)

    def scalar(self) -> str:
        return self._one(SCALARS)

    def local(self) -> str:
        return self._one(LOCALS)

    def constant(self) -> str:
        return self._one(CONSTANTS)

    def function(self) -> str:
        return self._one(FUNCTIONS)

    def _one(self, plain: tuple[str, ...]) -> str:
        pool = ODD if self._odd and self._rng.random() < 0.5 else plain
        free = [n for n in pool if n not in self._used] or [f"{plain[0]}{len(self._used)}"]
        name = self._rng.choice(free)
        self._used.add(name)
        return name
