"""Structures that Python fills and compiled code reads may be declared in any order."""

import ast
import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_type_hints

import numpy as np
import pytest

from tapegrad.base import word_struct
from tapegrad.base.word_struct import WordStruct
from tapegrad.kernels.flags import entry_point, typed_with
from tapegrad.kernels.memory import address, i8
from tapegrad.native import abi, bindings

pytestmark = pytest.mark.tapegrad_only("about machine code")

STRUCTS = [s for s in vars(abi).values() if isinstance(s, type) and issubclass(s, WordStruct)]
SOURCES = [p for p in Path(abi.__file__).parent.glob("*.py") if p.name != "abi.py"]


class Row(WordStruct):
    WORD: int
    PAIR: Annotated[Any, 2]
    LAST: int


class Reordered(WordStruct):
    LAST: int
    PAIR: Annotated[Any, 2]
    WORD: int


class Items(NamedTuple):
    a: int
    b: int


class Exchanged(NamedTuple):
    b: int
    a: int


@pytest.mark.parametrize(("struct", "pair"), [(Row, Items), (Reordered, Exchanged)])
def test_compiled_code_finds_what_python_wrote_under_a_name(struct, pair):
    typed = typed_with(row=struct)

    @typed
    def weighed(row):
        row.WORD += 1
        return row.WORD + 10 * row.PAIR[1] + 100 * row.LAST

    def read(at, items):
        second = struct(at)[1]
        second.PAIR[0] = i8(items)[pair.b] - i8(items)[pair.a] + struct.SIZE
        return weighed(struct(at)) + weighed(second) + address(second) - at

    one = struct.words(WORD=1, PAIR=(2, 3), LAST=4)
    words = np.array([*one, *one], np.int64)
    items = np.array([getattr(pair(a=1, b=8), name) for name in pair._fields], np.int64)
    from numba import njit

    found = njit(read)(words.ctypes.data, items.ctypes.data)
    assert found == 2 * (2 + 30 + 400) + 8 * struct.SIZE
    assert words[struct.SIZE + struct.PAIR] == 7 + struct.SIZE
    assert words[struct.WORD] == 2
    assert entry_point(read, 2)


def test_every_field_is_given_and_fits():
    with pytest.raises(TypeError, match=r"Row: \['LAST'\]"):
        Row.words(WORD=1, PAIR=(2, 3))
    with pytest.raises(TypeError, match=r"Row: \['MORE'\]"):
        Row.words(WORD=1, PAIR=(2, 3), LAST=4, MORE=5)
    with pytest.raises(ValueError, match=r"Row\.PAIR takes 2 words"):
        Row.words(WORD=1, PAIR=(2, 3, 4), LAST=4)
    with pytest.raises(TypeError, match="Row does not begin with"):
        Row.writer("PAIR", "WORD")


def test_every_field_of_the_frame_is_filled(monkeypatch):
    filled = set()
    put = bindings.Bindings.put
    monkeypatch.setattr(
        bindings.Bindings, "put", lambda self, **words: (filled.update(words), put(self, **words))
    )
    bindings.Bindings()
    later = {"thread", "tape", "null"}  # by compiled code, and never
    assert set(abi.Frame.fields) - filled == later


@pytest.mark.parametrize("struct", STRUCTS, ids=lambda struct: struct.__name__)
def test_fields_are_named_where_they_are_read_or_written(struct):
    """No number stands for a field, and no field is left over."""
    used = set()
    for path in [*SOURCES, *Path(abi.__file__).parents[1].glob("*/*plans.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute):
                used.add(node.attr)
            elif isinstance(node, ast.keyword):
                used.add(node.arg)
    assert set(get_type_hints(struct)) == struct.fields.keys() <= used


REVERSED = """
import importlib.util, inspect, sys
spec = importlib.util.spec_from_file_location("tapegrad.base.word_struct", sys.argv[1])
module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
kind = type(module.WordStruct)
number = kind.__init__
def backwards(cls, name, bases, namespace):
    kinds = list(inspect.get_annotations(cls).items())
    head = [*dict(kinds)].index("count") + 1 if name == "SweepFrame" else 0  # written together
    kinds[head:] = reversed(kinds[head:])
    cls.__annotations__ = dict(kinds)
    number(cls, name, bases, namespace)
kind.__init__ = backwards

import numpy as np
import tapegrad as tg
from tapegrad.kernels.sweep.sweep_abi import SweepFrame
from tapegrad.native import abi, install
assert SweepFrame.choice < SweepFrame.seeds and abi.Operand.position == 0
assert abi.Frame.PyThreadState_Get == abi.Frame.SIZE - 1

def run():
    x = tg.tensor(np.arange(1.0, 7.0).reshape(2, 3), requires_grad=True)
    c, k = tg.tensor([1.0, 0.5, 2.0]), tg.tensor([2, 0])
    found = []
    for _ in range(12):
        y = (x * c + 1.0) @ x.t()
        z = y.clone().add_(y.detach()).mul_(2.0)
        found = [y, z, x.sum(), x.mean(), x[1], x[1, 2], *x.unbind(1), x.softmax(1), x.var(0),
                 x.cumsum(0), tg.where(c > 0.7, x, 0.5), x.index_select(1, k), x < c, x.float() * 2]
    total = sum([f.sum() for f in found if f.requires_grad and f.dtype == tg.float64])
    total.backward()
    return [f.detach().numpy() for f in found] + [x.grad.numpy(), tg.tensor(len(found)).numpy()]

expected = run()
assert install.install()
for a, b in zip(expected, run(), strict=True):
    np.testing.assert_array_equal(a, b)
print(install.installed.bindings.view_cache.count)
"""


@pytest.mark.slow
def test_the_native_path_with_all_structures_backwards(tmp_path):
    command = [sys.executable, "-c", REVERSED, word_struct.__file__]
    environment = {**os.environ, "TAPEGRAD_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout) > 0


@pytest.mark.parametrize("wanted", ["0", "1"])
def test_the_environment_switches_the_native_path_off(wanted):
    code = "from tapegrad.native import install; print(install.install() == install.possible())"
    environment = {**os.environ, "TAPEGRAD_NATIVE": wanted}
    command = [sys.executable, "-c", code + "; print(install.possible())"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", str(wanted == "1")]
