"""Functions of arrays as plain source, which is inlined and differentiated like any other.

The source is Numba's language; its loops run over as many dimensions as the arrays have.  It
computes what Numba computes, in the same order.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from numba.np.ufunc.dufunc import DUFunc

from tapegrad.njit.numba_front.components import COMPLEX, ELEMENT_OF
from tapegrad.njit.numba_front.objects import NumbaType, types
from tapegrad.njit.numba_front.typed_ir import ARRAY_LIBRARY
from tapegrad.njit.three_address_code import Unsupported

Function = Callable[..., Any]
INDICES = "ijklm"
_SIGNS = {
    operator.add: "+", operator.sub: "-", operator.mul: "*", operator.truediv: "/",
    operator.pow: "**", operator.floordiv: "//", operator.mod: "%", operator.lt: "<",
    operator.le: "<=", operator.gt: ">", operator.ge: ">=", operator.eq: "==",
    operator.ne: "!=", operator.and_: "&", operator.or_: "|", operator.xor: "^",
}  # fmt: skip
_UNARY = {operator.neg: "-", operator.pos: "+", operator.invert: "~"}

UFUNC = (np.ufunc, DUFunc)  # NumPy's, and those that users write with `numba.vectorize`
_ufuncs: dict[Any, str] = {}  # of users: what they are called in a source


def _unused() -> str:
    return f"ufunc{len(_ufuncs)}"


@cache
def made(source: str) -> Function:
    """The function that a source defines."""
    space: dict[str, Any] = {"np": np, "math": math, **{name: f for f, name in _ufuncs.items()}}
    exec(compile(source, ARRAY_LIBRARY, "exec"), space)
    function: Function = space[source.split("(")[0].removeprefix("def ")]
    return function


def defined(name: str, arguments: str, *body: str) -> Function:
    """A function of some arguments with the lines of its body."""
    lines = "\n".join(line for text in body for line in text.split("\n"))
    return made(f"def {name}({arguments}):\n" + _indented(lines, 1))


def applied(f: Any, args: Sequence[str]) -> str:
    """The text of an operator or ufunc of elements."""
    if f in _SIGNS:
        return f"({args[0]} {_SIGNS[f]} {args[1]})"
    if f in _UNARY:
        return f"({_UNARY[f]}{args[0]})"
    if isinstance(f, UFUNC):
        name = f"np.{f.__name__}" if isinstance(f, np.ufunc) else _ufuncs.setdefault(f, _unused())
        return f"{name}({', '.join(args)})"
    raise Unsupported(f"the operator `{getattr(f, '__name__', f)}` on arrays")


def constant(value: Any) -> str:
    """The text of a number."""
    return repr(value).replace("nan", "np.nan").replace("inf", "np.inf")


def dtype(t: Any) -> str:
    """The text of a dtype."""
    if t not in ELEMENT_OF and t not in COMPLEX:
        raise Unsupported(f"an array of {t}")
    return "np.bool_" if t == types.boolean else f"np.{t}"


def _indented(text: str, depth: int) -> str:
    return "\n".join(" " * depth + line for line in text.split("\n"))


def nest(lengths: Sequence[str], body: str) -> str:
    """Loops, one in another, over ranges of given lengths."""
    for d in range(len(lengths) - 1, -1, -1):
        body = f"for {INDICES[d]} in range({lengths[d]}):\n" + _indented(body, 1)
    return body


def over(name: str, ndim: int, body: str) -> str:
    """Loops over all elements of an array."""
    return nest([f"{name}.shape[{d}]" for d in range(ndim)], body)


def at(name: str, ndim: int) -> str:
    """The element of an array that loops are at."""
    return f"{name}[{', '.join(INDICES[:ndim])}]" if ndim else name


def _broadcast(kinds: Sequence[NumbaType], ndim: int) -> tuple[list[str], list[str], list[str]]:
    """Lines that find the common shape of operands; its lengths; each operand's element."""
    arrays = [k for k, t in enumerate(kinds) if isinstance(t, types.Array)]
    if len(arrays) == 1:
        (k,) = arrays
        elements = [at(f"x{j}", ndim) if j == k else f"x{j}" for j in range(len(kinds))]
        return [], [f"x{k}.shape[{d}]" for d in range(ndim)], elements
    lines = [f"n{d} = 1" for d in range(ndim)]
    elements = [f"x{j}" for j in range(len(kinds))]
    for k in arrays:
        own = kinds[k].ndim
        index = []
        for d in range(ndim - own, ndim):
            length = f"x{k}.shape[{d - ndim + own}]"
            lines += [
                f"if {length} != 1:",
                f" if n{d} != 1 and n{d} != {length}:",
                "  raise ValueError",
                f" n{d} = {length}",
                f"s{k}_{d} = {_step(length)}",
            ]
            index.append(f"{INDICES[d]} * s{k}_{d}")
        elements[k] = f"x{k}[{', '.join(index)}]" if own else f"x{k}[()]"
    return lines, [f"n{d}" for d in range(ndim)], elements


