"""Tables of sixteen numbers that loops look up in registers, all lanes of a vector at once.

In a module a look-up is a call of a function that bears the table's name.  Where the processor can
permute two vectors of eight doubles by the low bits of eight integers, LLVM is told of a form of
that function for vectors, which it then calls in the loops that it vectorises.
"""

import hashlib
import re
import struct
from collections.abc import Sequence
from functools import cache

SIZE = 16
_NAME = re.compile(r"@(table_[0-9a-f]{10})\(")
_VECTOR = """
declare <8 x double> @llvm.x86.avx512.vpermi2var.pd.512(<8 x double>, <8 x i64>, <8 x double>)
"""
# Not internal: it has to be there still when loops are vectorised.
_OF_VECTORS = """
define <8 x double> @{0}.v(<8 x i64> %k) nounwind alwaysinline {{
%low = load <8 x double>, ptr @{0}.values, align 64
%at = getelementptr inbounds i8, ptr @{0}.values, i64 64
%high = load <8 x double>, ptr %at, align 64
%found = call <8 x double> @llvm.x86.avx512.vpermi2var.pd.512(<8 x double> %low, <8 x i64> %k, <8 x double> %high)
ret <8 x double> %found
}}
"""  # noqa: E501  # one instruction
_ATTRIBUTES = (
    'nounwind noinline memory(none) "vector-function-abi-variant"="_ZGV_LLVM_N8v_{0}({0}.v)"'
)


def from_number(x: float, offset: int) -> float:
    """The double whose bits are those of x and so many more."""
    (b,) = struct.unpack("<q", struct.pack("<d", x))
    return float(struct.unpack("<d", struct.pack("<q", b + offset))[0])


def name_of(values: Sequence[float]) -> str:
    """What the function of a table is called."""
    digest = hashlib.sha256(struct.pack(f"{SIZE}d", *values))
    return f"table_{digest.hexdigest()[:10]}"


def definition(name: str, values: Sequence[float]) -> str:
    """LLVM text for the function of a table."""
    numbers = struct.unpack(f"{SIZE}Q", struct.pack(f"{SIZE}d", *values))
    items = ", ".join(f"double 0x{b:016X}" for b in numbers)
    return (
        f"@{name}.values = internal constant [{SIZE} x double] [{items}], align 64\n"
        f"define internal double @{name}(i64 %k) alwaysinline {{\n"
        f"%low = and i64 %k, {SIZE - 1}\n"
        f"%at = getelementptr inbounds double, ptr @{name}.values, i64 %low\n"
        "%found = load double, ptr %at\n"
        "ret double %found\n}"
    )


def names(text: str) -> list[str]:
    """The tables of a module."""
    return sorted(set(_NAME.findall(text)))


@cache
def in_registers() -> bool:
    """Whether this machine looks up a vector at once."""
    import llvmlite.binding as llvm

    return bool(llvm.get_host_cpu_features().get("avx512f"))


def vectorised(text: str) -> str:
    """A module whose look-ups have forms for vectors, if this machine has."""
    found = names(text)
    if not found or not in_registers():
        return text
    for name in found:
        head = rf"define \w+ (double @{name}\([^\n]*\))[^\n]*\{{"
        attributes = _ATTRIBUTES.format(name)
        text = re.sub(head, rf"define internal \1 {attributes} {{", text)
    return text + _VECTOR + "".join(_OF_VECTORS.format(name) for name in found)
