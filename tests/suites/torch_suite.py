"""Run those of PyTorch's own tests that need public autograd on the CPU, with tapegrad as `torch`.

    make torch-suite TORCH_SOURCE=/path/to/pytorch

The tests are read from a copy of PyTorch's source (made with 2.6; a checkout or the unpacked source
package) and nothing of it is stored here. `torch_suite.txt` says what is not applicable and what
fails, each with its reason; the run fails when that list is not current, or when fewer than nine in
ten of the applicable tests of a file pass.

Every test runs in a process of its own, forked from one that has imported its file.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import fnmatch
import importlib
import importlib.util
import io
import json
import os
import random
import re
import signal
import sys
import traceback
import types
import unittest
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from lists import entries, listed

FILES = (
    "test_autograd.py",
    "autograd/test_functional.py",
    "functorch/test_eager_transforms.py",
    "functorch/test_vmap.py",
    "test_indexing.py",
    "test_view_ops.py",
)
LIST = Path(__file__).with_name("torch_suite.txt")
SECONDS = 60  # for one test
GOAL = 90  # per cent of the applicable tests of each file


class Rules(NamedTuple):
    """The list: what is outside by name, by error, and test by test."""

    names: dict[str, str]
    errors: list[tuple[re.Pattern[str], str]]
    skipped: dict[str, str]
    failing: dict[str, str]

    @classmethod
    def read(cls, path: Path = LIST) -> Rules:
        rules = cls({}, [], {}, {})
        for kind, what, reason in entries(path, ("name", "error", "skip", "fail")):
            if kind == "name":
                rules.names.update(dict.fromkeys(what.split(), reason))
            elif kind == "error":
                rules.errors.append((re.compile(what), reason))
            else:
                (rules.skipped if kind == "skip" else rules.failing)[what] = reason
        return rules


def load(source: Path, file: str, rules: Rules) -> list[unittest.TestCase]:
    """Import a test file with tapegrad in the place of torch."""
    from suites import torch_face, torch_testing

    path = source / "test" / file
    torch_face.install(rules.names)
    sys.path.insert(0, str(path.parent))
    folder = sys.modules["autograd"] = types.ModuleType("autograd")  # of the tests
    folder.__path__ = [str(source / "test" / "autograd")]
    import tapegrad

    tapegrad.set_default_dtype(tapegrad.float32)
    if path.parent.name == "functorch":  # their operators' database is empty here
        shared = importlib.import_module("common_utils")
        shared.skipOps = shared.opsToleranceOverride = lambda *args: lambda test: test  # type: ignore[attr-defined]
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    torch_face.Outside.loading = False
    found = []
    for thing in vars(module).values():
        if not (isinstance(thing, type) and issubclass(thing, torch_testing.TestCase)):
            continue
        if thing.__module__ != module.__name__:
            continue
        for name in dir(thing):
            if name.startswith("test") and callable(getattr(thing, name)):
                found.append(thing(name))
    return found


def outcome(test: unittest.TestCase, rules: Rules) -> tuple[str, str]:
    """How one test ends: pass, skip or fail, and why."""
    from suites.torch_face import NotApplicable

    result = unittest.TestResult()
    caught: list[BaseException] = []

    def keep(case: Any, error: Any) -> None:
        caught.append(error[1])

    result.addError = result.addFailure = keep  # type: ignore[method-assign]
    result.addSubTest = lambda case, sub, error: keep(case, error) if error else None  # type: ignore[method-assign]
    random.seed(0)
    import numpy as np

    np.random.seed(0)
    import tapegrad

    tapegrad.manual_seed(0)
    output = io.StringIO()
    with (
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(output),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("default")
        # As after the import, which comes first for a user: log(0) is -inf and no news.
        warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"tapegrad\.")
        test.run(result)
    if result.skipped:
        return "skip", result.skipped[0][1]
    if result.expectedFailures or result.unexpectedSuccesses:
        return "skip", "PyTorch itself expects it to fail"
    if not caught:
        return "pass", ""
    for error in caught:
        chain: BaseException | None = error
        seen: set[int] = set()
        while chain is not None and id(chain) not in seen:  # one may be its own cause
            seen.add(id(chain))
            if isinstance(chain, NotApplicable):
                return "skip", str(chain)
            for pattern, reason in rules.errors:
                if pattern.search(f"{type(chain).__name__}: {chain}"):
                    return "skip", reason
            chain = chain.__cause__ or chain.__context__
    error = caught[0]
    frames = traceback.extract_tb(error.__traceback__)
    where = next((f for f in reversed(frames) if "/test/" in f.filename), frames[-1])
    text = " ".join(str(error).split())[:300]
    return "fail", f"{type(error).__name__}: {text} [{Path(where.filename).name}:{where.lineno}]"


def isolated(test: unittest.TestCase, rules: Rules) -> tuple[str, str]:
    """The outcome of one test, found in a process of its own."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        signal.alarm(SECONDS)
        answer = outcome(test, rules)
        os.write(writer, json.dumps(answer).encode()[:60000])
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    if said:
        kind, why = json.loads(said)
        return kind, why
    number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    what = "took too long" if number == signal.SIGALRM else f"the process ended, signal {number}"
    return "fail", what