def _step(length: str) -> str:
    """How far an operand's index goes with that of the result: 0 for one element, else 1.

    Where LLVM sees that, it has the index chosen in each trip, and finds no vectors; of a factor
    that it does not know it makes a version of the loop in which it is one.
    """
    return f"({length} // 2) // max({length} // 2, 1)"


def elementwise(
    text: str, kinds: Sequence[NumbaType], result: NumbaType, into: bool = False
) -> Function:
    """A function of elements, `text` over `{x0}`, `{x1}`, ..., of operands that are broadcast.

    Its result is a new array, or else written `into` the last operand, element by element.
    """
    lines, lengths, elements = _broadcast(kinds, result.ndim)
    element = text.format(**{f"x{k}": e for k, e in enumerate(elements)})
    if into:
        out = f"x{len(kinds) - 1}"
        for d, n in enumerate(lengths):
            lines += [f"if {n} != {out}.shape[{d}]:", " raise ValueError"]
        body = nest(lengths, f"{at(out, result.ndim)} = {element}")
        names = ", ".join(f"x{k}" for k in range(len(kinds)))
        return defined("elementwise", names, *lines, body, f"return {out}")
    shape = "(" + "".join(f"{n}, " for n in lengths) + ")"
    return defined(
        "elementwise", ", ".join(f"x{k}" for k in range(len(kinds))), *lines,
        f"out = np.empty({shape}, {dtype(result.dtype)})",
        nest(lengths, f"{at('out', result.ndim)} = {element}"), "return out",
    )  # fmt: skip


def updated(f: Any, target: NumbaType, value: NumbaType) -> Function:
    """`a += b` and its kin."""
    index, checks = _into(target, value)
    new = applied(f, [at("a", target.ndim), index])
    return defined(
        "updated", "a, b", *checks, over("a", target.ndim, f"{at('a', target.ndim)} = {new}")
    )


def _into(target: NumbaType, value: NumbaType) -> tuple[str, list[str]]:
    """The element of a value that is written into an array, and what its shape has to satisfy."""
    if not isinstance(value, types.Array):
        return "b", []
    if value.ndim > target.ndim:
        raise Unsupported(f"an array of {value.ndim} dimensions in one of {target.ndim}")
    lines, index = [], []
    for d in range(value.ndim):
        own = f"a.shape[{d + target.ndim - value.ndim}]"
        lines += [
            f"if b.shape[{d}] != 1 and b.shape[{d}] != {own}:", " raise ValueError",
            f"s{d} = {_step(f'b.shape[{d}]')}",
        ]  # fmt: skip
        index.append(f"{INDICES[d + target.ndim - value.ndim]} * s{d}")
    return f"b[{', '.join(index) or '()'}]", lines


