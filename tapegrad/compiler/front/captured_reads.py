"""Find what a function reads from its surroundings: globals, closures, attributes.

They are constants of a program, which is valid as long as they do not change.  They are found in
the byte code of the function, and of functions that it calls; dynamic reads (`getattr`, items of
lists, attributes of values passed to another function) are not.
"""

from __future__ import annotations

import ctypes
import dis
import functools
import gc
import random
import sys
from collections.abc import Iterator
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any, NamedTuple

import numpy as np

from tapegrad.base.cpython import slot_offset
from tapegrad.compiler.front.static_args import key_of
from tapegrad.tensor import Tensor

MOST = 100  # functions that are scanned
MISSING: Any = type("Missing", (), {"__repr__": lambda self: "nothing"})()
SCALARS = (int, float, complex, bool, str, bytes, type(None), np.generic)
CHANCE = (np.random.Generator, np.random.RandomState, random.Random)
_DEFINED = (ModuleType, type, FunctionType, BuiltinFunctionType, np.ufunc)
_GLOBAL = np.random.mtrand._rand  # the generator of `np.random.randn` and the like
_LOADS = {"LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"}


class Read(NamedTuple):
    """A read of a name in a dictionary, or of a cell (`key` is None), and its value."""

    place: Any
    key: Any
    value: Any
    text: str  # as a program says it

    def now(self) -> Any:
        """The current value."""
        if self.key is not None:
            return self.place.get(self.key, MISSING)
        try:
            return self.place.cell_contents
        except ValueError:
            return MISSING

    def holds(self) -> bool:
        """Whether the value is the same, or an equal number or string."""
        now = self.now()
        return now is self.value or (
            _plain(now) and _plain(self.value) and bool(key_of(now) == key_of(self.value))
        )


