"""Faults of the folder that keeps compiled code: results stay right, and nothing broken is run.

A small cache is filled once; each case breaks a copy of it.  A child runs a program over it and
says which files it has loaded: never one that is not, byte for byte, what was written.
"""

import errno
import hashlib
import itertools
import os
import shutil
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from tapegrad.kernels import disk_cache

pytestmark = pytest.mark.tapegrad_only("about the cache of compiled code")

CHILD = """
import sys
import numpy as np, tapegrad as tg
from tapegrad.kernels import disk_cache as cache
read, write, found, written = cache.read, cache.write, [], []
cache.read = lambda key: (lambda code: (code is not None and found.append(key), code)[1])(read(key))
cache.write = lambda key, code: (written.append(key), write(key, code))
x = np.linspace(0.1, 1.0, 5)
wanted = np.cos(x) * x + np.sin(x)
f = tg.jit(tg.value_and_grad(lambda x: np.sum(np.sin(x) * x)))
for _ in range(2):
    value, gradient = f(x)
    assert np.isclose(value, np.sum(np.sin(x) * x)) and np.allclose(gradient, wanted), gradient
print(len(found), len(written))
"""


def child(folder, *options, code=CHILD, **more):
    """What a process over a folder says: how many files it took, how many it wrote."""
    environment = {**os.environ, "TAPEGRAD_CACHE_DIR": str(folder), "TAPEGRAD_CACHE": "1", **more}
    words = [sys.executable, *options, "-c", code]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])
    return tuple(map(int, done.stdout.split()))


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A folder that one process has filled."""
    folder = tmp_path_factory.mktemp("faults") / "kept"
    taken, written = child(folder)
    assert (taken, written > 2) == (0, True)
    return folder


@pytest.fixture
def broken(filled, tmp_path, monkeypatch):
    """A copy of it to break, which this process reads too."""
    folder = tmp_path / "kept"
    shutil.copytree(filled, folder)
    monkeypatch.setenv("TAPEGRAD_CACHE_DIR", str(folder))
    monkeypatch.setenv("TAPEGRAD_CACHE", "1")
    return folder


def files(folder):
    return sorted(folder.glob("*.o"), key=lambda path: path.stat().st_size)


def test_no_flipped_bit_is_trusted(broken):
    """A bit of each of many bytes of each file, those of the digest and the ends among them."""
    draw = np.random.default_rng(1)
    tried = 0
    for path in files(broken):
        whole = path.read_bytes()
        assert disk_cache.read(path.stem) == whole[disk_cache.DIGEST :]
        places = draw.integers(0, len(whole), 60).tolist()
        for place in {*range(0, disk_cache.DIGEST + 2, 3), len(whole) - 1, *places}:
            flipped = bytearray(whole)
            flipped[place] ^= 1 << int(draw.integers(8))
            path.write_bytes(flipped)
            assert disk_cache.read(path.stem) is None, (path.name, place)
            tried += 1
        path.write_bytes(whole)
    assert tried > 200


DAMAGE = {
    "a flipped bit": lambda whole: whole[:-9] + bytes([whole[-9] ^ 4]) + whole[-8:],
    "a flipped bit of the digest": lambda whole: bytes([whole[0] ^ 1]) + whole[1:],
    "nothing": lambda whole: b"",
    "a half": lambda whole: whole[: len(whole) // 2],
    "more": lambda whole: whole + b"\0",
    "zeros": lambda whole: bytes(len(whole)),
    "noise": lambda whole: np.random.default_rng(0).bytes(len(whole)),
    "no digest": lambda whole: whole[disk_cache.DIGEST :],
    "a digest of the code alone": lambda whole: (
        hashlib.sha256(whole[disk_cache.DIGEST :]).digest() + whole[disk_cache.DIGEST :]
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_what_is_damaged_is_not_read(broken, damage):
    for path in files(broken):
        path.write_bytes(DAMAGE[damage](path.read_bytes()))
        assert disk_cache.read(path.stem) is None


def test_what_is_damaged_is_written_anew(broken, filled):
    for path, damage in zip(files(broken), itertools.cycle(DAMAGE.values())):
        path.write_bytes(damage(path.read_bytes()))
    taken, written = child(broken)
    assert (taken, written) == (0, len(files(filled)))
    assert child(broken) == (written, 0)


def test_code_of_another_name_is_not_trusted(broken, filled):
    """A whole file in another's place, as a repaired file system or a wrong copy leaves it."""
    small, *_, large = files(filled)
    shutil.copy(large, broken / small.name)
    shutil.copy(small, broken / large.name)
    taken, written = child(broken)
    assert (taken, written) == (len(files(filled)) - 2, 2)


def make_folder(path):
    path.unlink()
    path.mkdir()


def make_loop(path):
    path.unlink()
    path.symlink_to(path)


def make_pipe(path):
    path.unlink()
    os.mkfifo(path)


def make_endless(path):
    path.unlink()
    path.symlink_to("/dev/zero")


def make_huge(path):
    with path.open("r+b") as file:
        file.truncate(1 << 42)  # with holes: it takes no room


def make_unreadable(path):
    path.chmod(0)