def assigned(target: NumbaType, value: NumbaType) -> Function:
    """`a[...] = b`; where the memory of both overlaps, `b` is copied first."""
    element, checks = _into(target, value)
    write = over("a", target.ndim, f"{at('a', target.ndim)} = {element}")
    if not isinstance(value, types.Array):
        return defined("assigned", "a, b", write)
    aside = over("a", target.ndim, f"{at('a', target.ndim)} = {element.replace('b[', 'c[')}")
    body = f"if overlap:\n c = b.copy()\n{_indented(aside, 1)}\nelse:\n{_indented(write, 1)}"
    return defined("assigned", "a, b, overlap", *checks, body)


def copied(t: NumbaType) -> Function:
    """`np.copy`, in C order."""
    shape = "(" + "".join(f"a.shape[{d}], " for d in range(t.ndim)) + ")"
    return defined(
        "copy", "a", f"out = np.empty({shape}, {dtype(t.dtype)})",
        over("a", t.ndim, f"{at('out', t.ndim)} = {at('a', t.ndim)}"), "return out",
    )  # fmt: skip


def taken(t: NumbaType, *places: NumbaType) -> Function:
    """`a[p, q]` of numbers of rows, which are broadcast; or of conditions for elements or rows."""
    (first, *_), kind = places, dtype(t.dtype)
    if all(isinstance(p.dtype, types.Integer) for p in places):
        lines, lengths, elements, ndim = _places(places)
        lengths += [f"a.shape[{d}]" for d in range(len(places), t.ndim)]
        if len(lengths) > len(INDICES):
            raise Unsupported(f"elements of {len(lengths)} dimensions")
        made = f"out = np.empty(({', '.join(lengths)},), {kind})"
        element = ", ".join([*elements, *INDICES[ndim : len(lengths)]])
        body = f"{at('out', len(lengths))} = a[{element}]"
        return defined("taken", _given(places), *lines, made, nest(lengths, body), "return out")
    if len(places) > 1 or first.dtype != types.boolean or first.ndim not in (1, t.ndim):
        raise Unsupported(f"an index of type {', '.join(map(str, places))} of {t}")
    rest = "" if first.ndim == t.ndim else ", :"
    shape = "(n, " + "".join(f"a.shape[{d}], " for d in range(first.ndim, t.ndim)) + ")"
    here = at("x0", first.ndim)
    counted = over("x0", first.ndim, f"if {here}:\n n += 1")
    element = at("a", first.ndim).replace("]", rest + "]")
    chosen = over("x0", first.ndim, f"if {here}:\n out[n{rest}] = {element}\n n += 1")
    lines = [*_same_lengths(first.ndim), "n = 0", counted, f"out = np.empty({shape}, {kind})"]
    return defined("taken", _given(places), *lines, "n = 0", chosen, "return out")


def _given(places: Sequence[NumbaType]) -> str:
    """The arguments of what reads or writes elements of an array at such places."""
    return ", ".join(["a", *(f"x{k}" for k in range(len(places)))])


def _places(places: Sequence[NumbaType]) -> tuple[list[str], list[str], list[str], int]:
    """What `_broadcast` gives of vectors of indices, and how many dimensions they have together."""
    ndim = max(p.ndim for p in places)
    if ndim > len(INDICES):
        raise Unsupported(f"an index of {ndim} dimensions")
    return *_broadcast(places, ndim), ndim


def _same_lengths(ndim: int) -> list[str]:
    """Lines that refuse conditions of another shape than the array's."""
    return [f"if a.shape[{d}] != x0.shape[{d}]:\n raise ValueError" for d in range(ndim)]