def run_file(
    source: Path, file: str, rules: Rules, wanted: list[str]
) -> Iterator[tuple[str, str, str]]:
    """(name, outcome, why) for each test of a file."""
    for test in load(source, file, rules):
        name = f"{Path(file).name} {type(test).__name__}.{test._testMethodName}"
        if wanted and not any(fnmatch.fnmatchcase(name, f"*{w}*") for w in wanted):
            continue
        entry = listed(name, rules.skipped)
        if entry is not None:
            yield name, "skip", rules.skipped[entry]
        else:
            yield (name, *isolated(test, rules))


def in_child(
    source: Path, file: str, rules: Rules, wanted: list[str]
) -> Iterator[tuple[str, str, str]]:
    """The results of a file, whose modules stay in a process of their own."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        with os.fdopen(writer, "w") as pipe:
            try:
                for row in run_file(source, file, rules, wanted):
                    print(json.dumps(row), file=pipe, flush=True)
            except BaseException:
                traceback.print_exc()
                pipe.flush()
                os._exit(1)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        for line in pipe:
            name, kind, why = json.loads(line)
            yield name, kind, why
    _, status = os.waitpid(child, 0)
    if status:
        raise SystemExit(f"{file} could not be run: see above")


def main() -> int:
    """Run the files, print a table, and say where the list is not current."""
    parser = argparse.ArgumentParser(prog="make torch-suite", description=__doc__)
    parser.add_argument("source", nargs="?", default=os.environ.get("TORCH_SOURCE", ""))
    parser.add_argument("--files", nargs="*", default=list(FILES))
    parser.add_argument("--only", nargs="*", default=[], help="parts of names")
    parser.add_argument("--verbose", action="store_true", help="say how every test ended")
    parser.add_argument("--json", type=Path, help="write every outcome to this file")
    given = parser.parse_args()
    source = Path(given.source) if given.source else None
    if source is None or not (source / "test" / FILES[0]).is_file():
        print(
            "torch-suite needs a copy of PyTorch's source, which has its tests (made with 2.6):\n"
            "  make torch-suite TORCH_SOURCE=/path/to/pytorch\n"
            f"got {given.source!r}, where there is no test/{FILES[0]}",
            file=sys.stderr,
        )
        return 2
    rules = Rules.read()
    table, wrong, rows, used = [], [], [], set()
    low = False
    for file in given.files:
        counts: collections.Counter[str] = collections.Counter()
        for name, kind, why in in_child(source, file, rules, given.only):
            entry = listed(name, rules.failing)
            used.update(filter(None, (entry, listed(name, rules.skipped))))
            counts[kind] += 1
            rows.append((name, kind, why))
            if kind == "fail" and entry is None:
                wrong.append(f"not listed: {name} | {why}")
            if kind != "fail" and entry is not None:
                wrong.append(f"listed as failing, ends as {kind}: {name}")
            if given.verbose:
                print(kind, name, why, flush=True)
        table.append((file, counts["pass"], counts["fail"], counts["skip"]))
    if not given.only and set(given.files) == set(FILES):
        stale = [e for e in (*rules.failing, *rules.skipped) if e not in used]
        wrong += [f"listed, and no such test: {entry}" for entry in stale]
    if given.json:
        given.json.write_text(json.dumps(rows, indent=0), encoding="utf-8")
    print(f"{'file':36}{'applicable':>11}{'pass':>7}{'fail':>7}{'%':>7}{'not applicable':>16}")
    for file, good, bad, out in table:
        share = 100 * good / max(good + bad, 1)
        print(f"{file:36}{good + bad:11}{good:7}{bad:7}{share:7.1f}{out:16}")
        if share < GOAL and not given.only:
            print(f"{'':36}below the goal of {GOAL} %")
            low = True
    print(*wrong, sep="\n")
    return 1 if wrong or low else 0


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    sys.exit(main())
