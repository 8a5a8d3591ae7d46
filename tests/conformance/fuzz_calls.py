"""Calls of public functions, as tests/peers make them, with other operands and numbers.

A call is noted when a case of tests/peers makes it; `changed` then draws other operands and whole
numbers for it, and `Guarded` puts the operands in the middle of memory that no function may touch.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import warnings
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

import tapegrad as tg
from tests.operations_page import TABLES

CALLS_EACH = 6
DTYPES = ("float64", "float32", "int64", "int32", "bool", "complex128")
LAYOUTS = ("plain", "transposed", "reversed", "steps")
MARGIN = 16  # elements before and after an operand
LARGEST = 400  # elements of an operand
GUARDS = {"f": np.nan, "c": complex(np.nan, np.nan), "i": 0x5BADBEEF, "u": 0x5B, "b": True}
WRITES = {"from_numpy", "asarray", "set_default_dtype", "manual_seed", "set_rng_state", "save"}
Choose = Callable[[Sequence[Any]], Any]


class Kind(NamedTuple):
    """A type of elements, by its name in either library."""

    name: str


class Call(NamedTuple):
    """A function, and arguments in which arrays stand for Tensors."""

    path: str
    args: Any
    named: dict[str, Any]

    def __repr__(self) -> str:
        return f"{self.path}(*{shown(self.args)}, **{shown(self.named)})"


def shown(x: Any) -> Any:
    """Arguments as text; arrays by type and shape."""
    if isinstance(x, np.ndarray):
        return f"{x.dtype}{list(x.shape)} strides {x.strides}"
    if isinstance(x, dict):
        return {k: shown(v) for k, v in x.items()}
    return type(x)(shown(part) for part in x) if type(x) in (list, tuple) else x


def mapped(x: Any, change: Callable[[Any], Any]) -> Any:
    """Arguments, each leaf changed."""
    if isinstance(x, dict):
        return {k: mapped(v, change) for k, v in x.items()}
    if type(x) in (list, tuple):
        return type(x)(mapped(part, change) for part in x)
    return change(x)


def arrays_in(x: Any) -> list[Any]:
    """The arrays among arguments."""
    found: list[Any] = []
    mapped(x, lambda y: found.append(y) if isinstance(y, np.ndarray) else None)
    return found


# -- what is called --------------------------------------------------------------------------------


class Unknown(Exception):
    """An argument that is not described."""


def described(x: Any) -> Any:
    if isinstance(x, tg.Tensor):
        return x.detach().numpy().copy()
    if isinstance(x, tg.dtype):
        return Kind(str(x).rsplit(".", 1)[1])
    if x is None or type(x) in (bool, int, float, complex, str, slice, type(Ellipsis)):
        return x
    raise Unknown


class Noting:
    """tapegrad, or a module of it, that notes the calls of its functions."""

    def __init__(self, module: ModuleType, path: str, calls: dict[str, list[Call]]) -> None:
        self._module, self._path, self._calls = module, path, calls

    def __getattr__(self, name: str) -> Any:
        thing, path = getattr(self._module, name), f"{self._path}{name}"
        if isinstance(thing, ModuleType):
            return Noting(thing, f"{path}.", self._calls)
        home = getattr(thing, "__module__", None) or ""
        if (
            not inspect.isroutine(thing)
            or not home.startswith(("tapegrad.functions.", "tapegrad.nn."))
            or name in WRITES
            or name.endswith("_")
        ):
            return thing

        @functools.wraps(thing)
        def call(*args: Any, **named: Any) -> Any:
            known = self._calls.setdefault(path, [])
            if len(known) < CALLS_EACH:
                try:
                    known.append(Call(path, mapped(args, described), mapped(named, described)))
                except Unknown:
                    return thing(*args, **named)
            return thing(*args, **named)

        return call


@functools.cache
def noted() -> dict[str, list[Call]]:
    """The calls of every function, by its path."""
    calls: dict[str, list[Call]] = {}
    library = Noting(tg, "", calls)
    before, state = tg.get_default_dtype(), tg.get_rng_state()
    tg.set_default_dtype(tg.float64)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for name in TABLES:
            importlib.import_module(f"tests.peers.{name}")
        from tests.peers.torch_cases import CASES, values_of

        for case in CASES:
            operands = [tg.tensor(values_of(x, k + 1)) for k, x in enumerate(case.operands)]
            try:
                case.function(library, *operands)
            except Exception:  # it notes what it called before
                continue
    tg.set_default_dtype(before)
    tg.set_rng_state(state)
    found = {path: [c for c in calls[path] if arrays_in([c.args, c.named])] for path in calls}
    return {path: found[path] for path in sorted(found) if found[path]}


# -- what is changed -------------------------------------------------------------------------------

SHAPES = [
    (),
    (0,),
    (1,),
    (3,),
    (2, 3),
    (3, 1),
    (0, 3),
    (2, 0),
    (1, 1),
    (3, 3),
    (2, 3, 4),
    (2, 1, 1),
]
NUMBERS = (-4, -3, -2, -1, 0, 1, 2, 3, 5)


def other_shape(shape: tuple[int, ...], choose: Choose) -> tuple[int, ...]:
    """The shape, mostly; or one that is like it, or any."""
    how = choose(("same", "same", "same", "same", "one", "none", "longer", "fewer", "more", "any"))
    if how == "any":
        return tuple(choose(SHAPES))
    if how == "more":
        return (2, *shape)
    if not shape or how == "same":
        return shape
    if how == "fewer":
        return shape[1:]
    at = choose(range(len(shape)))
    size = {"one": 1, "none": 0, "longer": shape[at] + 1}[how]
    return (*shape[:at], size, *shape[at + 1 :])


def other_array(x: Any, choose: Choose) -> Any:
    """An array of another shape, type and layout, with the same elements again and again."""
    shape = other_shape(x.shape, choose)
    if int(np.prod(shape)) > LARGEST:
        shape = x.shape
    dtype = np.dtype(choose((x.dtype.name,) * 8 + DTYPES))
    flat = x.reshape(-1) if x.size else np.ones(1, x.dtype)
    flat = flat.real if flat.dtype.kind == "c" and dtype.kind != "c" else flat
    values = np.resize(flat, shape).astype(dtype)
    if dtype.kind == "i" and values.size and choose((False,) * 8 + (True,)):
        values.flat[choose(range(values.size))] = choose((-7, -1, 7, 1000))
    return Guarded(values, choose(LAYOUTS)).view


def other_number(x: Any, choose: Choose) -> Any:
    """Another whole number, now and then."""
    if type(x) is not int or choose((False,) * 3 + (True,)) is False:
        return x
    return choose(NUMBERS)


def changed(call: Call, choose: Choose) -> Call:
    """The call with other operands and numbers."""
    numbers = choose((False, True))

    def change(x: Any) -> Any:
        if isinstance(x, np.ndarray):
            return other_array(x, choose)
        return other_number(x, choose) if numbers else x

    def dims(x: Any) -> Any:  # a dimension that stands there twice
        if numbers and type(x) in (tuple, list) and len(x) > 1 and choose((0, 0, 0, 1)):
            return type(x)([*x[:-1], x[0]]) if all(type(n) is int for n in x) else x
        return x

    args = tuple(dims(x) for x in mapped(tuple(call.args), change))
    return Call(call.path, args, {k: dims(mapped(x, change)) for k, x in call.named.items()})


# -- what is not compared --------------------------------------------------------------------------

CHANCE = (
    "rand", "empty", "dropout", "bernoulli", "poisson", "multinomial", "normal", "gumbel",
    "lowrank", "fractional", "rrelu",
)  # fmt: skip


def of_chance(path: str) -> bool:
    """Whether a function draws random numbers, or leaves memory as it is."""
    return any(word in path.replace("poisson_nll", "") for word in CHANCE)


def shows_memory(call: Call) -> bool:
    """Whether a call shows the memory that an operand lies in, by steps of its own."""
    return call.path.startswith("as_strided")


def writes(call: Call) -> bool:
    """Whether a call writes into an operand because it is asked to: statistics, norms, results."""
    return call.path.endswith(("batch_norm", "instance_norm", "embedding", "threshold"))


# -- where it lies ---------------------------------------------------------------------------------


class Guarded:
    """An array with other memory around and between its elements, which holds a guard."""

    def __init__(self, values: Any, how: str) -> None:
        turned = values.T if how == "transposed" else values
        step = 2 if how in ("steps", "reversed") else 1
        shape = turned.shape
        last = shape[-1] * step if shape else 1
        count = int(np.prod(shape[:-1])) * last
        self.guard = np.asarray(GUARDS[values.dtype.kind]).astype(values.dtype)
        self.memory = np.full(count + 2 * MARGIN, self.guard, values.dtype)
        inside = self.memory[MARGIN : MARGIN + count].reshape(*shape[:-1], last) if shape else None
        view = self.memory[MARGIN : MARGIN + 1].reshape(()) if inside is None else inside
        if shape and step == 2:
            view = view[..., ::-2] if how == "reversed" else view[..., ::2]
        view[...] = turned
        self.view = view.T if how == "transposed" else view


def memory_of(view: Any) -> Any:
    """All memory around an operand."""
    while view.base is not None:
        view = view.base
    return view


# -- what comes out --------------------------------------------------------------------------------


def run(library: Any, call: Call, tensor: Callable[[Any], Any]) -> list[Any] | Exception:
    """All results of a call, or the exception that it raised."""

    def convert(x: Any) -> Any:
        if isinstance(x, np.ndarray):
            return tensor(x)
        return getattr(library, x.name) if isinstance(x, Kind) else x

    function = functools.reduce(getattr, call.path.split("."), library)
    try:
        given = [mapped_call(x, convert) for x in call.args]
        named = {k: mapped_call(x, convert) for k, x in call.named.items()}
        return flat(function(*given, **named))
    except Exception as problem:  # it is compared
        return problem


def mapped_call(x: Any, convert: Callable[[Any], Any]) -> Any:
    if type(x) in (list, tuple):
        return type(x)(mapped_call(part, convert) for part in x)
    return convert(x)


def flat(result: Any) -> list[Any]:
    """Results, one after the other."""
    if isinstance(result, (tuple, list)):
        return [x for part in result for x in flat(part)]
    return [result]


def array_of(x: Any) -> Any:
    """A result as an array."""
    return np.asarray(x.detach().numpy() if hasattr(x, "detach") else x)