def put(t: NumbaType, places: Sequence[NumbaType], value: NumbaType) -> Function:
    """`a[p, q] = b`, of elements or of rows; `b` is copied before."""
    many = isinstance(value, types.Array)
    (first, *_), lines = places, ["c = b.copy()"] if many else []
    whole = all(isinstance(p.dtype, types.Integer) for p in places)
    more, lengths, elements, ndim = _places(places) if whole else ([], ["n"], [], 1)
    dimensions = len(places) if whole else first.ndim  # that the places are in
    own = value.ndim - (t.ndim - dimensions) if many else 0  # of `b`, beside those of a row
    one = len(places) == 1 and first.dtype == types.boolean and first.ndim in (1, t.ndim)
    if not (whole or one) or own > ndim:
        of = "" if whole or one else f", an index of type {', '.join(map(str, places))}"
        raise Unsupported(f"{value} at places that an array chooses{of}")
    at_places = ["n"] if not whole else [*INDICES[:ndim]]
    entries = [f"{x} if c.shape[{k}] > 1 else 0" for k, x in enumerate(at_places[ndim - own :])]
    source = "b" if not many else f"c[{', '.join(entries)}]" if own > 0 else "c"
    fits = [
        f"if c.shape[{k}] != 1 and c.shape[{k}] != {n}:\n raise ValueError"
        for k, n in enumerate(lengths[ndim - own :] if own > 0 else ())
    ]
    if whole:
        body = nest(lengths, f"a[{', '.join(elements)}] = {source}")
        return defined("put", f"{_given(places)}, b", *lines, *more, *fits, body)
    here = at("x0", first.ndim)
    counted = over("x0", first.ndim, f"if {here}:\n n += 1")
    body = over("x0", first.ndim, f"if {here}:\n {at('a', first.ndim)} = {source}\n n += 1")
    lines += [*_same_lengths(first.ndim), "n = 0", counted, *fits, "n = 0", body]
    return defined("put", f"{_given(places)}, b", *lines)


def closed_up(t: NumbaType) -> Function:
    """Move what is behind a place to one place before."""
    return defined("closed_up", "a, k", "for i in range(k, a.shape[0] - 1):\n a[i] = a[i + 1]")


def repeated(t: NumbaType) -> Function:
    """`a * n` of lists."""
    body = "for k in range(n):\n for i in range(len(a)):\n  out[k * len(a) + i] = a[i]"
    made = f"out = np.empty(len(a) * max(n, 0), {dtype(t.dtype)})"
    return defined("repeated", "a, n", made, body, "return out")


def joined(t: NumbaType) -> Function:
    """`a + b` of lists."""
    made = f"out = np.empty(len(a) + len(b), {dtype(t.dtype)})"
    first = "for i in range(len(a)):\n out[i] = a[i]"
    second = "for i in range(len(b)):\n out[len(a) + i] = b[i]"
    return defined("joined", "a, b", made, first, second, "return out")


def _whole(n: int, t: NumbaType) -> str:
    """The text of 0 or 1 as NumPy begins a sum or a product of such elements."""
    if t == types.float32 or t in COMPLEX:
        return f"{dtype(t)}({n})"
    return f"{n}.0" if t == types.float64 else f"{n}"


def _squared(t: NumbaType) -> str:
    """The text of the square of the size of an element `v`."""
    return "v.real * v.real + v.imag * v.imag" if t.dtype in COMPLEX else "v * v"


def _total(name: str, t: NumbaType) -> Function | None:
    """A function of all elements that adds up, multiplies or asks."""
    element = at("a", t.ndim)
    start, adding = f"s = {_whole(0, t.dtype)}", over("a", t.ndim, f"s += {element}")
    if name == "sum":
        return defined("sum", "a", start, adding, "return s")
    if name == "mean":
        return defined("mean", "a", start, adding, "return s / a.size")
    if name == "prod":
        one = f"s = {_whole(1, t.dtype)}"
        return defined("prod", "a", one, over("a", t.ndim, f"s *= {element}"), "return s")
    if name in ("all", "any"):
        found = f"if {'not ' if name == 'all' else ''}{element}:\n return {name == 'any'}"
        return defined(name, "a", over("a", t.ndim, found), f"return {name == 'all'}")
    squares = f"q = {_whole(0, COMPLEX.get(t.dtype, t.dtype))}"
    if name in ("var", "std"):
        adding_squares = over("a", t.ndim, f"v = {element} - m\nq += {_squared(t)}")
        found = "q / a.size" if name == "var" else "math.sqrt(q / a.size)"
        lines = start, adding, "m = s / a.size", squares, adding_squares
        return defined(name, "a", *lines, f"return {found}")
    if name == "norm" and t.ndim < 3:
        adding_squares = over("a", t.ndim, f"v = {element}\nq += {_squared(t)}")
        return defined("norm", "a", squares, adding_squares, "return math.sqrt(q)")
    return None


