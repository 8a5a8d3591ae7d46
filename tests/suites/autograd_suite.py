"""Run HIPS autograd's own tests and examples with `tapegrad.compat.autograd` as `autograd`.

    make autograd-suite

They are taken from the source package, which pip downloads, and nothing of them is stored here.
`autograd_suite.txt` says what is outside and what fails, each with its reason; the run fails when
that list is not current. Complex numbers are left out of the tests of reductions, since `np.max` of
them has no derivative here.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib
import io
import os
import pkgutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import types
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
import scipy.optimize
from lists import entries, listed

VERSION = "1.9.1"
LIST = Path(__file__).with_suffix(".txt")
HOME = "tapegrad.compat.autograd"
SECONDS = 300  # for one example
STEPS = 3  # of each of its loops


def downloaded(version: str, folder: Path) -> Path:
    """The unpacked source package."""
    source = folder / f"autograd-{version}"
    if not source.exists():
        folder.mkdir(parents=True, exist_ok=True)
        options = ("--no-deps", "--no-binary", "autograd", "--quiet", "--dest", str(folder))
        pip = (sys.executable, "-m", "pip", "download")
        subprocess.run([*pip, *options, f"autograd=={version}"], check=True)
        with tarfile.open(folder / f"autograd-{version}.tar.gz") as packed:
            packed.extractall(folder, filter="data")
    return source


# -- tapegrad under autograd's name ------------------------------------------------------------


class Missing:
    """What autograd has and we do not: it may be taken and decorate, and fails when it is used."""

    loading = True  # while test files are imported

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if Missing.loading:
            return self
        raise AttributeError(f"`{self.name}` is missing")

    def __mro_entries__(self, bases: Any) -> tuple[type, ...]:
        return ()


class Stub(types.ModuleType):
    """A module that is not there: whatever is taken from it is missing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Missing(f"{self.__name__}.{name}")


