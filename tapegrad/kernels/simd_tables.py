"""Vector instructions that LLVM does not choose: table look-up, rough inverse roots.

A table has sixteen numbers, which two registers hold.  In a module a look-up is a call of a
function that bears the table's name, and a root that of `ROOT`.  Where the processor can permute
two vectors of eight doubles by the low bits of eight integers, LLVM is told of forms of these
functions for vectors, which it then calls in the loops that it vectorises.
"""

import hashlib
import re
import struct
from collections.abc import Sequence
from functools import cache

SIZE = 16
ROOT = "inverse_root"  # of a number, to 2**-14; for one number alone its second argument
_NAME = re.compile(rf"@(table_[0-9a-f]{{10}}|{ROOT})\(")
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
DEFINITION_OF_ROOT = f"""\
define internal double @{ROOT}(double %x, double %rough) alwaysinline {{
ret double %rough
}}"""
_ATTRIBUTES = (
    'nounwind noinline memory(none) "vector-function-abi-variant"="_ZGV_LLVM_N8{1}_{0}({0}.v)"'
)


# Not internal: LLVM would leave out the argument that is not read.
_ROOTS = f"""
declare <2 x double> @llvm.x86.avx512.rsqrt14.sd(<2 x double>, <2 x double>, <2 x double>, i8)
declare <8 x double> @llvm.x86.avx512.rsqrt14.pd.512(<8 x double>, <8 x double>, i8)
define linkonce_odr double @{ROOT}(double %x, double %rough) {_ATTRIBUTES.format(ROOT, "vv")} {{
%one = insertelement <2 x double> zeroinitializer, double %x, i64 0
%roots = call <2 x double> @llvm.x86.avx512.rsqrt14.sd(<2 x double> %one, <2 x double> %one, <2 x double> %one, i8 -1)
%found = extractelement <2 x double> %roots, i64 0
ret double %found
}}
define <8 x double> @{ROOT}.v(<8 x double> %x, <8 x double> %rough) nounwind alwaysinline {{
%found = call <8 x double> @llvm.x86.avx512.rsqrt14.pd.512(<8 x double> %x, <8 x double> %x, i8 -1)
ret <8 x double> %found
}}
"""  # noqa: E501  # one instruction each


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
    """The functions of a module that have forms for vectors."""
    return sorted(set(_NAME.findall(text)))


def has_form_for_vectors(name: str) -> bool:
    """Whether a function is one of those."""
    return _NAME.fullmatch(f"@{name}(") is not None


@cache
def in_registers() -> bool:
    """Whether this machine looks up a vector at once, and has rough roots."""
    import llvmlite.binding as llvm

    return bool(llvm.get_host_cpu_features().get("avx512f"))


def vectorised(text: str) -> str:
    """A module whose look-ups have forms for vectors, if this machine has."""
    found = names(text)
    if not found or not in_registers():
        return text
    for name in found:
        if name == ROOT:
            text = re.sub(rf"define \w+ double @{ROOT}\([^}}]*\}}", "", text) + _ROOTS
            continue
        head = rf"define \w+ (double @{name}\([^\n]*\))[^\n]*\{{"
        attributes = _ATTRIBUTES.format(name, "v")
        text = re.sub(head, rf"define internal \1 {attributes} {{", text)
        text += _OF_VECTORS.format(name)
    return text + _VECTOR
