"""`dir` shows what is public: names that users may rely on, beside Python's own."""

import importlib
from types import ModuleType

import pytest

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("about this project")


def shown(x):
    return {name for name in dir(x) if not name.startswith("__")}


def test_tapegrad():
    assert shown(tg) == set(tg.__all__)
    assert "__version__" in dir(tg)


NAMESPACES = (
    "array_api", "autograd", "autograd.forward_ad", "autograd.functional", "autograd.graph",
    "compat", "cuda", "distributed", "fft", "func", "linalg", "nn", "nn.functional", "nn.utils",
    "optim", "optimize", "scipy", "show", "special",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMESPACES)
def test_namespaces(name):
    module = importlib.import_module(f"tapegrad.{name}")
    assert shown(module) == {n for n in module.__all__ if not n.startswith("__")}
    assert all(hasattr(module, n) for n in dir(module))


def test_every_namespace_is_looked_at():
    modules = {name for name in tg.__all__ if isinstance(getattr(tg, name), ModuleType)}
    assert modules <= set(NAMESPACES)


def test_tensors():
    x = tg.ones(2, requires_grad=True)
    names = shown(x * x)
    assert names >= {"shape", "grad_fn", "position", "tape", "backward", "exp", "exp_", "T"}
    assert not [name for name in names if name.startswith("_")]
    assert "extra" not in names


def test_tapes_and_records():
    tape = tg.exp(tg.ones(2, requires_grad=True)).tape.whole
    assert shown(tape) == {
        "all", "index", "inputs", "keep", "leaves", "reclaim", "record", "words",
    }  # fmt: skip
    assert shown(tape[-1]) == {"position", "op", "inputs", "shape", "state"}


def test_jitted_functions():
    f = tg.jit(lambda x: x)
    assert shown(f) == {"cache_info", "cfunc", "clear_cache", "lower", "njit"}
    assert {"__call__", "__wrapped__", "__doc__"} <= set(dir(f))


def test_what_dir_shows_is_there():
    x = tg.exp(tg.ones(2, requires_grad=True))
    for thing in (tg, x.tape, x.tape[-1]):
        assert all(hasattr(thing, name) for name in dir(thing))
    assert all(hasattr(type(tg.jit(abs)), name) for name in shown(tg.jit(abs)))
