"""Nests written with vectors compute what LLVM makes of the same nests written as loops."""

import ctypes

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.compiler.codegen.loop_order import Segment, loop_order_of, segments
from tapegrad.compiler.codegen.nest_function import vectorised, written
from tapegrad.compiler.codegen.vector_module import ATTRIBUTES, VectorModule
from tapegrad.compiler.ir.buffers import SCRATCH, Buffer, Place, c_strides
from tapegrad.compiler.ir.loop_nest import MAX, MIN, PROD, SET, SUM, Nest, Store, Term, collapsed
from tapegrad.compiler.llvm.elementary import definitions
from tapegrad.kernels import build

pytestmark = pytest.mark.tapegrad_only("about compiled programs")

DOUBLE, SINGLE = np.dtype(np.float64), np.dtype(np.float32)


def place(shape, dtype=DOUBLE, over=None, order=None):
    """A window over the domain `shape` of an array that has the dimensions `over`."""
    over = range(len(shape)) if over is None else over
    order = list(over) if order is None else order
    steps = dict(zip(order, c_strides(tuple(shape[d] for d in order)), strict=True))
    size = int(np.prod([shape[d] for d in order], dtype=int))
    strides = tuple(steps.get(d, 0) for d in range(len(shape)))
    return Place(Buffer(SCRATCH, 0, dtype, size), 0, tuple(shape), strides)


def run(nest, vectors, part=None):
    """What the stores of a nest hold afterwards, from loads of known numbers."""
    given = ["i64 0", f"i64 {part}"] if part else []
    names = [f"%a{k}" for k in range(len(nest.loads) + len(nest.stores))]
    if vectors:
        found = vectorised(nest, bool(part))
        assert found is not None
        ready = VectorModule()
        text = ready.add("nest", found, found.text)
        other, used = ready.module(), ""
    else:
        plain = written(nest, bool(part))
        text, other, used = plain.text.replace("{name}", "nest"), "", definitions(plain.used)
    lines = [ATTRIBUTES, text, used, f"define i64 @{build.SYMBOL}(ptr %table) {{"]
    for k, name in enumerate(names):
        lines.append(f"%p{k} = getelementptr ptr, ptr %table, i64 {k}")
        lines.append(f"{name} = load ptr, ptr %p{k}")
    passed = ", ".join([*[f"ptr {name}" for name in names], *given])
    lines += [f"call void @nest({passed})", "ret i64 0", "}"]
    engine = build.assembled("\n".join(lines), 2, other)
    rng = np.random.default_rng(5)
    buffers = []
    for window in [*nest.loads, *[s.place for s in nest.stores]]:
        values = rng.uniform(-2.0, 2.0, window.buffer.size)
        values[rng.uniform(size=values.size) < 0.2] = 0.0
        buffers.append((values > 0 if window.buffer.dtype == bool else values * 1.0).astype(
            window.buffer.dtype))  # fmt: skip
    table = (ctypes.c_void_p * len(buffers))(*[b.ctypes.data for b in buffers])
    address = engine[0].get_function_address(build.SYMBOL)
    ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(address)(ctypes.addressof(table))
    return buffers[len(nest.loads) :]


def agree(nest, part=None):
    for store, a, b in zip(nest.stores, run(nest, True, part), run(nest, False, part), strict=True):
        if store.mode in (SUM, PROD) and a.dtype.kind == "f":
            single = a.dtype == np.float32
            np.testing.assert_allclose(
                a, b, rtol=1e-4 if single else 1e-11, atol=1e-4 if single else 1e-11
            )
        else:
            np.testing.assert_array_equal(a, b)


def product(shape, windows, result, mode=SUM, dtype=DOUBLE, name="mul", also=False):
    """A nest that adds up products, and maybe keeps them too."""
    loads = tuple(place(shape, dtype, over) for over in windows)
    term = Term(name, tuple(~k for k in range(len(loads))), dtype)
    stores = [Store(0, place(shape, dtype, result), mode)]
    stores += [Store(0, place(shape, dtype), SET)] if also else []
    return Nest(shape, loads, (term,), tuple(stores))


SUMS = [
    ((7,), [(0,), (0,)], ()),
    ((1000,), [(0,), (0,)], ()),
    ((40, 10), [(0, 1), (1,)], (0,)),
    ((40, 10), [(0, 1), (0,)], (1,)),
    ((3, 250), [(0, 1), (0,)], (1,)),
    ((300, 250), [(0, 1), (0,)], (1,)),
    ((33, 64), [(0, 1), (0, 1)], (0,)),
    ((9, 20, 30), [(0, 2), (2, 1)], (0, 1)),
    ((9, 20, 30), [(0, 1), (1, 2)], (0, 2)),
    ((4, 900, 11), [(1, 0), (1, 2)], (0, 2)),
    ((5, 6, 13), [(0, 1, 2), (1,)], (0,)),
    ((5, 6, 13), [(0, 1, 2), (1,)], (1,)),
    ((5, 6, 13), [(0, 1, 2), (1,)], ()),
    ((2, 3), [(0, 1), (1,)], (1,)),
]


