"""Machine code on disk: one file per kernel, written atomically, checked when it is read.

A file is a digest, of its own name too, followed by an object file.  A file that does not match its
digest, or is no plain file of a sensible size, is ignored and written anew.  The folder belongs to
one user (mode 0700) and is kept below a size, give or take what is written between two looks; the
files that were not used for longest go first, and files of others never.
``TAPEGRAD_CACHE_DIR`` moves it, ``TAPEGRAD_CACHE=0`` turns it off.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

FORMAT = 2  # of the files; keys depend on it, so that versions do not overwrite each other's
LIMIT = 256 << 20  # bytes
# The folder is looked through once for so many bytes that are written, by any processes: to look at
# thousands of files takes longer than to compile one.
STRIDE = 1 << 20
DIGEST = hashlib.sha256().digest_size
PART = "tapegrad-", ".part"  # the name of what is being written
_OURS = re.compile(rf"[0-9a-f]{{{2 * DIGEST}}}\.o|{PART[0]}.*\{PART[1]}")


def folder() -> Path | None:
    """Where compiled kernels are kept, or None when they are not."""
    if os.environ.get("TAPEGRAD_CACHE", "1") == "0":
        return None
    named = os.environ.get("TAPEGRAD_CACHE_DIR")
    if named:
        return Path(named)
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    found = Path(home) / "tapegrad"
    return found if found.is_absolute() and _is_ours(found) else None


def _is_ours(where: Path) -> bool:
    """Whether nobody else could have put code there: `sudo` may keep another user's home."""
    try:
        return not hasattr(os, "geteuid") or where.stat().st_uid == os.geteuid()
    except OSError:
        return True  # it will be made


def read(key: str) -> bytes | None:
    """The stored object file, or None when there is none that can be trusted."""
    where = folder()
    if where is None:
        return None
    path = where / f"{key}.o"
    try:
        # A pipe would be waited for without the flag, and an endless file fill the memory.
        with open(path, "rb", opener=_at_once) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size > LIMIT:
                return None
            content = file.read()
        os.utime(path)
    except OSError:
        return None
    code = content[DIGEST:]
    return code if _digest(key, code) == content[:DIGEST] else None


def _at_once(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _digest(key: str, code: bytes) -> bytes:
    """Of the name too: a whole file in another's place is as wrong as a broken one."""
    digest = hashlib.sha256(key.encode())
    digest.update(code)
    return digest.digest()


def write(key: str, code: bytes) -> None:
    """Store an object file; a disk that cannot be written only costs a compilation next time."""
    where = folder()
    if where is None:
        return
    try:
        where.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, temporary = tempfile.mkstemp(PART[1], PART[0], where)
        digest = _digest(key, code)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(digest)
                file.write(code)
            os.replace(temporary, where / f"{key}.o")
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
        if int.from_bytes(digest[:8]) % STRIDE < len(code):
            _trim(where)
    except OSError:
        return


def _trim(where: Path) -> None:
    found = []
    with os.scandir(where) as entries:
        for entry in entries:
            try:
                if _OURS.fullmatch(entry.name):
                    found.append((entry.stat(), entry.path))
            except FileNotFoundError:  # another process was quicker
                continue
    excess = sum(status.st_size for status, _ in found) - LIMIT
    for status, path in sorted(found, key=lambda pair: pair[0].st_mtime):
        if excess <= 0:
            return
        os.unlink(path)
        excess -= status.st_size
