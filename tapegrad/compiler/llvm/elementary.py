"""The functions of `vmath` as LLVM text.

The modules of `kernels.vmath` are run a second time, with names of this module in the place of
Numba's: their functions, called on operands, then write what they compute.  Nothing of them is
written twice, and Numba is not imported.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Sequence
from functools import cache, partial
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, SimpleNamespace
from typing import Any

from tapegrad.compiler.llvm import scipy_calls, ssa
from tapegrad.compiler.llvm.ssa import FLOATS, Block, Operand, Value
from tapegrad.kernels import build, simd_tables

HERE = "tapegrad.kernels."
ATTRIBUTES = "nounwind willreturn memory(none)"
PREFIX, SINGLE, OUTLINED = "vmath.", "single.", "outlined."


@cache
def functions(module: str = "vmath") -> Any:
    """The names of one of the `vmath` modules, its functions taking operands."""
    # Not by `find_spec`, which imports the package, and with it Numba.
    place = Path(build.__file__).parent / module.replace(".", "/")
    source = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    name = HERE + module
    code = SourceFileLoader(name, str(source)).get_code(name)
    assert isinstance(code, CodeType)
    space: dict[str, Any] = {"__name__": f"{name} on operands"}
    space["__builtins__"] = vars(builtins) | {"__import__": _import}
    exec(code, space)
    return SimpleNamespace(**space)


def _import(name: str, *rest: Any) -> Any:
    """What an `import` of a `vmath` module gives."""
    if name == "math":
        return ssa.Math()
    module = name.removeprefix(HERE)
    if module == "flags":
        return SimpleNamespace(scalar=lambda function: function)
    if module in ("simd", "memory"):
        return _PRIMITIVES
    return functions(module) if module != name else builtins.__import__(name, *rest)


# Those of `ssa` take any type of float.
_SINGLE = {f"{name}_f4": getattr(ssa, name) for name in (
    "bits", "copysign", "fma", "from_bits", "horner", "magnitude", "root"
)}  # fmt: skip
_PRIMITIVES = SimpleNamespace(
    **vars(ssa), **_SINGLE, select_f4=partial(ssa.select, kind="float"), floor_f8=ssa.floor
)


@cache
def _functions() -> dict[str, Any]:
    """The functions by their names; those that compute in float32 are called `single.`."""
    single = functions("vmath.single")
    found: dict[str, Any] = dict(vars(functions()))
    return found | {SINGLE + name: getattr(single, name) for name in single.__all__}


def of_type(name: str, type: str) -> str:
    """The function that serves an argument of a type: of float32 one in that type, if there is one.

    >>> from tapegrad.compiler.llvm.elementary import of_type
    >>> of_type("exp", "float"), of_type("exp", "double"), of_type("lgamma", "float")
    ('single.exp', 'exp', 'lgamma')
    """
    return SINGLE + name if type == "float" and SINGLE + name in _functions() else name


class _Fork(Exception):
    """The traced function has come to a branch."""

    def __init__(self, condition: Value) -> None:
        self.condition = condition


class _Path(Block):
    """The code of one path through a function's branches."""

    def __init__(self, choices: str) -> None:
        super().__init__()
        self._choices = choices
        self._taken = ""

    def decide(self, condition: Value) -> bool:
        """The branch that this path takes; code up to it is written, so the block starts anew."""
        at = len(self._taken)
        if at == len(self._choices):
            raise _Fork(condition)
        self._taken += self._choices[at]
        self.prefix = f"w{self._taken}."
        self.lines.clear()
        return self._choices[at] == "1"


class Definition:
    """A function of `vmath` for arguments of one type: its LLVM text and what that calls."""

    __slots__ = ("branches", "lines", "result", "text", "used")

    def __init__(self, name: str, type: str) -> None:
        function = _functions()[name]
        count = function.__code__.co_argcount
        self.lines: list[str] = []
        self.used: set[str] = set()
        self.result = ""
        self.branches = False
        self._follow(function, [Value(f"%x{i}", type) for i in range(count)], "")
        arguments = ", ".join(f"{type} %x{i}" for i in range(count))
        inlined = "noinline" if self.branches else "alwaysinline"
        body = "\n".join(line if line.endswith(":") else "  " + line for line in self.lines)
        self.text = (
            f"define internal {self.result} @{symbol(name, type)}({arguments}) {ATTRIBUTES} "
            f'{inlined} "prefer-vector-width"="512" {{\n{body}\n}}\n'
        )

    def _follow(self, function: Any, arguments: list[Value], choices: str) -> None:
        """Write the code after some choices, and at the next branch both paths from there."""
        path = _Path(choices)
        try:
            value = function(*[Operand(path, x) for x in arguments]).value
        except _Fork as fork:
            yes, no = f"b{choices}1", f"b{choices}0"
            self.branches = True
            self.lines += [*path.lines, f"br {fork.condition}, label %{yes}, label %{no}"]
            for label in (yes, no):
                self.lines.append(f"{label}:")
                self._follow(function, arguments, label[1:])
        else:
            self.lines += [*path.lines, f"ret {value}"]
            self.result = value.type
        self.used |= path.used


