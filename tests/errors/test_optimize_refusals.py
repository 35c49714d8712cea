"""`poly optimize` on C that it can't take: what stays is named with its place, and no file is half written."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from poly.commands import poly
from poly.ir.budget import TooCostly
from poly.measure.child import Died
from poly.rewriting import check, report

HEAD = "void f(int n, double *x, double *y, unsigned u)\n{\n    int i = 0;\n"
LOOP = "for (i = 0; i < n; i++) "


def scop(body: str) -> str:
    return f"{HEAD}#pragma scop\n{body}\n#pragma endscop\n}}\n"


def optimize(folder: Path, text: str, *options: str) -> tuple[Result, Path]:
    path, new = folder / "a.c", folder / "new.c"
    path.write_text(text)
    done = CliRunner().invoke(poly, ["optimize", str(path), "-o", str(new), "--isa", "portable", *options])
    assert done.exception is None or isinstance(done.exception, SystemExit)
    assert path.read_text() == text
    return done, new


STAYS = {
    "while": (scop("while (i < n) { x[i] = 0; i++; }"), "5:1: a `while` loop has no affine bounds"),
    "break": (scop(LOOP + "{ if (x[i] > 0) break; x[i] = 1; }"), "5:41: `break` lets the data decide"),
    "goto": (scop(LOOP + "{ x[i] = 1; goto end; }\nend: ;"), "5:37: `goto` lets the program jump"),
    "call": (scop(LOOP + "x[i] = rand();"), "5:32: `rand` is no function that poly knows, and may have side effects"),
    "assembler": (scop(LOOP + '{ __asm__("nop"); x[i] = 1; }'), "5:27: `__asm__()` is called for its side effects"),
    "pointer": (scop("double *p = x;\n" + LOOP + "*p++ = 1;"), "5:8: `p` is a pointer, which may point into any array"),
    "unsigned": (scop("for (unsigned k = 0; k < u; k++) x[k - 1] = 1;"), "5:36: `k - 1` is unsigned, and wraps around"),
    "unsigned square": (scop("for (unsigned k = 0; k < u; k++) x[k*k] = 1;"), "5:36: `k * k` is unsigned int, and may"),
    "unsigned down": (scop("for (unsigned k = u; k >= 0; k--) x[k] = 1;"), "5:1: `k` is unsigned and counts down"),
    "unsigned end": (
        scop("for (int k = -3; k < u; k++) x[k + 3] = 1;"),
        "5:18: `k < u` makes unsigned what may be neg",
    ),
    "unsigned start": (
        scop("for (unsigned k = -1; k < u; k++) x[k] = 1;"),
        "5:20: `-1` makes unsigned what may be neg",
    ),
    "unsigned cast": (scop(LOOP + "if ((unsigned)(i - 5) < u) x[i] = 1;"), "5:29: `(unsigned) (i - 5)` makes unsigned"),
    "unsigned test": (scop("for (i = -3; i < n; i++) if (i < u) x[i + 3] = 1;"), "5:30: `i < u` makes unsigned what"),
    "unsigned end below": (
        scop("for (i = n - 1; i >= 0u; i--) x[i] = 1;"),
        "5:17: `i >= 0u` makes unsigned what may be negative",
    ),
    "narrow subscript": (scop(LOOP + "x[(char)i] = 1;"), "5:27: `(char) i` is data: a subscript"),
    "overflow": (scop("for (i = 0; i < 65536 * 65536; i++) x[i] = 1;"), "5:17: `65536 * 65536` overflows int"),
    "no end": (HEAD + "#pragma scop\n" + LOOP + "x[i] = 1;\n}\n", "4:9: `#pragma scop` has no end in its block"),
    "no start": (HEAD + LOOP + "x[i] = 1;\n#pragma endscop\n}\n", "5:9: `#pragma endscop` ends no scop"),
    "end in another block": (
        HEAD + "if (n > 3) {\n#pragma scop\n" + LOOP + "x[i] = 1;\n}\n#pragma endscop\n}\n",
        "8:9: `#pragma endscop` ends no scop",
    ),
    "no braces": (
        HEAD + "if (n > 3)\n#pragma scop\n" + LOOP + "x[i] = 1;\n#pragma endscop\n}\n",
        "5:9: `#pragma scop` stands behind `else`",
    ),
    "outside": ("#pragma scop\nint a;\n", "1:9: `#pragma scop` stands outside of functions"),
    "rows": (
        scop(LOOP + "x[i] = rows[i][0];").replace("int i = 0;", "int i = 0; double **rows = 0;"),
        "3:24: the rows of `rows` are pointers, which may point to the same place",
    ),
    "size behind a pointer": (
        scop("for (i = 0; i < *p; i++) x[i] = 1;").replace("int i = 0;", "int i = 0; int *p = (int *)x;"),
        "5:18: `*p` is data: a subscript",
    ),
    "directive": (scop("#ifdef FAST\n" + LOOP + "x[i] = 1;\n#endif"), "4:9: a directive stands in the scop"),
    "parallel": (scop("#pragma omp parallel for\n" + LOOP + "x[i] = 1;"), "5:9: `#pragma omp parallel for` stands in"),
    "shared line": (scop(LOOP + "x[i] = 1;").replace("scop\n", "scop \\\n", 1), "4:9: the pragmas of this scop"),
    "behind a label": (
        scop(LOOP + "x[i] = 1;").replace("#pragma scop", "goto at; at:\n#pragma scop"),
        "5:9: `#pragma scop` stands behind `else`, a label",
    ),
    "structure in a call": (
        "struct S; int get(struct S *s); struct S *s;\n" + scop(LOOP + "x[i] = get(s);"),
        "6:32: `get` is no function that poly knows",
    ),
    "counter afterwards": (
        scop("for (i = 2; i < n; i++) x[i] = 1;").replace("endscop\n", "endscop\nx[0] = i;\n"),
        "3:9: the integer `i` is assigned in the scop and read after it",
    ),
    "counter afterwards by a jump": (
        scop("for (i = n; i > 0; i--) x[i] = 1;").replace(
            "endscop\n", "endscop\nfor (i = 0; i < 3; i++) { in: y[i] = i; }\nif (x[0] > 2) goto in;\n"
        ),
        "3:9: the integer `i` is assigned in the scop and read after it",
    ),
    "declared inside": (
        scop("double t = 3;\n" + LOOP + "x[i] = t;").replace("endscop\n", "endscop\ny[0] = t;\n"),
        "5:8: `t` is declared in the scop, and used after it",
    ),
    "volatile": (
        "void f(int n, volatile double *q) {\n#pragma scop\nfor (int i = 0; i < n; i++) q[i]++;\n#pragma endscop\n}\n",
        "1:31: `q` is volatile",
    ),
    "unused": (
        "void f(void) {\ndouble t[9];\n#pragma scop\nfor (int i = 0; i < 9; i++) t[i] = 1;\n#pragma endscop\n}\n",
        "3: what this scop computes is not used after it",
    ),
}


@pytest.mark.parametrize("case", STAYS)
def test_a_scop_that_is_no_nest_stays_as_it_is(tmp_path: Path, case: str) -> None:
    text, sentence = STAYS[case]
    done, new = optimize(tmp_path, text)
    assert done.exit_code == 0
    assert f"{tmp_path}/a.c:{sentence}" in done.stderr
    assert new.read_text() == text


REFUSED = {
    "no scop": (HEAD + "}\n", "a.c has no scop."),
    "syntax": (scop(LOOP + "x[i] = ;"), "a.c:5:32: error: expected expression"),
    "missing macro": (scop(LOOP + "x[i] = SIZE;"), "a.c:5:32: error: "),
    "missing header": ('#include "none.h"\n' + scop(LOOP + "x[i] = 1;"), "a.c:1:10: fatal error: none.h: No such file"),
    "empty": ("", "a.c has no scop."),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_file_that_is_refused_leaves_no_new_one(tmp_path: Path, case: str) -> None:
    text, sentence = REFUSED[case]
    done, new = optimize(tmp_path, text)
    assert done.exit_code != 0
    assert sentence in done.stderr
    assert not new.exists()


def test_a_jump_around_loops_that_set_their_counters(tmp_path: Path) -> None:
    text = scop(LOOP + "x[i] = 1;").replace(
        "endscop\n", "endscop\nfor (i = 0; i < 3; i++) if (x[i] > 3) break;\nend: ;\n"
    )
    done, new = optimize(tmp_path, text.replace("int i = 0;", "int i = 0;\nif (n < 2) goto end;"))
    assert done.exit_code == 0, done.output
    assert new.read_text() != text
    assert not done.stderr, done.stderr


def test_one_refused_scop_leaves_the_others(tmp_path: Path) -> None:
    good = "void g(int n, double *x)\n{\n#pragma scop\nfor (int i = 0; i < n; i++) x[i] = 1;\n#pragma endscop\n}\n"
    bad = scop("while (i < n) i++;")
    done, new = optimize(tmp_path, bad + good, "--report")
    assert new.read_text().startswith(bad) and "poly_a_g_call(" in new.read_text()
    assert "a.c:4: f\n  stays as it is:" in done.stdout and "done: for portable" in done.stdout


@pytest.mark.parametrize("option", ["--report", "--json"])
def test_a_report_that_takes_too_much_work_says_less(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    def costly(nest: object) -> None:
        raise TooCostly

    monkeypatch.setattr(report, "dependences", costly)
    done, new = optimize(tmp_path, scop(LOOP + "x[i] = 1;"), option)
    assert done.exit_code == 0 and new.exists()
    assert ("too much work to tell" if option == "--report" else '"bound_by": null') in done.stdout


def test_a_kernel_that_crashes_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(child: object, order: check.RunFunction, seconds: float) -> object:
        if order.way:
            raise Died("crashed: Segmentation fault (SIGSEGV)")
        return check.Ran(order.values, 0, False)

    monkeypatch.setattr(check.Child, "ask", ask)
    done, new = optimize(tmp_path, scop(LOOP + "x[i] = 1;"), "--check")
    assert done.exit_code == 1 and "WRONG: the kernel crashed: Segmentation fault" in done.stdout
    assert not new.exists()


def test_loops_that_take_too_long_are_not_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(child: object, order: check.RunFunction, seconds: float) -> object:
        raise Died("hangs")

    monkeypatch.setattr(check.Child, "ask", ask)
    done, new = optimize(tmp_path, scop(LOOP + "x[i] = 1;"), "--check")
    assert done.exit_code == 1 and "not compared: the loops as written can't be run: hangs" in done.stdout
    assert "smaller sizes" in done.stderr and not new.exists()


@pytest.mark.parametrize("options", [[], ["-o", "a.c"], ["-o", "b.c", "--in-place"], ["-o", "b.c", "-D", "1=2"]])
def test_bad_options_write_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str]) -> None:
    monkeypatch.chdir(tmp_path)
    text = scop(LOOP + "x[i] = 1;")
    Path("a.c").write_text(text)
    assert CliRunner().invoke(poly, ["optimize", "a.c", *options]).exit_code in (1, 2)
    assert Path("a.c").read_text() == text and not Path("b.c").exists()


def test_a_new_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.c"
    path.write_text(scop(LOOP + "x[i] = 1;"))
    done = CliRunner().invoke(
        poly, ["optimize", str(path), "-o", str(tmp_path / "none" / "new.c"), "--isa", "portable"]
    )
    assert done.exit_code != 0 and "none/new.c" in done.stderr
