"""What lies in the cache is run: so it must be whole, and nobody else can have put it there."""

from __future__ import annotations

import os
import random
import stat
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import poly
from codegen.errors import ToolchainError
from codegen.system import cache
from codegen.system.files import write_file
from codegen.toolchain import build, precompiled
from codegen.toolchain.compiler import is_gcc
from poly import f64
from poly.compilation import compile_nest

TEXT = "int answer(void) { return 42; }\n"
CDEF = "int answer(void);"
N = poly.sizes("N")


@poly.nest
def double(x: f64[N]):
    for i in range(N):
        x[i] = x[i] * 2


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    monkeypatch.setenv("POLY_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def check() -> None:
    """Compile a nest and call it."""
    x = np.arange(5.0)
    compile_nest(double, target="c:portable", threads=1)(x)
    assert x.tolist() == [0.0, 2.0, 4.0, 6.0, 8.0]


def truncate(content: bytes, lot: random.Random) -> bytes:
    return content[: lot.randrange(len(content))]


def zero_the_end(content: bytes, lot: random.Random) -> bytes:
    kept = lot.randrange(len(content))
    return content[:kept] + bytes(len(content) - kept)


def flip_a_bit(content: bytes, lot: random.Random) -> bytes:
    at = lot.randrange(len(content))
    return content[:at] + bytes([content[at] ^ 1 << lot.randrange(8)]) + content[at + 1 :]


def lengthen(content: bytes, lot: random.Random) -> bytes:
    return content + lot.randbytes(lot.randrange(1, 200))


def lose_a_page(content: bytes, lot: random.Random) -> bytes:
    at = lot.randrange(len(content))
    return content[:at] + bytes(min(4096, len(content) - at)) + content[at + 4096 :]


def other_text(content: bytes, lot: random.Random) -> bytes:
    return lot.choice([b"", b"{}", b"null", b"[[" * 5000, b"\xff\xfe", b'{"source": 3, "flags": null, "scratch": []}'])


HARM = [truncate, zero_the_end, flip_a_bit, lengthen, lose_a_page, other_text]


@pytest.mark.parametrize("harm", HARM)
@pytest.mark.parametrize("seed", range(3))
def test_damage_is_made_good(harm: Callable[[bytes, random.Random], bytes], seed: int, folder: Path) -> None:
    """Every file of a compilation, harmed in every way: the next one is as the first."""
    check()
    lot = random.Random(seed)
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    assert {path.parent.name for path in files} >= {"kernels", "kept"}
    for path in files:
        whole = path.read_bytes()
        harmed = harm(whole, lot)
        write_file(path, harmed)  # not in place: it is loaded here, and would end this process
        check()
        if path.suffix != ".c" and harmed != whole:
            assert path.read_bytes() == whole


@settings(max_examples=50)
@given(content=st.binary(max_size=300), data=st.data())
def test_a_seal_tells_any_damage(content: bytes, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("seal", numbered=True) / "file"
    cache.put_file(path, content)
    assert cache.get_file(path) == content
    whole = path.read_bytes()
    harmed = data.draw(st.sampled_from(HARM))(whole, data.draw(st.randoms(use_true_random=False)))
    write_file(path, harmed)
    assert cache.get_file(path) == (content if harmed == whole else None)


def test_a_file_under_the_name_of_another_is_damage(folder: Path) -> None:
    cache.put("one", "1")
    cache.put("two", "2")
    one, two = (folder / "kept" / cache.digest(key) for key in ("one", "two"))
    two.write_bytes(one.read_bytes())
    assert (cache.get("one"), cache.get("two")) == ("1", None)


@pytest.mark.slow
def test_a_precompiled_header_that_is_damaged_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler that reads one may crash, or build something else."""
    if not is_gcc():
        pytest.skip("the C compiler is not gcc")
    compiler = build.find_compiler()
    flags = (*build.FLAGS, "-O0")
    if not precompiled.make(compiler, build.identity(compiler), flags):
        pytest.skip("no <immintrin.h> on this CPU")
    header = precompiled._compiled(precompiled._header(build.identity(compiler), flags))
    whole = header.read_bytes()
    assert precompiled.options(build.identity(compiler), flags, precompiled.INCLUDE)
    for harm in (truncate, flip_a_bit):
        header.write_bytes(harm(whole, random.Random(1)))
        assert not precompiled.options(build.identity(compiler), flags, precompiled.INCLUDE)
    assert precompiled.make(compiler, build.identity(compiler), flags)
    assert cache.get_file(header) is not None


def test_a_directory_in_the_place_of_a_file(folder: Path) -> None:
    cache.put("key", "text")
    place = folder / "kept" / cache.digest("key")
    place.unlink()
    place.mkdir()
    assert cache.get("key") is None
    with pytest.raises(ToolchainError, match="cannot be used"):
        cache.put("key", "text")


# Who may write there.


def refused(match: str) -> None:
    for action in (check, lambda: build.load(TEXT, CDEF), lambda: cache.get("key"), lambda: cache.put("key", "text")):
        with pytest.raises(ToolchainError, match=match) as caught:
            action()
        assert "POLY_CACHE_DIR" in str(caught.value)


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o1777, 0o720])
@pytest.mark.parametrize("name", [".", "kernels", "kept"])
def test_a_directory_that_others_can_write(mode: int, name: str, folder: Path) -> None:
    check()
    cache.put("key", "text")
    (folder / name).chmod(mode)
    actions: list[Callable[[], object]] = [check]
    if name != "kernels":
        actions += [lambda: cache.get("key"), lambda: cache.put("key", "text")]
    if name != "kept":
        actions += [lambda: build.load(TEXT, CDEF)]
    for action in actions:
        with pytest.raises(
            ToolchainError, match=r"is not used: others can write to .*Run `chmod go-w .*POLY_CACHE_DIR"
        ):
            action()
    (folder / name).chmod(0o700)
    check()


@pytest.mark.parametrize("mode", [0o700, 0o755, 0o750, 0o711])
def test_a_directory_that_others_can_only_read(mode: int, folder: Path) -> None:
    check()
    folder.chmod(mode)
    check()


def test_a_directory_of_another_user(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where this process is the superuser's, who may write everywhere."""
    check()
    owner = os.stat
    strange = 54321

    def of_another(path: object, **more: object) -> os.stat_result:
        found = owner(path, **more)  # type: ignore[call-overload]
        mine = str(path).startswith(str(folder))
        return os.stat_result((*found[:4], strange, *found[5:10])) if mine else found

    monkeypatch.setattr("codegen.system.cache.os.stat", of_another)
    refused(
        rf"is not used: .*{folder.name}.* belongs to another user \(number {strange}; this process is {os.geteuid()}'s"
    )


def test_a_file_of_another_user_is_not_used(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.put("key", "text")
    monkeypatch.setattr("codegen.system.cache._trusted", lambda found: False)
    assert cache.get("key") is None


def test_a_file_that_others_can_write_is_not_used(folder: Path) -> None:
    cache.put("key", "text")
    (folder / "kept" / cache.digest("key")).chmod(0o620)
    assert cache.get("key") is None
    cache.put("key", "another")
    assert cache.get("key") == "another"
    assert stat.S_IMODE((folder / "kept" / cache.digest("key")).stat().st_mode) == 0o600


def test_the_directory_above(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who can write in the directory above could put another in its place; not where it is sticky, as /tmp is."""
    above = tmp_path / "above"
    above.mkdir()
    monkeypatch.setenv("POLY_CACHE_DIR", str(above / "cache"))
    above.chmod(0o1777)
    check()
    above.chmod(0o777)
    refused(rf"everyone can replace what lies in {above}, .*Run `chmod o-w {above}`")


def test_behind_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What counts is where a link leads, and who can change it."""
    above = tmp_path / "above"
    (tmp_path / "real").mkdir(mode=0o700)
    above.mkdir(mode=0o700)
    (above / "link").symlink_to(tmp_path / "real")
    monkeypatch.setenv("POLY_CACHE_DIR", str(above / "link"))
    check()
    (tmp_path / "real").chmod(0o777)
    refused("others can write to")
    (tmp_path / "real").chmod(0o700)
    above.chmod(0o777)
    refused("everyone can replace")


def test_new_directories_are_private_whatever_the_mask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLY_CACHE_DIR", str(tmp_path / "some" / "way" / "down"))
    before = os.umask(0)
    try:
        check()
    finally:
        os.umask(before)
    for path in (tmp_path / "some").rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path
    assert (tmp_path / "some").stat().st_mode & 0o077 == 0