def _extreme(name: str, t: NumbaType) -> Function | None:
    """The largest or smallest element, or its place; the first that is NaN, if one is.

    With `nan` in its name, the first that is none.
    """
    whole = name.removeprefix("arg").removeprefix("nan")
    if whole not in ("max", "min"):
        return None
    sign = ">" if whole == "max" else "<"
    empty = "if a.size == 0:\n raise ValueError"
    first = f"s = a[{', '.join(['0'] * t.ndim)}]"
    value = f"v = {at('a', t.ndim)}\n"
    if name == f"nan{whole}":
        test = f"{value}if v {sign} s or s != s:\n s = v"
        return defined(name, "a", empty, first, over("a", t.ndim, test), "return s")
    if name == whole:
        test = f"{value}if v {sign} s or v != v:\n s = v"
        return defined(name, "a", empty, first, over("a", t.ndim, test), "return s")
    test = f"{value}if v {sign} s or (v != v and s == s):\n s = v\n best = n\nn += 1"
    return defined(
        name, "a", empty, first, "best = 0", "n = 0", over("a", t.ndim, test), "return best"
    )


ALONG = [f.__name__ for f in (np.sum, np.argmax, np.argmin)]  # what Numba has along an axis


def along(name: str, a: NumbaType, axis: int, result: NumbaType) -> Function | None:
    """A function along an axis; the place of an extreme is that of the first NaN, if one is."""
    if a.ndim == 1 and axis in (0, -1):
        return _total(name, a) or _extreme(name, a)
    if not -a.ndim <= axis < a.ndim:
        return None
    axis %= a.ndim
    rest = [d for d in range(a.ndim) if d != axis]
    out = f"out[{', '.join(INDICES[d] for d in rest)}]"
    element, length = at("a", a.ndim), f"a.shape[{axis}]"
    shape = "(" + "".join(f"a.shape[{d}], " for d in rest) + ")"
    made = f"out = np.zeros({shape}, {dtype(result.dtype)})"
    if name == "sum":
        return defined(name, "a", made, over("a", a.ndim, f"{out} += {element}"), "return out")
    k, sign = INDICES[axis], ">" if name == "argmax" else "<"
    body = (
        f"{k} = 0\ns = {element}\nfor {k} in range({length}):\n v = {element}\n"
        f" if v {sign} s or (v != v and s == s):\n  s = v\n  {out} = {k}"
    )
    for d in reversed(rest):
        body = f"for {INDICES[d]} in range(a.shape[{d}]):\n" + _indented(body, 1)
    return defined(name, "a", f"if {length} == 0:\n raise ValueError", made, body, "return out")


_UNLIKE = "if a.shape[{}] != b.shape[0]:\n raise ValueError"
_PRODUCTS = {
    (1, 1): "s = ZERO\nfor i in range(a.shape[0]):\n s += a[i] * b[i]\nreturn s",
    (2, 1): "out = np.empty(a.shape[0], D)\nfor i in range(a.shape[0]):\n s = ZERO\n"
    " for k in range(a.shape[1]):\n  s += a[i, k] * b[k]\n out[i] = s\nreturn out",
    (1, 2): "out = np.zeros(b.shape[1], D)\nfor k in range(b.shape[0]):\n"
    " for j in range(b.shape[1]):\n  out[j] += a[k] * b[k, j]\nreturn out",
    (2, 2): "out = np.zeros((a.shape[0], b.shape[1]), D)\nfor i in range(a.shape[0]):\n"
    " for k in range(a.shape[1]):\n  x = a[i, k]\n  for j in range(b.shape[1]):\n"
    "   out[i, j] += x * b[k, j]\nreturn out",
}


