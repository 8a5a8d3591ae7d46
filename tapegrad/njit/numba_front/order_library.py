"""Sorting, joining and searching arrays as plain source, like the functions of `array_library`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tapegrad.njit.numba_front.array_library import INDICES, Function, at, defined, dtype, over
from tapegrad.njit.numba_front.objects import NumbaType, types
from tapegrad.njit.three_address_code import Unsupported

# Numba's quicksort, so that equal elements come in the same order.  What decides has no derivative:
# the places alone are sorted, and nothing of that is kept.
_PLACES = """\
n = a.shape[0]
r = np.arange(n)
lows, highs = np.empty(100, np.int64), np.empty(100, np.int64)
lows[0], highs[0], many = 0, n - 1, 1
while many > 0:
 many -= 1
 low, high = lows[many], highs[many]
 while high - low >= 15:
  mid = (low + high) >> 1
  if LESS(a[r[mid]], a[r[low]]):
   r[low], r[mid] = r[mid], r[low]
  if LESS(a[r[high]], a[r[mid]]):
   r[high], r[mid] = r[mid], r[high]
  if LESS(a[r[mid]], a[r[low]]):
   r[low], r[mid] = r[mid], r[low]
  pivot = a[r[mid]]
  r[high], r[mid] = r[mid], r[high]
  i, j = low, high - 1
  while True:
   while i < high and LESS(a[r[i]], pivot):
    i += 1
   while j >= low and LESS(pivot, a[r[j]]):
    j -= 1
   if i >= j:
    break
   r[i], r[j] = r[j], r[i]
   i += 1
   j -= 1
  r[i], r[high] = r[high], r[i]
  if high - i > i - low:
   if high > i:
    lows[many], highs[many] = i + 1, high
    many += 1
   high = i - 1
  else:
   if i > low:
    lows[many], highs[many] = low, i - 1
    many += 1
   low = i + 1
 for i in range(low + 1, high + 1):
  k = r[i]
  v = a[k]
  j = i
  while j > low and LESS(v, a[r[j - 1]]):
   r[j] = r[j - 1]
   j -= 1
  r[j] = k"""


def with_order(text: str, less: str) -> str:
    """Source in which `LESS(v, w)`, whether one comes before the other, is written out."""
    return re.sub(r"LESS\(([^()]*), ([^()]*)\)", less, text)


def by_rows(width: int) -> str:
    """How two rows compare, as tuples do: by the first numbers that differ."""
    less = rf"\1[{width - 1}] < \2[{width - 1}]"
    for k in range(width - 2, -1, -1):
        less = rf"\1[{k}] < \2[{k}] or (\1[{k}] == \2[{k}] and ({less}))"
    return f"({less})"


_NAN_LAST = r"(\1 < \2 or (\2 != \2 and \1 == \1))"


def ordered(name: str, t: NumbaType) -> Function:
    """`np.argsort`, `np.sort`, or `a.sort()`, which is `sort_in_place`."""
    if t.ndim != 1:
        raise Unsupported(f"sorting {t}: vectors alone are sorted")
    lines = [with_order(_PLACES, _NAN_LAST)]
    if name == "argsort":
        return defined(name, "a", *lines, "return r")
    lines += [f"out = np.empty(n, {dtype(t.dtype)})", "for i in range(n):\n out[i] = a[r[i]]"]
    if name == "sort":
        return defined(name, "a", *lines, "return out")
    return defined(name, "a", *lines, "for i in range(n):\n a[i] = out[i]")


def sorted_rows(width: int) -> Function:
    """Sort the rows of a matrix in place."""
    places = with_order(_PLACES, by_rows(width))
    put = "for i in range(n):\n for k in range(a.shape[1]):\n  a[i, k] = out[r[i], k]"
    return defined("sort", "a", places, "out = a.copy()", put)


def joined(kinds: Sequence[NumbaType], result: NumbaType, axis: int, *, new: bool) -> Function:
    """`np.concatenate` along an axis, or, if that is `new`, `np.stack`."""
    ndim, first = result.ndim, kinds[0]
    if not all(isinstance(k, types.Array) and k.ndim == ndim - new for k in kinds):
        raise Unsupported(f"joining {', '.join(map(str, kinds))}")
    if not -ndim <= axis < ndim:
        raise Unsupported(f"axis {axis} of {result}")
    axis %= ndim
    own = [d for d in range(ndim) if not (new and d == axis)]  # dimensions that operands have
    place = {d: k for k, d in enumerate(own)}
    lines = [
        f"if x{k}.shape[{place[d]}] != x0.shape[{place[d]}]:\n raise ValueError"
        for k in range(1, len(kinds)) for d in own if d != axis
    ]  # fmt: skip
    extents = ["1" if new else f"x{k}.shape[{axis}]" for k in range(len(kinds))]
    shape = [" + ".join(extents) if d == axis else f"x0.shape[{place[d]}]" for d in range(ndim)]
    lines += [f"out = np.empty(({', '.join(shape)},), {dtype(result.dtype)})", "start = 0"]
    for k, extent in enumerate(extents):
        where = [
            f"start{'' if new else ' + ' + INDICES[place[d]]}" if d == axis else INDICES[place[d]]
            for d in range(ndim)
        ]
        source = at(f"x{k}", first.ndim)
        lines.append(over(f"x{k}", first.ndim, f"out[{', '.join(where)}] = {source}"))
        lines.append(f"start += {extent}")
    arguments = ", ".join(f"x{k}" for k in range(len(kinds)))
    return defined("joined", arguments, *lines, "return out")


def stacked(name: str, kinds: Sequence[NumbaType], result: NumbaType) -> Function:
    """`np.vstack`, `np.hstack` and `np.column_stack`."""
    vectors = kinds[0].ndim == 1 if isinstance(kinds[0], types.Array) else False
    axis = {"vstack": 0, "hstack": 0 if vectors else 1, "column_stack": 1}[name]
    return joined(kinds, result, axis, new=vectors and name != "hstack")


def appended(t: NumbaType, value: NumbaType, result: NumbaType) -> Function | None:
    """`np.append` of a number to a vector."""
    if t.ndim != 1 or isinstance(value, types.Array):
        return None
    made = f"out = np.empty(a.shape[0] + 1, {dtype(result.dtype)})"
    return defined(
        "append", "a, b", made, over("a", 1, "out[i] = a[i]"), "out[a.shape[0]] = b", "return out"
    )


def nonzero(t: NumbaType) -> Function:
    """`np.nonzero`: the places of what is not zero, one vector for each dimension."""
    some = at("a", t.ndim)
    places = [f"out{d}" for d in range(t.ndim)]
    made = [f"{name} = np.empty(n, np.int64)" for name in places]
    noted = "\n".join(f" {name}[n] = {INDICES[d]}" for d, name in enumerate(places))
    return defined(
        "nonzero", "a", "n = 0", over("a", t.ndim, f"if {some}:\n n += 1"), *made, "n = 0",
        over("a", t.ndim, f"if {some}:\n{noted}\n n += 1"), f"return ({', '.join(places)},)",
    )  # fmt: skip


def named(name: str, kinds: Sequence[NumbaType], result: NumbaType) -> Function | None:
    """A function of NumPy by its name; None if there is none for such operands."""
    a = kinds[0]
    if not isinstance(a, types.Array):
        return None
    if len(kinds) == 1 and name in ("sort", "argsort") and a.ndim == 1:
        return ordered(name, a)
    if len(kinds) == 1 and name in ("nonzero", "where") and a.ndim > 0:
        return nonzero(a)
    return appended(a, kinds[1], result) if name == "append" and len(kinds) == 2 else None


def extreme(name: str) -> Function:
    """Python's `max` and `min` of a vector: the first, unless a later one is beyond it."""
    beyond = ">" if name == "max" else "<"
    return defined(
        name, "a", "if a.shape[0] == 0:\n raise ValueError", "s = a[0]",
        f"for i in range(1, a.shape[0]):\n if a[i] {beyond} s:\n  s = a[i]", "return s",
    )  # fmt: skip


_POWER = """\
r = 1
b, left = a, abs(n)
while left > 0:
 if left & 1:
  r *= b
 b *= b
 left >>= 1
if n < 0:
 return int(1.0 / r)
return r"""
_ROUNDED = """\
if n >= 0:
 up = 10.0 ** min(n, 22)
 more = 10.0 ** max(n - 22, 0)
 y = x * more * up
 return np.rint(y) / up / more if abs(y) < np.inf else x
down = 10.0 ** -n
return np.rint(x / down) * down"""


def integer_power() -> Function:
    """`a ** n` of integers."""
    return defined("power", "a, n", _POWER)


def rounded() -> Function:
    """`round(x, n)`."""
    return defined("rounded", "x, n", _ROUNDED)
