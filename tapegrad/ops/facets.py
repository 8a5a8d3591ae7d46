"""The facets of an operation: what is true of it beside its forward and its derivatives.

A row says those that are not the default.  Who needs to know reads them off the row; a table of
names elsewhere would have to be kept in step.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any


class Facets:
    """What a row says of its operation."""

    # One element of it, as kernels and compiled programs write it: ``{0}`` is the first operand,
    # ``T(0.5)`` a number of its type (see `kernels.codegen.rule_codegen`).
    scalar: str = ""
    # For which arguments ``scalar`` does not do, but ``vmath.sin_any``.
    guard: str = ""
    # The same of a form of fewer instructions, ``vmath.sin_plain``; `never`.
    rare: str = ""
    # Its function of `vmath`, by measurement: of ``few`` instructions, or so many that the short
    # form saves most (``many``); whose short form looks nothing up (``untabled``).
    vmath: str = ""
    # The kinds of elements for which ``scalar`` computes what NumPy does, and of results for which
    # ``decomposition`` does: floats (``f``), integers (``i``), booleans (``b``), complex (``c``).
    kinds: str = "f"
    # The form of integers, where it is another one than ``scalar``.
    integer_form: str = ""
    # Integers and booleans become the default floating-point type first.
    to_float: bool = False
    # It is not defined for complex numbers, none of which is larger than another.
    ordered: bool = False
    # What it is to complex operands: `analytic`, whose formula is the derivative of a function of
    # a complex variable; `real`, linear with real coefficients, as linear rows are unless they say
    # otherwise; `own`, whose formula gives adjoints of complex values itself.  Of others there is
    # no gradient in complex numbers.
    complex: str = ""
    # It has an in-place form of no further arguments: ``exp_``.
    inplace: bool = False
    # Operands meet element by element, though each keeps its type.
    paired: bool = False
    # SciPy exports the forward as a C function, which programs call.
    in_c: bool = False
    # Programs compute it by LAPACK, of small matrices in registers.
    lapack: bool = False
    # Where the loop that is made of ``scalar`` is taken for large arrays, by measurement: for
    # ``f8``, for ``f4``, where an operand is ``broadcast``; ``alike``: it is as fast as NumPy's
    # with the same bits; ``scalar``: NumPy's or SciPy's does one element at a time, so that it is
    # faster from some dozens of elements on; ``svml``: where it does so without AVX-512, for which
    # NumPy has Intel's vector library, ``f8 f4 scalar`` in the place of all.
    loop: str = ""
    # How an operation that computes nothing lays elements out: `identity`, `reshape`,
    # `broadcast`, `reverse`, `strided` (slices, transposes, diagonals), `sliding` (windows that
    # overlap), `storage` (of the memory below the operand), `chain` (of views); `concat`, `pad`
    # (among a number), `update` (over a part of a copy); `gather`, `scatter`, `scatter add`,
    # and `along` where an index names single elements.
    moves: str = ""
    # The kind of its records in the compiled sweep (`kernels.sweep.sweep_abi`), if it has its own.
    sweep: int = 0
    # The part of its first operand that it copies, or writes over, as a view; of its result, where
    # the operand lies in that (`pad`).
    window: Callable[..., Any] | None = None
    # What a row does to its first operand in place, or to a copy of it.
    writes: Callable[..., None] | None = None
    # The operation by which a reduction takes elements together.
    reduces: str = ""
    # The number with which such a reduction begins, of an elementwise operation.
    neutral: float = math.nan
    # The same as ``scalar`` for a reduction, whose elements LLVM may take in vectors, in any order.
    combine: str = ""
    # What ``reduces`` is, of a scan, which takes up one after the other.
    scans: str = ""
    # By what a scatter takes together what an index brings to one place.
    scatters: str = ""
    # The same over simpler operations, by the formula of the forward: what programs and kernels
    # compute; None: it does not serve these parameters.  No operand is empty.
    decomposition: Callable[..., Any] | None = None
    # It goes along dimensions, and native code runs it: it gives one number for each row
    # (``reduce``), or one for each element (``keep``).
    axis: str = ""
    # One line on it: with one, an elementwise operation, or one along dimensions, is a public
    # function, and a method, too, of the Tensor.
    doc: str = ""
    # A call for the docstring, and what it answers.
    example: tuple[str, str] = ("", "")
    # More names of the function, the method and the in-place form.
    aliases: str = ""
    # The module that users find the function in, if it is not `tapegrad`; the Tensor has no
    # method then.
    namespace: str = ""
    # Where tests sample its operands: an interval (without one -2 to 2), or for each operand an
    # interval, a range of integers, or `bool`.
    domain: Any = None
    # What the derivative is where there is none, or an infinite one.
    singular: str = ""


@cache
def has_svml() -> bool:
    """Whether NumPy computes elementary functions by Intel's vector library on this machine."""
    from numpy.lib.introspect import opt_func_info

    loops = opt_func_info(func_name="^tan$").get("tan", {})
    return "baseline" not in loops.get("dd", {}).get("current", "baseline")


FACETS = tuple(Facets.__annotations__)
