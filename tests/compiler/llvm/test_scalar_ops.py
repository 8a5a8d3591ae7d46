"""Elementwise operations as LLVM text, compiled in a loop and held to NumPy's results."""

import ctypes
import re
import subprocess
import sys

import llvmlite.binding as llvm
import mpmath as mp
import numpy as np
import pytest

from tapegrad.compiler.llvm.elementary import definitions
from tapegrad.compiler.llvm.scalar_ops import Code, Value, literal, promoted, supports
from tapegrad.compiler.llvm.ssa import Block, Operand, select
from tapegrad.kernels import build, vmath
from tapegrad.ops import special  # noqa: F401  # its rows come into the table
from tapegrad.ops.core import ELEMENTWISE
from tapegrad.ops.families import table

TYPES = {"double": "f8", "float": "f4", "i64": "i8", "i32": "i4", "i1": "?"}
OPERATIONS = [n for n, op in table.items() if op.scalar and op.kind is ELEMENTWISE]
GUARDED = [name for name, op in table.items() if op.guard]
# Not one rounding of exact arithmetic, as NumPy's: what differs by more than the last place.
INEXACT = {name for name, op in table.items() if "math." in op.scalar} - {
    "sqrt", "rsqrt", "clamp", "round", "remainder", "fmod", "floor_divide",
}  # fmt: skip
INEXACT.add("rad2deg")  # NumPy's float32 factor, 180 by the rounded pi, is not the nearest one
FLOATS = np.array(
    [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -2.5, 3.0, 1e-3, 709.0, -709.0, 1e17, -1e30]
    + [np.inf, -np.inf, np.nan, 1e-40, -1e-310, 2.0**52 + 1, 1e308]
)


class Loop:
    """An operation, or another function from a code and values to a value, over arrays."""

    def __init__(self, write, types, guarded=False):
        code = Code(guarded=guarded)
        body, values = [], []
        for i, kind in enumerate(types):
            stored = "i8" if kind == "i1" else kind
            body.append(f"%p{i} = getelementptr {stored}, ptr %in{i}, i64 %i")
            body.append(f"%l{i} = load {stored}, ptr %p{i}")
            if kind == "i1":
                body.append(f"%c{i} = trunc i8 %l{i} to i1")
            values.append(Value(f"%{'c' if kind == 'i1' else 'l'}{i}", kind))
        result = write(code, values)
        bad = "false"
        for one in code.bad:
            bad = code.emit("i1", f"or i1 {bad}, {one.name}").name
        self.type = result.type
        stored = code.cast(result, "i32") if result.type == "i1" else result
        if result.type == "i1":
            stored = code.emit("i8", f"trunc {stored} to i8")
        arguments = "".join(f", ptr noalias %in{i}" for i in range(len(types)))
        lines = [
            f'define i64 @loop(i64 %n, ptr noalias %out{arguments}) "prefer-vector-width"="512" {{',
            "entry:",
            "br label %body",
            "body:",
            "%i = phi i64 [0, %entry], [%j, %body]",
            "%was = phi i1 [false, %entry], [%is, %body]",
            *body,
            *code.lines,
            f"%is = or i1 %was, {bad}",
            f"%po = getelementptr {stored.type}, ptr %out, i64 %i",
            f"store {stored}, ptr %po",
            "%j = add nuw i64 %i, 1",
            "%more = icmp ult i64 %j, %n",
            "br i1 %more, label %body, label %exit",
            "exit:",
            "%r = zext i1 %is to i64",
            "ret i64 %r",
            "}",
        ]
        self.module = llvm.parse_assembly("\n".join(lines) + "\n" + definitions(code.used))
        self.module.verify()
        build._optimise(self.module)
        self.text = str(self.module)
        self._engine = llvm.create_mcjit_compiler(self.module, build.machine())
        self._engine.finalize_object()
        pointers = [ctypes.c_void_p] * (1 + len(types))
        shape = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, *pointers)
        self._call = shape(self._engine.get_function_address("loop"))

    def __call__(self, *arrays):
        """The results, and whether a guard found a bad argument."""
        out = np.empty(len(arrays[0]), TYPES[self.type])
        bad = self._call(len(out), out.ctypes.data, *[a.ctypes.data for a in arrays])
        return out, bool(bad)


def of_op(name, types, guarded=False):
    return Loop(lambda code, values: code.apply(name, values), types, guarded)