def _plain(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(map(_plain, value))
    return isinstance(value, SCALARS)


def _is_constant(value: Any) -> bool:
    return isinstance(value, (np.ndarray, Tensor, *CHANCE)) or _plain(value)


class Slots(NamedTuple):
    """An object with `__slots__`, read like a dictionary."""

    owner: Any

    def get(self, key: str, default: Any) -> Any:
        """The value of a slot."""
        return getattr(self.owner, key, default)

    def address(self, key: str) -> int:
        """The address of a slot, whatever its value."""
        return id(self.owner) + slot_offset(_found_in(type(self.owner), key))

    def as_expected(self, key: str) -> bool:
        """Whether the address holds the slot's value."""
        pointer = ctypes.c_int64.from_address(self.address(key)).value
        return pointer == id(getattr(self.owner, key, MISSING))


class Use(NamedTuple):
    """A name read by code, and the attributes and items taken of it."""

    name: str
    path: tuple[tuple[str, Any], ...]
    outside: bool  # a global
    kept: tuple[str, ...] = ()  # the local names that the result gets


@functools.lru_cache(4096)
def uses(code: CodeType) -> tuple[tuple[Use, ...], frozenset[str]]:
    """The names that code reads, in order, and the names and attributes that it writes."""
    found: list[Use] = []
    changed = set()
    at: Use | None = None
    constant: Any = MISSING
    for step in dis.get_instructions(code):
        name, what = step.opname, step.argval
        if at is not None and name in ("LOAD_ATTR", "LOAD_METHOD"):
            at = at._replace(path=(*at.path, ("attr", what)))
            continue
        if at is not None and name in ("LOAD_CONST", "LOAD_SMALL_INT"):
            constant = what
            continue
        subscript = name == "BINARY_SUBSCR" or (name, step.argrepr) == ("BINARY_OP", "[]")
        if at is not None and subscript and isinstance(constant, (str, int)):
            at, constant = at._replace(path=(*at.path, ("item", constant))), MISSING
            continue
        if at is not None:
            kept: tuple[str, ...] = ()
            if name.startswith("STORE_FAST"):
                kept = (what,) if isinstance(what, str) else (what[0],)
            found.append(at._replace(kept=kept))
        at, constant = None, MISSING
        if name in ("STORE_GLOBAL", "STORE_NAME", "STORE_ATTR"):
            changed.add(what)
        elif name == "STORE_DEREF":  # its own cells, of comprehensions too, may hide another name
            changed.update({what} & {*code.co_freevars})
        elif name in ("LOAD_GLOBAL", "LOAD_NAME"):
            at = Use(what, (), outside=True)
        elif name in _LOADS or name.startswith("LOAD_FAST") or name == "STORE_FAST_LOAD_FAST":
            if name.startswith("LOAD_FAST") and isinstance(what, tuple):  # two, since Python 3.13
                found.append(Use(what[0], (), outside=False))
            at = Use(what if isinstance(what, str) else what[-1], (), outside=False)
    return tuple(found), frozenset(changed)


_NUMERIC = ("tapegrad", "numpy", "scipy", "numba")


@functools.lru_cache(1024)
def _installed(package: str) -> bool:
    """Whether a package is skipped, unless the function belongs to it."""
    file = getattr(sys.modules.get(package), "__file__", None) or ""
    return _fixed(package) or "-packages" in file


def _fixed(package: str) -> bool:
    """Whether a package is Python's own or a numerical one: its content does not change."""
    return package in _NUMERIC or (package in sys.stdlib_module_names and package != "__main__")


class CapturedReads:
    """The values that a function captures, found before it is traced."""

    def __init__(self, f: Any, args: tuple[Any, ...] = ()) -> None:
        self.reads: dict[tuple[int, Any], Read] = {}
        self.generators: dict[int, Any] = {}
        self._own: str | None = None  # the package of the function
        self._seen: set[tuple[int, int]] = set()
        self._objects: set[int] = set()  # the dictionaries of objects
        self._alive: list[Any] = []  # keeps alive what these two know by address
        self.look(f, args)
        self._before = self._states()

    # -- random numbers --------------------------------------------------------------------

    def _states(self) -> list[tuple[str, Any]]:
        found: list[tuple[str, Any]] = [("`random`", random.getstate())]
        found.append(("`np.random`", _GLOBAL.get_state(legacy=False)))
        for source in self.generators.values():
            name = f"a `{type(source).__name__}` from outside"
            if isinstance(source, np.random.Generator):
                found.append((name, source.bit_generator.state))
            elif isinstance(source, np.random.RandomState):
                found.append((name, source.get_state(legacy=False)))
            else:
                found.append((name, source.getstate()))
        return found

    def drawn_from(self) -> str | None:
        """Where random numbers were drawn from since, by whatever thread."""
        for (source, before), (_, after) in zip(self._before, self._states(), strict=True):
            if not _same(before, after):
                return source
        return None

    def _library(self, module: str | None) -> bool:
        """Whether a module belongs to another, installed package than the function."""
        package = (module or "").partition(".")[0]
        if self._own is None and not _fixed(package):
            self._own = package
        return package != self._own and _installed(package)

    def kept(self) -> tuple[Read, ...]:
        """The reads to check before a call, except what the function itself has changed."""
        return tuple([read for read in self.reads.values() if read.now() is read.value])

    # -- names -----------------------------------------------------------------------------

    def look(self, f: Any, args: tuple[Any, ...] = ()) -> None:
        """Scan a callable, given the known arguments."""
        key = id(f), id(args[0]) if args else 0
        if key in self._seen or len(self._seen) > MOST:
            return
        self._seen.add(key)
        self._alive.append((f, args))
        if isinstance(f, MethodType):
            self.look(f.__func__, (f.__self__, *args))
        elif isinstance(f, functools.partial):
            self.look(f.func, (*f.args, *args))
        elif isinstance(f, (staticmethod, classmethod)):
            self.look(f.__func__)
        elif isinstance(f, FunctionType):
            cells = dict(zip(f.__code__.co_freevars, f.__closure__ or (), strict=True))
            if self._library(f.__globals__.get("__name__")):  # a wrapper names another module
                for cell in cells.values():
                    self._within(Read(cell, None, None, "").now())
            else:
                self._code(f.__code__, f.__globals__, {**cells, **_bound(f, args)})
        elif isinstance(f, type):
            if not self._library(f.__module__) and hasattr(f, "backward") and hasattr(f, "apply"):
                for name in ("forward", "backward", "setup_context", "jvp", "vjp"):
                    self.look(vars(f).get(name))
        elif self._library(type(f).__module__):
            self._within(f, args)
        elif isinstance(call := _found_in(type(f), "__call__"), FunctionType):
            self.look(call, (f, *args))

    def _within(self, x: Any, args: tuple[Any, ...] = ()) -> None:
        """Scan the functions inside the library's own callables."""
        if isinstance(x, (FunctionType, MethodType, functools.partial)):
            self.look(x)
        elif isinstance(x, (tuple, list)):
            for part in x[:16]:
                self._within(part)
        elif type(x).__module__.startswith("tapegrad.") and hasattr(x, "__dict__"):
            for part in list(vars(x).values()):
                if callable(part) and not isinstance(part, type):
                    self.look(part, args)
        elif callable(x) and not isinstance(x, type):
            self.look(x)

    def _code(self, code: CodeType, outside: dict[str, Any], names: dict[str, Any]) -> None:
        used, changed = uses(code)
        for use in used:
            if use.name in changed:
                continue
            reads: list[Read] = []
            value = self._root(use, outside, names, reads)
            whole = True
            for how, key in use.path:
                known = len(reads)
                found = MISSING
                if not (value is MISSING or _is_constant(value) or key in changed):
                    found = self._step(value, how, key, reads)
                if found is MISSING:  # what it is of is all that is known
                    del reads[known:]
                    whole = False
                    break
                value = found
            if value is not MISSING:
                self._found(value, reads)
                for name in use.kept if whole else ():
                    names[name] = value
        for inner in code.co_consts:
            if isinstance(inner, CodeType):
                seen = {name: names[name] for name in inner.co_freevars if name in names}
                self._code(inner, outside, seen)

    def _root(
        self, use: Use, outside: dict[str, Any], names: dict[str, Any], reads: list[Read]
    ) -> Any:
        place = outside if use.outside else names.get(use.name, MISSING)
        if use.outside or isinstance(place, CellType):
            read = Read(place, use.name if use.outside else None, MISSING, f"`{use.name}`")
            reads.append(_looked_up(read))
            return reads[-1].value
        return place

    def _step(self, value: Any, how: str, key: Any, reads: list[Read]) -> Any:
        """Look up an item or an attribute without running the user's code."""
        text = reads[-1].text[1:-1] if reads else type(value).__name__
        if how == "item":
            if type(value) is dict:
                reads.append(Read(value, key, value.get(key, MISSING), f"`{text}[{key!r}]`"))
                return reads[-1].value
            return MISSING
        of_class = False
        for place in self._places(value):
            reads.append(_looked_up(Read(place, key, MISSING, f"`{text}.{key}`")))
            found = reads[-1].value
            if of_class and isinstance(found, MemberDescriptorType):
                reads[-1] = _looked_up(Read(Slots(value), key, MISSING, reads[-1].text))
                return reads[-1].value
            if of_class and isinstance(found, property):
                self.look(found.fget, (value,))
                return MISSING
            if of_class and callable(found) and hasattr(found, "__get__"):
                return MethodType(found, value)
            if found is not MISSING:
                return found
            of_class = not isinstance(value, type)
        return MISSING

    def _places(self, value: Any) -> Iterator[Any]:
        """The dictionaries that attributes of an object are looked up in, its own first."""
        if isinstance(value, ModuleType):
            if not self._library(value.__name__):
                yield vars(value)
            return
        if isinstance(value, type):
            self.look(value)
        else:
            try:
                own = object.__getattribute__(value, "__dict__")
            except AttributeError:
                own = {}
            self._objects.add(id(own))
            self._alive.append(own)
            yield own
        for base in (value if isinstance(value, type) else type(value)).__mro__:
            if not self._library(base.__module__):
                yield _dictionary(vars(base))

    def _found(self, value: Any, reads: list[Read]) -> None:
        """Note a read of a constant or an object, and scan callables."""
        if isinstance(value, CHANCE):
            self.generators[id(value)] = value
            return
        if not isinstance(value, MethodType):
            for read in reads:
                # What is defined once is not defined anew, other than what is put into an object.
                if not isinstance(read.value, _DEFINED) or id(read.place) in self._objects:
                    self.reads.setdefault((id(read.place), read.key), read)
        if callable(value) and not _is_constant(value):
            self.look(value)


def _looked_up(read: Read) -> Read:
    return read._replace(value=read.now())


def _bound(f: FunctionType, args: tuple[Any, ...]) -> dict[str, Any]:
    """The arguments that are known, by name."""
    names = f.__code__.co_varnames[: f.__code__.co_argcount]
    return {name: x for name, x in zip(names, args, strict=False) if x is not MISSING}


def _found_in(kind: type, name: str) -> Any:
    return next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)


def _dictionary(attributes: MappingProxyType[str, Any]) -> Any:
    """The `__dict__` of a class, which compiled code can read."""
    found = gc.get_referents(attributes)
    return found[0] if len(found) == 1 and type(found[0]) is dict else attributes


def drawn(name: str, source: str) -> RuntimeError:
    """The error about a function that draws random numbers, which its program would repeat."""
    return RuntimeError(
        f"`jit`: {name} draws random numbers from {source} while it is traced, and its "
        "program would use these in every call: draw them outside and pass them as "
        "an argument; or make the generator in the function, "
        "`np.random.default_rng(seed)`, if they are to be the same in every call"
    )


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        return all(_same(a[key], b[key]) for key in a)
    return bool(np.array_equal(a, b)) if isinstance(a, np.ndarray) else bool(a == b)


def native(reads: tuple[Read, ...]) -> bool:
    """Whether compiled code can check all of them."""
    return all(
        type(read.place) in (dict, CellType)
        or (type(read.place) is Slots and read.place.as_expected(read.key))
        for read in reads
    )