def product(a: NumbaType, b: NumbaType, result: NumbaType, conjugate: bool = False) -> Function:
    """`np.dot` and `@`, and `np.vdot`, which takes the conjugate of the first vector."""
    kind = result.dtype if isinstance(result, types.Array) else result
    if not isinstance(kind, types.Float | types.Complex) or (a.ndim, b.ndim) not in _PRODUCTS:
        raise Unsupported(f"the product of {a} and {b}")
    body = _PRODUCTS[a.ndim, b.ndim].replace("D)", dtype(kind) + ")")
    body = body.replace("ZERO", _whole(0, kind))
    if conjugate:
        body = body.replace("a[i]", "np.conjugate(a[i])")
    return defined("dot", "a, b", _UNLIKE.format(a.ndim - 1), body)


def _cumulated(sign: str, t: NumbaType) -> Function:
    zero = "0" if sign == "+" else "1"
    start = f"s = {dtype(t.dtype)}({zero})"
    loop = over("a", t.ndim, f"s = s {sign} {at('a', t.ndim)}\nout[n] = s\nn += 1")
    return defined(
        "cumulated", "a", f"out = np.empty(a.size, {dtype(t.dtype)})", start, "n = 0", loop,
        "return out",
    )  # fmt: skip


_EYE = "out = np.zeros((n, n), {})\nfor i in range(n):\n out[i, i] = 1\nreturn out"


def _diagonal(name: str, t: NumbaType) -> Function | None:
    """What is on the diagonal of a matrix, the sum of that, or a matrix of a diagonal."""
    if t.ndim == 1 and name == "diag":
        n, made, body = "a.shape[0]", "(n, n)", "out[i, i] = a[i]"
    elif t.ndim == 2 and name == "diag":
        n, made, body = "min(a.shape[0], a.shape[1])", "n", "out[i] = a[i, i]"
    elif t.ndim == 2:
        loop = "for i in range(min(a.shape[0], a.shape[1])):\n s += a[i, i]"
        return defined("trace", "a", f"s = {_whole(0, t.dtype)}", loop, "return s")
    else:
        return None
    lines = f"out = np.zeros({made}, {dtype(t.dtype)})", f"for i in range(n):\n {body}"
    return defined("diag", "a", f"n = {n}", *lines, "return out")


_OF_VECTORS = {
    "outer": "out = np.empty((len(a), len(b)), {})\nfor i in range(len(a)):\n"
    " for j in range(len(b)):\n  out[i, j] = a[i] * b[j]\nreturn out",
    "cross": "if len(a) != 3 or len(b) != 3:\n raise ValueError\nout = np.empty(3, {})\n"
    "out[0] = a[1] * b[2] - a[2] * b[1]\nout[1] = a[2] * b[0] - a[0] * b[2]\n"
    "out[2] = a[0] * b[1] - a[1] * b[0]\nreturn out",
}


# Of the rows of a matrix.
_COVARIANCE = """\
m, n = a.shape
mean, out = np.zeros(m, D), np.empty((m, m), D)
for i in range(m):
 for k in range(n):
  mean[i] += a[i, k]
 mean[i] /= n
f = np.nan if n < 2 else 1.0 / (n - 1)
for i in range(m):
 for j in range(i + 1):
  s = ZERO
  for k in range(n):
   s += (a[i, k] - mean[i]) * (a[j, k] - mean[j])
  out[i, j] = s * f
  out[j, i] = out[i, j]"""
_CORRELATION = """\
for i in range(m):
 mean[i] = math.sqrt(out[i, i])
r = np.empty((m, m), D)
for i in range(m):
 for j in range(m):
  r[i, j] = min(max(out[i, j] / mean[i] / mean[j], -1.0), 1.0)
return r"""


_ROWS = """\
if x.shape[0] != y.shape[0]:
 raise ValueError
a = np.empty((2, x.shape[0]))
for k in range(x.shape[0]):
 a[0, k], a[1, k] = x[k], y[k]"""