@pytest.mark.parametrize("also", [False, True])
@pytest.mark.parametrize("mode", [SUM, PROD, MAX, MIN])
@pytest.mark.parametrize(("shape", "windows", "result"), SUMS)
def test_reductions(shape, windows, result, mode, also):
    nest = product(shape, windows, result, mode, also=also)
    assert also or loop_order_of(collapsed(nest), False) is not None
    if loop_order_of(collapsed(nest), False) is not None:
        agree(nest)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.int32])
@pytest.mark.parametrize("mode", [SUM, MAX])
@pytest.mark.parametrize(("shape", "windows", "result"), SUMS[::3])
def test_reductions_of_other_types(shape, windows, result, mode, dtype):
    agree(product(shape, windows, result, mode, np.dtype(dtype)))


@pytest.mark.parametrize(("shape", "windows", "result"), SUMS[2:])
def test_parts_of_the_outermost_loop(shape, windows, result):
    nest = product(shape, windows, result)
    if loop_order_of(collapsed(nest), True) is not None:
        agree(nest, part=shape[0])


@pytest.mark.parametrize("extent", [2, 3, 5, 8, 9, 15, 31, 63, 64, 100, 257, 1000])
@pytest.mark.parametrize("name", ["exp", "tanh", "div", "sin", "sqrt", "sign", "neg"])
def test_elementwise(name, extent):
    shape = (3, extent)
    windows = [place(shape), place(shape, over=(1,))][: 2 if name == "div" else 1]
    windows[0] = windows[0]._replace(
        strides=(extent + 5, 1), buffer=Buffer(SCRATCH, 0, DOUBLE, 4 * extent + 20)
    )
    term = Term(name, tuple(~k for k in range(len(windows))), DOUBLE)
    agree(Nest(shape, tuple(windows), (term,), (Store(0, place(shape), SET),)))


def test_truth_values_and_several_types():
    shape = (6, 21)
    loads = (place(shape, np.dtype(bool)), place(shape), place(shape, SINGLE, (1,)))
    terms = (
        Term("to", (~2,), DOUBLE), Term("lt", (~1, 0), np.dtype(bool)),
        Term("both", (~0, 1), np.dtype(bool)), Term("where", (2, ~1, 0), DOUBLE),
        Term("constant", (), DOUBLE, 2.5), Term("mul", (3, 4), DOUBLE), Term("to", (5,), SINGLE),
    )  # fmt: skip
    stores = (Store(2, place(shape, np.dtype(bool)), SET), Store(6, place(shape, SINGLE), SET),
              Store(4, place(shape), SET))  # fmt: skip
    agree(Nest(shape, loads, terms, stores))


def test_what_is_left_is_one_masked_step_or_several_that_fit():
    assert segments(64, 8, exact=False) == [Segment(0, 64, 8)]
    assert segments(10, 16, exact=False) == [Segment(0, 10, 16)]
    assert segments(11, 8, exact=False) == [Segment(0, 8, 8), Segment(8, 11, 4)]
    assert segments(11, 8, exact=True) == [
        Segment(0, 8, 8), Segment(8, 10, 2), Segment(10, 11, 1)
    ]  # fmt: skip


def test_loops_are_put_in_order():
    def order(*args):
        return loop_order_of(collapsed(product(*args)), False).order

    assert order((300, 40, 100), [(0, 1), (1, 2)], (0, 2)) == (0, 2, 1)  # sums in registers
    assert order((10, 3000, 250), [(0, 1), (1, 2)], (0, 2)) == (1, 0, 2)  # read once
    assert order((300, 40, 500), [(0, 2), (1, 2)], (0, 1)) == (0, 1, 2)
    assert order((300, 40, 50), [(0, 2), (1, 2)], (0, 1)) == (2, 0, 1)  # no loop at all


def test_what_llvm_does_better_is_left_to_it():
    strided = place((5000, 2), order=(1, 0))
    term = Term("exp", (~0,), DOUBLE)
    nest = Nest((5000, 2), (strided,), (term,), (Store(0, place((5000, 2)), SET),))
    assert vectorised(nest, False) is None
    window = place((64,))
    scan = Nest((64,), (window,), (term,), (Store(0, window._replace(offset=1), SET),))
    assert vectorised(scan, False) is None


def test_arguments_that_a_short_form_does_not_serve():
    x = np.linspace(-3.0, 3.0, 45)
    x[[0, 7, 44]] = 1e300, -4e18, np.inf
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(
            tg.jit(lambda x: np.sin(x) + 1.0)(x), np.sin(x) + 1.0, rtol=1e-14
        )


def test_reductions_keep_nan():
    x = np.arange(60.0).reshape(5, 12)
    x[1, 9] = x[4, 0] = np.nan
    f = tg.jit(lambda x: (np.max(x, axis=1), np.min(x, axis=0), np.max(x)))
    for found, expected in zip(f(x), (x.max(1), x.min(0), x.max()), strict=True):
        np.testing.assert_array_equal(found, expected)