def symbol(name: str, type: str) -> str:
    """What the function is called in LLVM text."""
    return f"{PREFIX}{name}.{FLOATS[type]}"


@cache
def definition(name: str, type: str) -> Definition:
    """The definition of a function for arguments of one type, made once."""
    return Definition(name, type)


def definitions(used: set[str]) -> str:
    """LLVM text for every function in `Block.used`: definitions, and declarations of the others.

    >>> from tapegrad.compiler.llvm.elementary import definitions
    >>> print(definitions({"llvm.fma.f64", "cos"}))
    declare double @cos(double) nounwind willreturn memory(none)
    declare double @llvm.fma.f64(double, double, double)
    """
    of_symbol = {symbol(n, t): (n, t) for n in _functions() for t in FLOATS}
    ours = [definition(*of_symbol[name]) for name in sorted(used) if name in of_symbol]
    others = {name for name in used if name not in of_symbol}
    others = others.union(*(one.used for one in ours))
    return "\n".join([*map(_declaration, sorted(others)), *(one.text for one in ours)])


def _named(name: str) -> Definition:
    function, _, suffix = name.removeprefix(PREFIX).rpartition(".")
    return definition(function, {short: long for long, short in FLOATS.items()}[suffix])


def branches(name: str) -> bool:
    """Whether a function of `vmath` has branches: then it is no part of a loop that vectorises."""
    return _named(name).branches


def calls(name: str) -> frozenset[str]:
    """The functions that a function of `vmath` calls."""
    return frozenset(_named(name).used)


def multiplications(lines: Sequence[str]) -> int:
    """How many fused multiplications and additions lines do, with the functions that they call."""
    called = [found[1] for line in lines if (found := _CALL.search(line))]
    inner = [_multiplications(name) for name in called if name.startswith(PREFIX)]
    return sum([*inner, *[1 for name in called if name.startswith("llvm.fma.")]])


@cache
def _multiplications(name: str) -> int:
    lines: list[str] = _named(name).lines
    return multiplications(lines)


_CALL = re.compile(r" call \w+ @([\w.]+)\(")


def outlined_name(name: str) -> str:
    """The name of a function that is outlined: compiled once for all programs.

    >>> from tapegrad.compiler.llvm.elementary import outlined_name
    >>> outlined_name("vmath.exp.f64")
    'outlined.exp.f64'
    """
    return OUTLINED + name.removeprefix(PREFIX)


def declarations(used: set[str]) -> str:
    """Declarations of outlined functions.

    >>> from tapegrad.compiler.llvm.elementary import declarations
    >>> print(declarations({"vmath.exp.f64"}))
    declare double @outlined.exp.f64(double) nounwind willreturn memory(none)
    """
    lines = []
    for name in sorted(used):
        head = _HEAD.search(_named(name).text)
        assert head is not None
        arguments = ", ".join(part.split()[0] for part in head[2].split(", "))
        lines.append(f"declare {head[1]} @{outlined_name(name)}({arguments}) {ATTRIBUTES}")
    return "\n".join(lines)


@cache
def address(name: str) -> int:
    """The address of an outlined function, which is compiled on first use.

    >>> from tapegrad.compiler.llvm.elementary import address
    >>> address("outlined.exp.f64") == address("outlined.exp.f64") > 0
    True
    """
    whole = definitions({PREFIX + name.removeprefix(OUTLINED)})
    return build.assemble(_HEAD.sub(rf"define \1 @{build.SYMBOL}(\2)", whole))


_HEAD = re.compile(r"^define internal (\w+) @[^(]*\(([^)]*)\)", re.MULTILINE)
_COUNT = {"llvm.fma": 3, "llvm.fmuladd": 3, "llvm.copysign": 2, "atan2": 2}


def _declaration(name: str) -> str:
    if name == simd_tables.ROOT:
        return simd_tables.DEFINITION_OF_ROOT
    if name in ssa.TABLES:
        return simd_tables.definition(name, ssa.TABLES[name])
    if name.startswith(scipy_calls.PREFIX):
        return scipy_calls.declaration(name)
    if name.startswith("llvm."):
        base, suffix = name.rsplit(".", 1)
        type = {short: long for long, short in FLOATS.items()}[suffix]
        return f"declare {type} @{name}({', '.join([type] * _COUNT.get(base, 1))})"
    base = name.removesuffix("f") if name not in ssa.LIBM else name
    type = "double" if base == name else "float"
    return f"declare {type} @{name}({', '.join([type] * _COUNT.get(base, 1))}) {ATTRIBUTES}"
