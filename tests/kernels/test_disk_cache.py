"""The cache on disk: another process finds what was compiled, and trusts nothing that is broken."""

import hashlib
import os
import subprocess
import sys

import pytest

from tapegrad.kernels import disk_cache

pytestmark = pytest.mark.tapegrad_only("about this project")

PROGRAM = """
import numpy as np, tapegrad as tg
from tapegrad.kernels import build
import tapegrad.kernels.disk_cache as cache
found, written = [], []
read, write = cache.read, cache.write
def counted(key):
    code = read(key)
    found.append(code is not None)
    return code
cache.read = counted
cache.write = lambda key, code: (written.append(key), write(key, code))
f = tg.jit(tg.value_and_grad(lambda x: np.sum(np.sin(x) * x)))
for _ in range(2):
    value, gradient = f(np.arange(5.0))
x = np.arange(5.0)
assert abs(value - np.sum(np.sin(x) * x)) < 1e-12
assert abs(gradient - np.sin(x) - x * np.cos(x)).max() < 1e-12
print(len(found), sum(found), len(written))
"""


def run(folder, **more):
    """How many compiled pieces a process asked for, found, and wrote."""
    environment = {**os.environ, "TAPEGRAD_CACHE_DIR": str(folder), **more}
    environment.pop("TAPEGRAD_CACHE", None) if "TAPEGRAD_CACHE" not in more else None
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
    )
    return tuple(map(int, done.stdout.split()))


def objects(folder):
    return sorted(folder.glob("*.o"))


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A folder that one process has filled."""
    folder = tmp_path_factory.mktemp("cache") / "kept"
    asked, found, written = run(folder)
    assert (asked > 0, found, written) == (True, 0, asked)
    return folder


def test_a_second_process_finds_everything(filled):
    asked, found, written = run(filled)
    assert asked == found > 0
    assert written == 0


def test_only_the_user_may_read_it(filled):
    assert filled.stat().st_mode & 0o777 == 0o700
    for path in objects(filled):
        assert path.stat().st_mode & 0o077 == 0


def test_what_is_broken_is_compiled_anew(filled, monkeypatch):
    monkeypatch.setenv("TAPEGRAD_CACHE_DIR", str(filled))
    monkeypatch.setenv("TAPEGRAD_CACHE", "1")
    path = max(objects(filled), key=lambda p: p.stat().st_size)
    whole = path.read_bytes()
    turned = whole[:-1] + bytes([whole[-1] ^ 1])
    for content in (b"", b"short", b"x" * 5000, turned, whole[: len(whole) // 2]):
        path.write_bytes(content)
        assert disk_cache.read(path.stem) is None
    asked, found, written = run(filled)
    assert (found, written) == (asked - 1, 1)
    assert path.read_bytes()[:64] == whole[:64]


def test_it_can_be_turned_off(tmp_path):
    asked, found, _ = run(tmp_path / "none", TAPEGRAD_CACHE="0")
    assert asked > 0
    assert found == 0
    assert not (tmp_path / "none").exists()


def test_a_folder_that_cannot_be_written_costs_only_time(tmp_path):
    (tmp_path / "file").write_text("")
    asked, found, _ = run(tmp_path / "file" / "below")
    assert asked > 0
    assert found == 0


def test_its_size_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setenv("TAPEGRAD_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TAPEGRAD_CACHE", "1")
    monkeypatch.setattr(disk_cache, "LIMIT", 10_000)
    monkeypatch.setattr(disk_cache, "STRIDE", 1)
    keys = [key(k) for k in range(20)]
    for k in range(20):
        disk_cache.write(keys[k], bytes(1000))
        os.utime(tmp_path / f"{keys[k]}.o", (k, k))
        if k >= 3:
            assert disk_cache.read(keys[0]) is not None  # used now and then: the others go first
            os.utime(tmp_path / f"{keys[0]}.o", (k + 0.5, k + 0.5))
    assert sum(p.stat().st_size for p in objects(tmp_path)) <= 10_000
    assert disk_cache.read(keys[19]) == bytes(1000)
    assert disk_cache.read(keys[1]) is None
    assert not [p for p in tmp_path.iterdir() if p.suffix != ".o"]


def key(k):
    return hashlib.sha256(b"%d" % k).hexdigest()


def test_files_of_others_stay(tmp_path, monkeypatch):
    """A folder that someone names may hold other things, older and larger than a cache."""
    monkeypatch.setenv("TAPEGRAD_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TAPEGRAD_CACHE", "1")
    monkeypatch.setattr(disk_cache, "LIMIT", 3_000)
    monkeypatch.setattr(disk_cache, "STRIDE", 1)
    others = ("thesis.txt", "main.o", "film.part", "a" * 63 + ".o")
    for name in others:
        (tmp_path / name).write_bytes(bytes(5000))
        os.utime(tmp_path / name, (1, 1))
    (tmp_path / "below").mkdir()
    (tmp_path / "tapegrad-left.part").write_bytes(bytes(5000))  # of a process that was ended
    os.utime(tmp_path / "tapegrad-left.part", (2, 2))
    for k in range(6):
        disk_cache.write(key(k), bytes(1000))
    left = {path.name for path in tmp_path.iterdir()}
    assert left > {*others, "below"}
    assert "tapegrad-left.part" not in left
    assert len(left) == 5 + 2


def test_the_folder_is_looked_through_now_and_then(tmp_path, monkeypatch):
    monkeypatch.setenv("TAPEGRAD_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TAPEGRAD_CACHE", "1")
    looks = []
    monkeypatch.setattr(disk_cache, "_trim", looks.append)
    monkeypatch.setattr(disk_cache, "STRIDE", 10_000)
    for k in range(200):
        disk_cache.write(key(k), bytes(990) + b"%10d" % k)
    assert 5 <= len(looks) <= 40  # 200,000 bytes
    disk_cache.write(key(200), bytes(10_000))
    assert len(looks) > 5


def test_a_folder_of_another_user_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.delenv("TAPEGRAD_CACHE_DIR", raising=False)
    monkeypatch.setenv("TAPEGRAD_CACHE", "1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    disk_cache.write(key(0), b"code")
    assert disk_cache.read(key(0)) == b"code"
    assert (tmp_path / "tapegrad").stat().st_mode & 0o777 == 0o700
    monkeypatch.setattr(os, "geteuid", lambda: (tmp_path / "tapegrad").stat().st_uid + 1)
    assert disk_cache.read(key(0)) is None
    disk_cache.write(key(1), b"code")
    assert len(objects(tmp_path / "tapegrad")) == 1


def test_a_user_without_a_home_has_no_cache(tmp_path, monkeypatch):
    """A folder below the current one may be anybody's."""
    monkeypatch.delenv("TAPEGRAD_CACHE_DIR", raising=False)
    monkeypatch.setenv("TAPEGRAD_CACHE", "1")
    monkeypatch.chdir(tmp_path)
    for home in ("~", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", home)
        assert disk_cache.folder() is None
    disk_cache.write(key(0), b"code")
    assert list(tmp_path.iterdir()) == []
