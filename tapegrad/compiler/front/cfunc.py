"""Compiled functions as C function pointers: `f.cfunc(kind, *examples)`.

A small LLVM stub passes the caller's arguments to `dispatch_cache.run`.  It knows the shapes of the
examples, so a call is the program itself and some stores; it allocates nothing and takes no lock.

======= ==========================================================================================
kind    prototype in C, and what it wants of the function
======= ==========================================================================================
scipy   ``double f(int n, double *x, void *user)``: x holds all inputs, one after another, n numbers
        in all; the function returns one float. NaN if it could not be run
logp    ``int f(size_t dim, const double *x, double *gradient, double *logp, void *user)``: the
        function takes one vector and returns its value and gradient, as
        ``jit(value_and_grad(logp))`` does. 0, or `WRONG_SIZE`, or `NOT_RUN`
plain   ``int f(const void *const *inputs, void *const *outputs)``: pointers to the inputs and to
        room for the results (all but None), in order, each an array in C order; a result that does
        not depend on the inputs is a double, an int64 or a byte that is 0 or 1. 0, or `NOT_RUN`
======= ==========================================================================================

What kept a call from being run goes to `sys.unraisablehook`.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tapegrad.base.native_arrays import native_array
from tapegrad.compiler.front import dispatch_cache
from tapegrad.compiler.front.dispatch_cache import Table
from tapegrad.compiler.front.foreign import DOUBLE, NUMBER, Form, Input, Join, Source, leaves
from tapegrad.compiler.front.specialization import ARRAY, FLOAT, STATIC, Leaf
from tapegrad.compiler.runtime.program import Program
from tapegrad.kernels import build

WRONG_SIZE, NOT_RUN = -1, -2


class CFunction:
    """A C function that runs a compiled program; it lives as long as this object.

    Parameters
    ----------
    source : Source
        Where its programs come from.
    kind : "scipy", "logp" or "plain"
        Its prototype.
    examples : tuple
        Floats and arrays like those that it will be called for.

    Attributes
    ----------
    address : int
        Where it is.
    ctypes : ctypes function
        What calls it from Python, without the interpreter's lock.

    >>> import numpy as np
    >>> import tapegrad as tg
    >>> f = tg.jit(lambda x, y: np.exp(-x * y) / (1 + x)).cfunc("scipy", 0.0, 0.0)
    >>> f.ctypes(2, (f.ctypes.argtypes[1]._type_ * 2)(1.0, 0.0), None)
    0.5
    """

    def __init__(self, source: Source, kind: str, examples: tuple[Any, ...]) -> None:
        if kind not in KINDS:
            known = ", ".join(map(repr, KINDS))
            raise ValueError(f"`cfunc` got the kind {kind!r}: it knows {known}")
        values = [_value(x) for x in examples]
        specialization = source.compiled(*values)
        returned = source.returned(specialization)
        prototype, write, wants = KINDS[kind]
        body = write(specialization.program, returned.form)
        if body is None:
            raise TypeError(
                f"`cfunc` of the kind {kind!r} wants a function that {wants}; `{source.name}` "
                f"takes {_described(specialization.program.inputs)} and returns "
                f"{_described(specialization.program.outputs)}"
            )
        self.source, self.kind = source, kind
        self._table = Table(source, tuple(map(_input, values)), returned, keeps=False)
        self._engine = build.assembled(dispatch_cache.TEXT + _CELLS + body)
        engine = self._engine[0]
        cells = {"table": self._table.address, "entry": self._table.entry(specialization)}
        for name, address in cells.items():
            ctypes.c_void_p.from_address(engine.get_global_value_address(name)).value = address
        self.address = int(engine.get_function_address("call"))
        self.ctypes = prototype(self.address)
        self.ctypes.owner = self

    def __repr__(self) -> str:
        return f"<{self.source.name} as a C function of the kind {self.kind!r}>"

    def low_level_callable(self, user_data: Any = None) -> Any:
        """A `scipy.LowLevelCallable`, for functions of SciPy that take one."""
        from scipy import LowLevelCallable

        return LowLevelCallable(self.ctypes, user_data)


def _value(x: Any) -> Any:
    if isinstance(x, bool | int | float):
        return float(x)
    if isinstance(x, np.ndarray) and x.dtype.kind in "biuf":
        return np.ascontiguousarray(native_array(x, "cfunc"))
    raise TypeError(
        f"`cfunc` got an example of the type {type(x).__name__}: it takes numbers and arrays of "
        "real numbers"
    )


def _input(value: Any) -> Input:
    if isinstance(value, float):
        return NUMBER
    return Input(ARRAY, value.ndim, value.dtype)


def _described(specs: Any) -> str:
    return ", ".join([f"{spec.dtype}{list(spec.shape)}" for spec in specs]) or "nothing"


def _is_double(form: Form) -> bool:
    return isinstance(form, Leaf) and form.form == FLOAT


def _scipy(program: Program, form: Form) -> str | None:
    """The function of the kind "scipy", if the program fits."""
    sizes = [math.prod(spec.shape) for spec in program.inputs]
    if any(spec.dtype != DOUBLE for spec in program.inputs) or not _is_double(form):
        return None
    inputs = [("%x", sum(sizes[:k])) for k in range(len(sizes))]
    return f"""