def grid(count, kind, values=FLOATS):
    """Every combination of some values, and random ones."""
    rng = np.random.default_rng(3)
    if kind in ("i64", "i32"):
        limits = np.iinfo(TYPES[kind])
        values = np.array([0, 1, -1, 2, -7, 12, limits.min, limits.max])
        random = rng.integers(-50, 50, (count, 200))
    elif kind == "i1":
        values, random = np.array([False, True]), rng.integers(0, 2, (count, 20))
    else:
        values = values[: len(values) if count < 3 else 9]
        random = rng.normal(0.0, 3.0, (count, 500))
    corners = [a.ravel() for a in np.meshgrid(*[values] * count)]
    with np.errstate(all="ignore"):
        arrays = zip(corners, random, strict=True)
        return [np.concatenate([c, r]).astype(TYPES[kind]) for c, r in arrays]


# SciPy's are up to 84 ulp off where x * x has many digits, and more next to 0.
EXACT = {
    "lgamma": lambda x: mp.loggamma(x) if x else mp.inf,
    "i0": lambda x: mp.besseli(0, x),
    "i1": lambda x: mp.besseli(1, x),
    "i0e": lambda x: mp.besseli(0, x) * mp.exp(-abs(x)),
    "i1e": lambda x: mp.besseli(1, x) * mp.exp(-abs(x)),
    "erfc": mp.erfc,
    "erfcx": lambda x: mp.exp(x * x) * mp.erfc(x),
    "ndtr": mp.ncdf,
    "log_ndtr": lambda x: mp.log1p(-mp.ncdf(-x)) if x > 0 else mp.log(mp.ncdf(x)),
}


def numpy_result(name, arrays):
    with np.errstate(all="ignore"):
        if name == "sinc" and arrays[0].dtype == np.float32:  # there NumPy rounds pi * x to float32
            return numpy_result(name, [arrays[0].astype(np.float64)]).astype(np.float32)
        found = np.asarray(table[name].forward(*arrays))
    if name in EXACT:
        near = np.abs(arrays[0]) < 100.0
        with mp.workdps(40):
            found[near] = [float(EXACT[name](mp.mpf(float(x)))) for x in arrays[0][near]]
    return found


def distance(got, want, scale=0.0):
    """The largest difference in units of the last place; infinite where NaNs or infinities are."""
    got, want = np.asarray(got), np.asarray(want)
    if got.dtype.kind != "f":
        return np.inf if (got != want).any() else 0.0
    with np.errstate(all="ignore"):
        same = (got == want) | (np.isnan(got) & np.isnan(want))
        off = np.abs(got - want) / np.spacing(np.maximum(np.abs(want), scale).astype(want.dtype))
    off[np.isnan(off)] = np.inf
    return float(np.max(np.where(same, 0.0, off), initial=0.0))


def arguments(name, kind):
    """Operands of an operation, where NumPy's own result is to be trusted."""
    arrays = grid(len(table[name].inputs), kind)
    if name == "where":
        arrays[0] = arrays[0] > 0
    if name == "trigamma":
        arrays = [np.abs(arrays[0][np.abs(arrays[0]) < 1e5])]
    if name == "lgamma":  # zeros below 0, where no digit is left
        arrays = [np.abs(arrays[0])]
    if name == "logaddexp":  # its sum may cancel
        arrays = [np.where(np.abs(a) > 1e16, 0, np.abs(a)) for a in arrays]
    if name in ("gelu", "gelu_tanh"):  # whose factor cancels on the left
        arrays = [np.abs(arrays[0])]
    if name == "bce_logits":  # the same of its sum
        arrays = [np.abs(arrays[0]), np.minimum(np.abs(arrays[1]), 0.5)]
    if name == "bce":  # of probabilities, and of others its terms cancel
        arrays[1] = np.clip(arrays[1], 0, 1)
    return arrays


def types_of(arrays):
    names = {np.dtype(short).char: kind for kind, short in TYPES.items()}
    return [names[a.dtype.char] for a in arrays]


