"""Call SciPy's special functions from compiled programs, by pointer.

They have no form that vectorises.  `scipy.special.cython_special` exports pointers to them, which
run without the interpreter's lock, and are the functions that the NumPy forward calls.
"""

from __future__ import annotations

from functools import cache

from tapegrad.compiler.llvm.ssa import Operand, Value, narrow, widen
from tapegrad.kernels import build
from tapegrad.kernels.blas import capsules
from tapegrad.ops.elementwise import Lazy
from tapegrad.ops.families import by_code

SCIPY = {op.name: op.forward.name for op in by_code if op.in_c and isinstance(op.forward, Lazy)}
# How many floats each takes, by SciPy's name.
COUNTS = {SCIPY[op.name]: len(op.inputs) for op in by_code if op.name in SCIPY}
PREFIX = "tapegrad_special_"
ATTRIBUTES = "nounwind willreturn memory(none)"


def call(name: str, *operands: Operand) -> Operand:
    """The result of an operation on floats."""
    # The last argument is Cython's own: whether to look for an override, of which there is none.
    given = [*(widen(x).value for x in operands), Value("0", "i32")]
    x = operands[0]
    return narrow(Operand(x.block, x.block.call(PREFIX + SCIPY[name], "double", given)), x)


def declaration(symbol: str) -> str:
    """LLVM text that declares one of SciPy's functions."""
    floats = "double, " * COUNTS[symbol.removeprefix(PREFIX)]
    return f"declare double @{symbol}({floats}i32) {ATTRIBUTES}"


def offer(*texts: str) -> None:
    """Define the symbols for code that calls SciPy's functions."""
    if any(PREFIX in text for text in texts):
        _offer()


@cache
def _offer() -> None:
    """Importing the functions takes a while, so it is done when the first code needs them."""
    for symbol, address in addresses().items():
        build.binding().add_symbol(symbol, address)


@cache
def addresses() -> dict[str, int]:
    """Where SciPy's functions are, by the symbols that LLVM text has for them."""
    of = capsules("scipy.special.cython_special")
    found = {}
    for name, count in COUNTS.items():
        signature = b"double (%bint __pyx_skip_dispatch)" % (b"double, " * count)
        for variant in (name, f"__pyx_fuse_0{name}", f"__pyx_fuse_1{name}"):
            if variant in of and of[variant][0] == signature:
                found[PREFIX + name] = of[variant][1]
                break
        else:
            raise RuntimeError(f"this version of SciPy exports no `{name}` of doubles to Cython")
    return found