define double @call(i32 %n, ptr %x, ptr %user) {{
  %value = alloca double
  %right = icmp eq i32 %n, {sum(sizes)}
  br i1 %right, label %go, label %wrong
go:
{_run(inputs, [("%value", 0)])}
  br i1 %done, label %end, label %failed
wrong:
  call void @refuse()
  br label %failed
failed:
  ret double 0x7FF8000000000000
end:
  %y = load double, ptr %value
  ret double %y
}}"""


def _logp(program: Program, form: Form) -> str | None:
    """The function of the kind "logp", if the program fits."""
    if len(program.inputs) != 1 or not isinstance(form, Join) or len(form.parts) != 2:
        return None
    value, gradient = form.parts
    vector = program.inputs[0]
    if not _is_double(value) or not isinstance(gradient, Leaf) or value == gradient:
        return None
    if gradient.form != ARRAY or program.outputs[gradient.output] != vector:
        return None
    if vector.dtype != DOUBLE or len(vector.shape) != 1:
        return None
    outputs = ["%logp", "%gradient"] if gradient.output else ["%gradient", "%logp"]
    return f"""
define i32 @call(i64 %dim, ptr %x, ptr %gradient, ptr %logp, ptr %user) {{
  %right = icmp eq i64 %dim, {vector.shape[0]}
  br i1 %right, label %go, label %wrong
go:
{_run([("%x", 0)], [(name, 0) for name in outputs])}
  %said = select i1 %done, i32 0, i32 {NOT_RUN}
  ret i32 %said
wrong:
  ret i32 {WRONG_SIZE}
}}"""


def _plain(program: Program, form: Form) -> str | None:
    """The function of the kind "plain", if what it returns has a place in C."""
    results = [leaf for leaf in leaves(form) if leaf.value is not None or leaf.form != STATIC]
    if not all(map(_writable, results)):
        return None
    places = "".join([_result(k, leaf) for k, leaf in enumerate(results)])
    return f"""
define i32 @call(ptr %inputs, ptr %results) {{
  %outputs = alloca ptr, i64 {max(len(results), 1)}
{places}{_RUN}
  %said = select i1 %done, i32 0, i32 {NOT_RUN}
  ret i32 %said
}}"""


def _writable(leaf: Leaf) -> bool:
    """Whether a constant result has a type in C."""
    return type(leaf.value) is not int or -(1 << 63) <= leaf.value < 1 << 63


def _result(k: int, leaf: Leaf) -> str:
    """The code of result k: its pointer becomes an output's, or a constant is stored."""
    lines = [
        f"%result.{k}.at = getelementptr ptr, ptr %results, i64 {k}",
        f"%result.{k} = load ptr, ptr %result.{k}.at",
    ]
    if leaf.form != STATIC:
        lines += [
            f"%output.{k} = getelementptr ptr, ptr %outputs, i64 {leaf.output}",
            f"store ptr %result.{k}, ptr %output.{k}",
        ]
    elif isinstance(leaf.value, bool):
        lines.append(f"store i8 {leaf.value:d}, ptr %result.{k}")
    elif isinstance(leaf.value, int):
        lines.append(f"store i64 {leaf.value}, ptr %result.{k}")
    else:
        bits = np.float64(leaf.value).view(np.uint64)
        lines.append(f"store double 0x{bits:016X}, ptr %result.{k}")
    return _block(lines)


def _block(lines: list[str]) -> str:
    return "".join([f"  {line}\n" for line in lines])


_CELLS = f"""
@table = global ptr null
@entry = global ptr null

define internal void @refuse() {{
  %table = load ptr, ptr @table
  %entry = load ptr, ptr @entry
  %mend_at = getelementptr i64, ptr %table, i64 {dispatch_cache.TableWords.mend}
  %mend = load ptr, ptr %mend_at
  %said = call ptr %mend(ptr %entry, ptr null, ptr null, i64 {dispatch_cache.WRONG_SIZE})
  ret void
}}
"""
_RUN = """
  %table = load ptr, ptr @table
  %entry = load ptr, ptr @entry
  %status = call i64 @run(ptr %table, ptr %entry, ptr %inputs, ptr %outputs)
  %done = icmp eq i64 %status, 0"""


def _run(inputs: list[tuple[str, int]], outputs: list[tuple[str, int]]) -> str:
    """Run the program on pointers at offsets in doubles."""
    return _pointers("inputs", inputs) + _pointers("outputs", outputs) + _RUN


def _pointers(name: str, places: list[tuple[str, int]]) -> str:
    lines = [f"%{name} = alloca ptr, i64 {max(len(places), 1)}"]
    for k, (base, place) in enumerate(places):
        lines += [
            f"%{name}.{k} = getelementptr double, ptr {base}, i64 {place}",
            f"%{name}.{k}.at = getelementptr ptr, ptr %{name}, i64 {k}",
            f"store ptr %{name}.{k}, ptr %{name}.{k}.at",
        ]
    return _block(lines)


class Kind(NamedTuple):
    """A prototype, what writes its function, and which functions it suits."""

    prototype: Any
    write: Callable[[Program, Form], str | None]
    wants: str


_doubles, _any = ctypes.POINTER(ctypes.c_double), ctypes.c_void_p
_pointers_type = ctypes.POINTER(_any)
KINDS = {
    "scipy": Kind(
        ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int, _doubles, _any),
        _scipy, "takes floats and float64 arrays and returns one float",
    ),
    "logp": Kind(
        ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_size_t, _doubles, _doubles, _doubles, _any),
        _logp, "takes one float64 vector and returns a float and a vector as long",
    ),
    "plain": Kind(
        ctypes.CFUNCTYPE(ctypes.c_int, _pointers_type, _pointers_type),
        _plain, "returns arrays, floats and what else fits 64 bits",
    ),
}  # fmt: skip