@pytest.mark.parametrize("guarded", [False, True])
@pytest.mark.parametrize("kind", ["double", "float"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_floats_are_numpys(name, kind, guarded):
    if guarded and name not in GUARDED:
        return
    arrays = arguments(name, kind)
    if guarded:  # none of these is bad
        keep = np.all([(np.abs(a) > 1e-3) & (np.abs(a) < 1e9) for a in arrays], axis=0)
        arrays = [a[keep] for a in arrays]
    got, bad = of_op(name, types_of(arrays), guarded)(*arrays)
    assert not bad
    want = numpy_result(name, arrays)
    assert got.dtype == want.dtype
    worst = distance(got, want)
    assert worst <= (4.0 if name in INEXACT else 0.0)


@pytest.mark.parametrize("name", GUARDED)
def test_a_guard_reports_what_the_plain_form_cannot_serve(name):
    loop = of_op(name, ["double"] * len(table[name].inputs), guarded=True)
    safe = [np.linspace(1.0, 2.0, 37) for _ in table[name].inputs]
    assert not loop(*safe)[1]
    safe[0][17] = -1e300
    assert loop(*safe)[1]


@pytest.mark.parametrize("kind", ["i64", "i32", "i1"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_integers_and_bools_are_numpys(name, kind):
    types = [kind] * len(table[name].inputs)
    if name == "where":
        types[0] = "i1"
    if not supports(name, types):
        assert Code().apply(name, [Value("%x", t) for t in types]) is None
        return
    arrays = grid(len(types), kind)
    if name == "where":
        arrays[0] = arrays[0] != 0
    got, _ = of_op(name, types)(*arrays)
    want = numpy_result(name, arrays)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("first", TYPES)
@pytest.mark.parametrize("second", TYPES)
def test_operands_are_promoted_as_numpy_does(first, second):
    a, b = grid(1, first)[0][:20], grid(1, second)[0][:20]
    n = min(len(a), len(b))
    assert np.result_type(TYPES[first], TYPES[second]) == np.dtype(TYPES[promoted([first, second])])
    for name in ("add", "mul", "lt", "maximum"):
        got, _ = of_op(name, [first, second])(a[:n].copy(), b[:n].copy())
        want = numpy_result(name, [a[:n], b[:n]])
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("old", TYPES)
@pytest.mark.parametrize("new", TYPES)
def test_a_cast_is_astype(old, new):
    edges = [2.0**31, -(2.0**31), -(2.0**31) - 0.5, 2.0**31 - 0.5, 2.0**63, -(2.0**63), 1e300]
    (x,) = grid(1, old, np.append(FLOATS, edges))
    got, _ = Loop(lambda code, values: code.cast(values[0], new), [old])(x)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(got, x.astype(TYPES[new]))


@pytest.mark.parametrize("kind", ["double", "float"])
def test_literals_are_exact(kind):
    values = [0.1, -0.0, 5e-324, 1e-45, np.inf, -np.inf, np.nan, 1.7976931348623157e308, 3]
    for x in values[:-2] if kind == "float" else values:
        x_twice = [literal(x, kind)] * 2
        loop = Loop(lambda code, v, twice=x_twice: code.apply("where", [*v, *twice]), ["i1"])
        got, _ = loop(np.array([True]))
        with np.errstate(all="ignore"):
            want = np.array([x], TYPES[kind])
        assert got.tobytes() == want.tobytes() or np.isnan([got, want]).all()


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_loop_is_vectorised(name):
    types = ["double"] * len(table[name].inputs)
    if name == "where":
        types[0] = "i1"
    module = of_op(name, types, guarded=True).text
    assert not re.search(r"call double @(?!llvm)", module)
    assert re.search(r"store <\d+ x (double|i64|i8)>", module)


def test_exp_takes_the_widest_vectors():
    width = 8 if "avx512f" in llvm.get_host_cpu_features().flatten().replace("-avx512f", "") else 4
    assert f"fma.v{width}f64" in of_op("exp", ["double"]).text


def test_any_number_is_served_without_guards():
    x = np.array([0.5, -2e6, vmath.TRIG_MAX, 1e22, -1e300])
    for name in ("sin", "cos", "tan", "sinc"):
        got, _ = of_op(name, ["double"])(x)
        assert distance(got, numpy_result(name, [x])) <= 2.0


def test_equal_instructions_are_written_once():
    code = Code()
    x, y = Value("%x", "double"), Value("%y", "double")
    first = code.apply("mul", [x, y])
    count = len(code.lines)
    assert code.apply("mul", [x, y]) is first
    assert len(code.lines) == count
    loads = [code.emit("double", "load double, ptr %p") for _ in range(2)]
    assert loads[0].name != loads[1].name


def test_operands_of_a_block_are_no_conditions():
    block = Block()
    x = Operand(block, Value("%x", "double"))
    with pytest.raises(TypeError, match="straight-line code has no branch"):
        bool(x > 1.0)
    with pytest.raises(TypeError, match="`&` is not defined for double"):
        x & 1
    with pytest.raises(TypeError, match="operands have different types"):
        x + Operand(block, Value("%n", "i64"))
    with pytest.raises(TypeError, match="`select` takes two values of one type"):
        select(x > 0, x, Operand(block, Value("%n", "i64")))


def test_numba_is_not_needed():
    code = (
        "import sys; from tapegrad.compiler.llvm.scalar_ops import *;"
        "from tapegrad.compiler.llvm.elementary import definitions;"
        "c = Code(); c.apply('exp', [Value('%x', 'double')]); definitions(c.used);"
        "print({'numba', 'llvmlite'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