def _covariance(name: str, kinds: Sequence[NumbaType]) -> Function | None:
    """Of a matrix or of two vectors; Numba's results are of float64."""
    shape = [t.ndim for t in kinds if isinstance(t, types.Array) and t.dtype == types.float64]
    if shape not in ([2], [1, 1]) or len(shape) != len(kinds):
        return None
    text = "\n".join((_COVARIANCE, "return out" if name == "cov" else _CORRELATION))
    text = text.replace("D)", "np.float64)").replace("ZERO", "0.0")
    return defined(name, "a", text) if shape == [2] else defined(name, "x, y", _ROWS, text)


_CLOSE = "({x0} == {x1} or (np.isfinite({x1}) and abs({x0} - {x1}) <= 1e-8 + 1e-5 * abs({x1})))"


def _is_vector(t: NumbaType) -> bool:
    """Whether the elements of a value can be read by one number."""
    return isinstance(t, types.List | types.UniTuple) or getattr(t, "ndim", 0) == 1


def named(name: str, kinds: Sequence[NumbaType], result: NumbaType) -> Function | None:
    """A function of NumPy by its name; None if there is none for such operands."""
    if name == "isclose" and len(kinds) == 2 and isinstance(result, types.Array):
        return elementwise(_CLOSE, kinds, result)
    if name == "arange" or name == "linspace":
        return _range(name, len(kinds), result)
    if name in ("eye", "identity") and len(kinds) == 1:
        return defined(name, "n", _EYE.format(dtype(result.dtype)))
    if name in _OF_VECTORS and len(kinds) == 2 and all(map(_is_vector, kinds)):
        return defined(name, "a, b", _OF_VECTORS[name].format(dtype(result.dtype)))
    a = kinds[0]
    if not isinstance(a, types.Array):
        return None
    if len(kinds) == 1 and name in ("diag", "trace"):
        return _diagonal(name, a)
    if len(kinds) == 1 and name == "copy":
        return copied(a)
    if name in ("cov", "corrcoef"):
        return _covariance(name, kinds)
    if len(kinds) == 1 and (found := _total(name, a) or _extreme(name, a)) is not None:
        return found
    if len(kinds) == 1 and a.ndim and name in ("cumsum", "cumprod"):
        return _cumulated("+" if name == "cumsum" else "*", a)
    if len(kinds) == 2 and isinstance(kinds[1], types.Array):
        if name == "take" and a.ndim == kinds[1].ndim == 1:
            return taken(a, kinds[1])
        if name == "dot" or (name == "vdot" and a.ndim == kinds[1].ndim == 1):
            return product(a, kinds[1], result, conjugate=name == "vdot" and a.dtype in COMPLEX)
    return None


def _range(name: str, count: int, result: NumbaType) -> Function | None:
    kind = dtype(result.dtype)
    if name == "linspace":
        many = "num" if count == 3 else "50"
        body = (
            f"n = {many}\nout = np.empty(n, {kind})\nfor i in range(n):\n"
            " out[i] = a + (b - a) * i / (n - 1) if n > 1 else a\nreturn out"
        )
        return defined("linspace", "a, b, num" if count == 3 else "a, b", body)
    arguments = ["a", "a, b", "a, b, c"][count - 1] if 1 <= count <= 3 else None
    if arguments is None:
        return None
    start, stop = ("0", "a") if count == 1 else ("a", "b")
    step = "c" if count == 3 else "1"
    whole = isinstance(result.dtype, types.Integer)
    many = f"({stop} - {start} + {step} - 1) // {step}"
    if not whole:
        many = f"int(math.ceil(({stop} - {start}) / {step}))"
    elif count == 3:
        return None  # the sign of the step is not known
    body = (
        f"n = max({many}, 0)\nout = np.empty(n, {kind})\nfor i in range(n):\n"
        f" out[i] = {start} + i * {step}\nreturn out"
    )
    return defined("arange", arguments, body)