THINGS = [make_folder, make_loop, make_pipe, make_endless, make_huge, make_unreadable]


@pytest.mark.parametrize("make", THINGS, ids=lambda make: make.__name__)
def test_what_is_no_file_of_ours_is_passed_by(broken, make):
    path = files(broken)[0]
    code = path.read_bytes()[disk_cache.DIGEST :]
    try:
        make(path)
    except OSError as problem:
        pytest.skip(f"this file system has no such thing: {problem}")
    found = []
    reader = threading.Thread(target=lambda: found.append(disk_cache.read(path.stem)), daemon=True)
    reader.start()
    reader.join(20)
    assert found == [None] or (make is make_unreadable and os.geteuid() == 0)
    disk_cache.write(path.stem, code)
    assert disk_cache.read(path.stem) == code or make is make_folder


def test_a_link_to_the_folder_and_to_files(broken, tmp_path):
    (tmp_path / "link").symlink_to(broken)
    path = files(broken)[0]
    path.rename(tmp_path / "elsewhere.o")
    path.symlink_to(tmp_path / "elsewhere.o")
    taken, written = child(tmp_path / "link")
    assert written == 0
    assert taken == len(files(broken))


def test_a_folder_that_may_not_be_written(broken):
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    path = files(broken)[0]
    path.unlink()
    broken.chmod(0o500)
    try:
        assert child(broken)[1] == 1
    finally:
        broken.chmod(0o700)
    assert not path.exists()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EDQUOT, errno.EIO])
@pytest.mark.parametrize("where", ["mkdir", "mkstemp", "write", "replace"])
def test_a_disk_that_fails_costs_only_time(broken, monkeypatch, where, number):
    def fails(*args, **named):
        raise OSError(number, os.strerror(number))

    key = "0" * 64
    if where == "mkdir":
        monkeypatch.setattr(disk_cache.Path, "mkdir", fails)
    elif where == "mkstemp":
        monkeypatch.setattr(disk_cache.tempfile, "mkstemp", fails)
    elif where == "replace":
        monkeypatch.setattr(disk_cache.os, "replace", fails)
    else:
        right = os.fdopen

        def opened(*args):
            file = right(*args)
            monkeypatch.setattr(disk_cache.os, "fdopen", right)
            return Failing(file, fails)

        monkeypatch.setattr(disk_cache.os, "fdopen", opened)
    before = sorted(broken.iterdir())
    disk_cache.write(key, b"code")
    monkeypatch.undo()
    assert sorted(broken.iterdir()) == before


class Failing:
    """A file whose disk is full."""

    def __init__(self, file, fails):
        self.file, self.write = file, fails

    def __enter__(self):
        return self

    def __exit__(self, *problem):
        self.file.close()


LIMITED = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"


def test_a_limit_on_the_size_of_files(tmp_path):
    """As a full disk: the files that cannot be written are not there afterwards."""
    child(tmp_path / "kept", code=LIMITED + CHILD)
    assert all(path.stat().st_size <= 4096 for path in (tmp_path / "kept").iterdir())
    assert not list((tmp_path / "kept").glob("*.part"))
    child(tmp_path / "kept")


GONE = """
import shutil, os
folder = os.environ["TAPEGRAD_CACHE_DIR"]
import tapegrad as tg, numpy as np
tg.jit(lambda x: x * 2.0)(np.ones(3))
shutil.rmtree(folder)
"""


def test_a_folder_that_is_removed_meanwhile(tmp_path):
    assert child(tmp_path / "kept", code=GONE + CHILD)[1] > 0
    assert files(tmp_path / "kept")


KILLED = """
import os, sys, threading, numpy as np
from tapegrad.kernels import disk_cache as cache
print("ready", flush=True)
draw = np.random.default_rng()
while True:
    for k in range(8):
        cache.write(f"{k:064x}", draw.bytes(40_000))
"""


def test_a_process_that_is_killed_while_it_writes(tmp_path, monkeypatch):
    monkeypatch.setenv("TAPEGRAD_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TAPEGRAD_CACHE", "1")
    for k in range(6):
        process = subprocess.Popen([sys.executable, "-c", KILLED], stdout=subprocess.PIPE)
        process.stdout.readline()
        time.sleep(0.01 + 0.007 * k)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        for path in tmp_path.glob("*.o"):
            assert len(disk_cache.read(path.stem)) == 40_000


def test_threads_and_processes_that_write_one_file(tmp_path, monkeypatch):
    monkeypatch.setenv("TAPEGRAD_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TAPEGRAD_CACHE", "1")
    seen, ended = [], threading.Event()

    def write(k):
        while not ended.is_set():
            disk_cache.write("0" * 64, bytes([k]) * 50_000)

    def look():
        while not ended.is_set():
            seen.append(disk_cache.read("0" * 64))

    threads = [threading.Thread(target=write, args=(k,)) for k in range(3)]
    threads.append(threading.Thread(target=look))
    for thread in threads:
        thread.start()
    time.sleep(0.5)
    ended.set()
    for thread in threads:
        thread.join()
    whole = {bytes([k]) * 50_000 for k in range(3)}
    assert set(seen) - {None} <= whole
    assert set(seen) - {None}