def install(source: Path) -> None:
    """Put our modules under autograd's names, and stubs where autograd has more of them."""
    ours = importlib.import_module(HOME)
    names = [HOME, *(m.name for m in pkgutil.walk_packages(ours.__path__, HOME + "."))]
    for name in names:
        sys.modules["autograd" + name[len(HOME) :]] = importlib.import_module(name)
    for path in sorted((source / "autograd").rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if name not in sys.modules:
            sys.modules[name] = Stub(name)
    for name in list(sys.modules):
        parent, _, child = name.rpartition(".")
        if name.startswith("autograd.") and not hasattr(sys.modules[parent], child):
            setattr(sys.modules[parent], child, sys.modules[name])


def without_missing_names(path: Path) -> ast.Module:
    """A file whose imports from autograd of what is missing give stubs: only their users fail."""
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("autograd"):
            module = sys.modules.get(node.module or "") or importlib.import_module(
                node.module or ""
            )
            for alias in node.names:
                if not hasattr(module, alias.name):
                    setattr(module, alias.name, Missing(f"{module.__name__}.{alias.name}"))
    return tree


# -- tests -------------------------------------------------------------------------------------


class Plugin:
    """Notes how each test ended."""

    def __init__(self) -> None:
        self.ends: dict[str, tuple[str, str]] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave complex numbers out of reductions."""
        Missing.loading = False
        full = getattr(sys.modules.get("numpy_utils"), "stat_check", None)
        if full is None:
            return

        def real(*args: Any, **kwargs: Any) -> Any:
            return full(*args, **(kwargs | {"test_complex": False}))

        for module in {item.module for item in items if isinstance(item, pytest.Function)}:
            if getattr(module, "stat_check", None) is full:
                module.stat_check = real

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the end of a test, or of what is around it if that failed."""
        name = report.nodeid.rpartition("/")[2]
        if report.when == "call" or report.outcome != "passed":
            crash = getattr(report.longrepr, "reprcrash", None)
            why = crash.message if crash is not None else str(report.longrepr)
            outcome = "outside" if report.outcome == "skipped" else report.outcome
            self.ends[name] = outcome, "" if outcome == "passed" else why

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file that cannot be imported is one test that failed."""
        if report.failed:
            self.ends[report.nodeid.rpartition("/")[2]] = "failed", str(report.longrepr)


def run_tests(source: Path, chosen: list[str]) -> Plugin:
    """Run the test files."""
    folder = source / "tests"
    plugin = Plugin()
    sys.path.insert(0, str(folder))
    files = [folder / f"{name}.py" for name in chosen] or sorted(folder.glob("test_*.py"))
    for path in files:
        without_missing_names(path)
    options = ["-q", "-p", "no:cacheprovider", "--no-header", "--tb=no", "-W", "ignore",
               "--continue-on-collection-errors",
               "--confcutdir", str(folder), "--rootdir", str(folder), "-c", os.devnull]  # fmt: skip
    pytest.main([*options, *map(str, files)], plugins=[plugin])
    return plugin


# -- examples ----------------------------------------------------------------------------------


class Shorter(ast.NodeTransformer):
    """An example with the numbers of its iterations made small, and its main part run."""

    WORDS = ("num_iters", "num_epochs", "n_iters", "maxiter", "num_samples", "simulation_timesteps",
             "iters", "training_iters", "epochs", "niter")  # fmt: skip

    def visit_Assign(self, node: ast.Assign) -> Any:
        """`num_iters = 1000`."""
        for target in node.targets:
            if isinstance(target, ast.Name) and target.id in self.WORDS:
                node.value = ast.Constant(STEPS)
        return self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> Any:
        """`num_iters=1000`."""
        if node.arg in self.WORDS and isinstance(node.value, ast.Constant):
            node.value = ast.Constant(STEPS)
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> Any:
        """`range(1000)`."""
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "range" and len(node.args) == 1:
            only = node.args[0]
            if isinstance(only, ast.Constant) and isinstance(only.value, int) and only.value > 30:
                node.args[0] = ast.Constant(STEPS)
        return node


def digits() -> Any:
    """Images in place of those that the examples would download."""
    rng = np.random.RandomState(0)
    images, labels = rng.rand(300, 28, 28), rng.randint(10, size=300)
    return images, labels, images[:50], labels[:50]


def picture(name: str) -> Any:
    """A small image in place of one of a file: what starts is in colours, a target is larger."""
    shape = (20, 20, 4) if "init" in name else (40, 40)
    return np.random.RandomState(0).rand(*shape)


def shortened(minimize: Callable[..., Any]) -> Callable[..., Any]:
    """SciPy's minimizer, which stops after a few steps."""

    def few_steps(*args: Any, **kwargs: Any) -> Any:
        kwargs["options"] = {**kwargs.get("options", {}), "maxiter": STEPS}
        return minimize(*args, **kwargs)

    return few_steps


@contextlib.contextmanager
def no_longer_than(seconds: int) -> Iterator[None]:
    """Raise TimeoutError after some time."""

    def late(*args: Any) -> None:
        raise TimeoutError(f"longer than {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def run_example(path: Path) -> tuple[str, str]:
    """Run the code of an example, shortened, with nothing drawn and nothing downloaded."""
    fakes: dict[str, Any] = {
        name: mock.MagicMock(__name__=name)
        for name in ("matplotlib", "matplotlib.cm", "matplotlib.image", "matplotlib.pyplot",
                     "mpl_toolkits", "mpl_toolkits.mplot3d", "data_mnist")
    }  # fmt: skip
    fakes["data_mnist"].mnist = digits
    fakes["matplotlib.pyplot"].imread = fakes["matplotlib.image"].imread = picture
    fakes["matplotlib"].pyplot, fakes["matplotlib"].image = (
        fakes["matplotlib.pyplot"], fakes["matplotlib.image"],
    )  # fmt: skip
    before = Path.cwd()
    Missing.loading = False
    kept = {name: sys.modules.get(name) for name in fakes}
    sys.modules.update(fakes)
    sys.modules.pop("data", None)
    sys.path.insert(0, str(path.parent))
    tree = ast.fix_missing_locations(Shorter().visit(without_missing_names(path)))
    scope = {"__name__": "__main__", "__file__": str(path)}
    try:
        os.chdir(path.parent)
        np.random.seed(0)
        with (
            mock.patch.object(sys, "argv", [str(path)]), mock.patch("os.system"),
            mock.patch("scipy.optimize.minimize", shortened(scipy.optimize.minimize)),
            contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings(),
            no_longer_than(SECONDS),
        ):  # fmt: skip
            warnings.simplefilter("ignore")
            exec(compile(tree, str(path), "exec"), scope)
    except Exception as problem:
        return "failed", f"{type(problem).__name__}: {problem}"
    finally:
        os.chdir(before)
        sys.path.remove(str(path.parent))
        for name, module in kept.items():
            sys.modules.pop(name)
            if module is not None:
                sys.modules[name] = module
    return "passed", ""


# -- the list ----------------------------------------------------------------------------------


def read(path: Path = LIST) -> dict[str, tuple[str, str]]:
    """Of each entry `kind name | reason` the name: what it says, and why."""
    return {name: (kind, reason) for kind, name, reason in entries(path, ("outside", "fails"))}


def judged(
    ends: dict[str, tuple[str, str]], rules: dict[str, tuple[str, str]], whole: bool
) -> bool:
    """Say how many passed, and whether the list is current; `whole`: everything was run."""
    current = True
    outside = passed = failed = 0
    met = set()
    for name, (outcome, why) in sorted(ends.items()):
        entry = listed(name, rules)
        if entry is not None:
            met.add(entry)
        if outcome == "outside" or (entry is not None and rules[entry][0] == "outside"):
            outside += 1
        elif outcome == "passed":
            passed += 1
            if entry == name:
                print(f"passes and is listed: {name}")
                current = False
        else:
            failed += 1
            if entry is None:
                print(
                    f"fails and is not listed: {name}: {why.splitlines()[0][:150] if why else ''}"
                )
                current = False
    for entry in sorted(rules.keys() - met) if whole else ():
        print(f"is listed and was not met: {entry}")
        current = False
    print(f"{passed} of {passed + failed} pass; {outside} are outside")
    return current


def main() -> int:
    """Run all, or the test files and examples that are named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="test files or examples, without their ending")
    parser.add_argument("--version", default=VERSION)
    folder = Path(tempfile.gettempdir()) / "tapegrad-suites"
    parser.add_argument("--folder", type=Path, default=folder, help="where the source is kept")
    options = parser.parse_args()
    rules = read()
    source = downloaded(options.version, options.folder)
    install(source)
    tests = [name for name in options.names if name.startswith("test_")]
    ends: dict[str, tuple[str, str]] = {}
    if tests or not options.names:
        ends |= run_tests(source, tests).ends
    for path in sorted((source / "examples").rglob("*.py")):
        if path.stem.startswith(("_", "data")) or (
            options.names and path.stem not in options.names
        ):
            continue
        ends[f"examples/{path.stem}"] = run_example(path)
    return not judged(ends, rules, whole=not options.names)


if __name__ == "__main__":
    sys.exit(main())
