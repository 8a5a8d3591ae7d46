"""Call a derivative from Python: compile it on demand, pack the arguments, unpack the results."""

from __future__ import annotations

import ctypes
import inspect
import weakref
from collections.abc import Callable, Iterable, Sequence
from itertools import compress
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numba.core.dispatcher import Dispatcher

from tapegrad.base.garbage import seldom_collected
from tapegrad.base.locks import lock
from tapegrad.base.text_tables import byte_count
from tapegrad.njit import marshalling
from tapegrad.njit.derivative_program import DerivativeProgram, Request, default_limit
from tapegrad.njit.marshalling import Array
from tapegrad.njit.numba_front.objects import types
from tapegrad.njit.runtime_text import NO_MEMORY, RAISED
from tapegrad.njit.three_address_code import SourceLine, Unsupported
from tapegrad.transforms.call_arguments import name_of

RUNS_ONCE = ("grad", "value_and_grad", "hvp", "jvp", "explain")
FLOATS = (np.float64, np.float32, np.complex128, np.complex64)
_programs: weakref.WeakKeyDictionary[Dispatcher, dict[Request, DerivativeProgram]]
_programs = weakref.WeakKeyDictionary()
# The same for arguments of types that are quickly told.
_known: weakref.WeakKeyDictionary[Dispatcher, dict[Any, DerivativeProgram]]
_known = weakref.WeakKeyDictionary()
_lock = lock()


def program_of(f: Dispatcher, request: Request) -> DerivativeProgram:
    """The program for a request, compiled when it is first wanted."""
    with _lock:
        known = _programs.setdefault(f, {})
        if request not in known:
            with seldom_collected():
                known[request] = DerivativeProgram(f, request)
        return known[request]


class Outcome(NamedTuple):
    """What a call gives.

    The gradients of the leaves of the arguments that were differentiated in, and in forward mode
    the tangents of all.
    """

    value: Any
    gradients: list[Any]
    tangent: Any = None
    gradient_tangents: list[Any] | None = None


def all_positional(f: Dispatcher, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """The arguments of a call in order, with defaults."""
    rest = None if kwargs else omitted(f, len(args))
    if rest is not None:
        return args + rest
    bound = inspect.signature(f.py_func).bind(*args, **kwargs)
    bound.apply_defaults()
    if bound.kwargs:
        raise TypeError(f"`{name_of(f)}` takes arguments by name alone, which is not supported")
    return bound.args


def omitted(f: Dispatcher, count: int) -> tuple[Any, ...] | None:
    """The defaults of what a call with so many arguments leaves out; None if it is no such call."""
    code, defaults = f.py_func.__code__, f.py_func.__defaults__ or ()
    missing = code.co_argcount - count
    varies = code.co_kwonlyargcount or code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    if varies or not 0 <= missing <= len(defaults):
        return None
    return defaults[len(defaults) - missing :]


def argument_name(f: Dispatcher, k: int) -> str:
    """The name of an argument by its number; those of `*args` share theirs."""
    names = list(inspect.signature(f.py_func).parameters)
    return names[min(k, len(names) - 1)]


OTHERS = "`argnums` chooses the arguments that are differentiated in"
# What to do, by the kind of a dtype.
REMEDIES = {
    **dict.fromkeys("iub", f"pass a float (1.0 instead of 1), or `x.astype(float)`; {OTHERS}"),
    "f": "there are float64 and float32: convert the array with `x.astype(float)`",
    "c": "there are complex128 and complex64: convert it with `astype(complex)`",
}


class Evaluator:
    """Calls derivatives of one function; errors say for which transform."""

    def __init__(self, f: Dispatcher, name: str, max_memory: int | None = None) -> None:
        self.f, self.name = f, name
        self.limit = default_limit() if max_memory is None else max_memory
        self.known = _known.setdefault(f, {})
        self.repeats = 0  # how often one run was not enough
        self.large: set[Any] = set()  # sizes of arguments that took too much memory

    def check(self, args: Sequence[Any], chosen: Sequence[int]) -> list[Any]:
        """The leaves of the arguments that are differentiated in, all of them floats."""
        found = []
        for k in chosen:
            for leaf in marshalling.leaves(args[k]):
                number = isinstance(leaf, marshalling.NUMBERS)
                dtype = np.asarray(leaf).dtype if number else type(leaf).__name__
                if not number or np.dtype(dtype).newbyteorder("=") not in FLOATS:
                    kind = np.dtype(dtype).kind if number else ""
                    raise TypeError(
                        f"`{self.name}` needs floating-point arguments, got {dtype} in argument "
                        f"{k} of `{name_of(self.f)}`: {REMEDIES.get(kind, OTHERS)}"
                    )
                found.append(leaf)
        return found

    def run(
        self, args: Sequence[Any], chosen: tuple[int, ...], *, whole: bool = True,
        seeds: Sequence[Any] | None = None, directions: Sequence[Any] | None = None,
        moved: tuple[int, ...] | None = None,
        check: Callable[[DerivativeProgram], None] = lambda program: None, restores: bool = True,
        value: bool = True,
    ) -> Outcome:  # fmt: skip
        """Run a program, after a check; where it gives NaN, anew with strong products.

        A product that is not strong makes NaN of zero and infinity, which no later sum or product
        takes away.  It lets LLVM fuse multiplications and additions.
        `seeds` are the adjoints of the leaves of the result, 1 if none are given; `directions` are
        tangents of the leaves of all arguments, None for those that stay; `moved` are the arguments
        for which the program is compiled to have some.  Without `value` that and its tangent are
        not found.
        """
        originals, args = list(args), [marshalling.contiguous(x) for x in args]
        found = None
        if moved is None:
            moved = _moved(args, directions)
        for strong in (False, True):
            wanted = chosen, whole, moved, restores, strong, value
            program = self._program(args, wanted)
            if not strong:
                check(program)
                self.refuse_overlap(program.written, originals)
                self.refuse_draws(program.draws)
            found = self._outcome(program, args, wanted, seeds, directions)
            self.repeats += strong
            if program.draws or not _has_nan(found):
                break
        assert found is not None
        return found

    def _outcome(
        self, program: DerivativeProgram, args: list[Any], wanted: tuple[Any, ...],
        seeds: Sequence[Any] | None, directions: Sequence[Any] | None,
    ) -> Outcome:  # fmt: skip
        """Run a program; where that takes too much memory, one with checkpoints.

        Sizes of arguments for which it did are remembered: there that one is the first to be tried.
        """
        first = bool(self.large) and sizes_of(args) in self.large
        reverses = wanted[0] and directions is None
        for checkpoints in (False, True)[first : 1 + bool(reverses)]:
            if checkpoints:
                program = self._program(args, (*wanted, True))
                if not program.has_checkpoints:
                    break
            call = Call(program, args, seeds, directions)
            words = call.run(self, args)
            if words is not None:
                if checkpoints:
                    self.large.add(sizes_of(args))
                return call.outcome(words)
        return self.failed(NO_MEMORY, args)

    def _program(self, args: list[Any], wanted: tuple[Any, ...]) -> DerivativeProgram:
        """The program for arguments like these."""
        types_key = marshalling.type_fingerprint(args)
        key = (types_key, *wanted)
        program = None if types_key is None else self.known.get(key)
        if program is None:
            program = program_of(self.f, Request(marshalling.kinds_of(args), *wanted))
            if types_key is not None:
                self.known[key] = program
        return program

    def refuse_overlap(self, written: Iterable[int], args: Sequence[Any]) -> None:
        """Refuse arrays that are written into under one name and seen under another."""
        for k in written:
            for j, other in enumerate(args):
                if other is args[k] and j != k:
                    self._overlap(k, j)
            for a in marshalling.arrays_in(args[k]):
                if marshalling.overlaps_itself(a):
                    self._overlap(k, k)
                for j, other in enumerate(args):
                    for b in marshalling.arrays_in(other):
                        if (a is b and j != k) or (a is not b and np.may_share_memory(a, b)):
                            self._overlap(k, j)

    def refuse_draws(self, line: SourceLine | None) -> None:
        """Refuse a line that may draw other numbers each time, where it runs several times."""
        if line is not None and self.name not in RUNS_ONCE:
            raise Unsupported(
                f"`{self.name}` runs `{name_of(self.f)}` several times, and line {line.line} of "
                f"`{line.function}` may give something else each time, as what is not known here "
                "may, too: draw random numbers before, and pass them as an argument"
            )

    def _overlap(self, k: int, j: int) -> None:
        raise ValueError(
            f"`{self.name}`: `{name_of(self.f)}` writes into argument {k}, whose memory overlaps "
            f"that of argument {j}: pass a copy of one of them"
        )

    def failed(self, status: int, args: list[Any]) -> NoReturn:
        """Raise what the function itself raises."""
        if status == RAISED:
            if self.f(*map(marshalling.copied, args)) is None:
                raise TypeError(f"`{self.name}`: `{name_of(self.f)}` returned None")
            if self.f.targetoptions.get("parallel"):  # threads do not hand on what they raise
                options = {**self.f.targetoptions, "parallel": False}
                alone = type(self.f)(self.f.py_func, targetoptions=options)
                alone(*map(marshalling.copied, args))
            raise RuntimeError(
                f"`{self.name}`: the compiled sweep of `{name_of(self.f)}` raised, and the "
                "function did not, when it was called to see what: factors have no derivative "
                "where a matrix is singular (`np.linalg.qr`), arrays may be fields of packed "
                "records, and integers beyond 2**53 have no place in lists of tuples with floats"
            )
        raise MemoryError(
            f"`{self.name}` of `{name_of(self.f)}`: what the reverse sweep reads takes more than "
            f"{byte_count(self.limit)}: raise `max_memory`, differentiate in parts, or bring the "
            "outermost loop into a form that can be run again in segments: a `for` over a range "
            "that nothing leaves early, and that carries numbers, and arrays made before it "
            "(`tapegrad.explain` says what takes how much)"
        )


def sizes_of(args: Sequence[Any]) -> tuple[Any, ...]:
    """The shapes of arrays and the integers, on which the numbers of trips depend first of all."""
    leaves = [leaf for x in args for leaf in marshalling.leaves(x)]
    return tuple([getattr(x, "shape", x if isinstance(x, int) else None) for x in leaves])


def _moved(args: Sequence[Any], directions: Sequence[Any] | None) -> tuple[int, ...] | None:
    """The arguments of which a leaf has a tangent, or None if there are no tangents."""
    if directions is None:
        return None
    rest = iter(directions)
    along = [[next(rest, None) for _ in marshalling.leaves(x)] for x in args]
    return tuple([k for k, found in enumerate(along) if any(d is not None for d in found)])


def _has_nan(found: Outcome) -> bool:
    """Whether a derivative is NaN."""
    moved = found.gradient_tangents or []
    leaves = [*found.gradients, *moved, *marshalling.leaves(found.tangent)]
    return any(x is not None and _holds_nan(x) for x in leaves)


def _holds_nan(x: Any) -> bool:
    """Whether a number is NaN, or an element: the least is then.

    A product of vectors would be quicker, and would wake the threads of BLAS.
    """
    if not isinstance(x, np.ndarray):
        return bool(x != x)
    if not x.size:
        return False
    least = np.minimum.reduce(x, None)
    return bool(least != least)


class Call:
    """One call of a program."""

    def __init__(
        self, program: DerivativeProgram, args: list[Any], seeds: Sequence[Any] | None,
        directions: Sequence[Any] | None,
    ) -> None:  # fmt: skip
        self.program, self.directions = program, directions
        written = program.written
        args = [marshalling.copied(x, True) if k in written else x for k, x in enumerate(args)]
        kinds, followed = program.request.kinds, program.followed
        self.kept: list[Any] = [args]
        flat = marshalling.flat
        components = iter([c for t, x in zip(kinds, args) for c in flat(t, x, self.kept)])
        self.leaves = [*compress([leaf for x in args for leaf in marshalling.leaves(x)], followed)]
        if directions is not None:
            self.directions = directions = [*compress(directions, followed)]
        self.shadows: dict[Any, Array] = {}
        self.moved: dict[Any, Array] = {}  # tangents of the shadows
        words, tangents = list[Any](), list[Any]()
        for kind, p in program.words.inputs:
            if kind == "value":
                words.append(next(components))
            elif kind == "shadow":
                words.append(self._zeros(self.shadows, p))
            else:
                words.append(self._seed(p, seeds))
            if directions is not None:
                tangents.append(self._tangent(kind, p, directions))
        self.words = program.packed(*words, *tangents)

    def _zeros(self, kept: dict[Any, Array], p: Any) -> int:
        leaf = self.leaves[self.program.leaf_of[p]]
        kept[p] = np.zeros(leaf.shape, leaf.dtype)
        return marshalling.address_of(kept[p])

    def _tangent(self, kind: str, p: Any, directions: Sequence[Any]) -> Any:
        """The tangent of a word; of an adjoint that a sweep begins with it is zero."""
        if kind == "shadow":
            return self._zeros(self.moved, p)
        if kind == "seed" or p not in self.program.leaf_of:
            return 0
        leaf = self.leaves[self.program.leaf_of[p]]
        direction = directions[self.program.leaf_of[p]]
        if p.type != "ptr":
            if direction is None or p.type not in ("f64", "f32"):
                return 0
            return direction.imag if p.attribute.is_imaginary else direction.real
        if p.attribute.element not in ("f64", "f32") or p not in self.program.moving:
            return 0
        given = np.zeros(leaf.shape) if direction is None else direction
        # Where the function writes into an argument, it writes into its tangent.
        writes = p.attribute.argument in self.program.written
        array: Array = np.array(given, leaf.dtype, order="C", copy=writes or None)
        self.kept.append(array)
        return marshalling.address_of(array)

    def _seed(self, place: int, seeds: Sequence[Any] | None) -> Any:
        number, t, part = self.program.result_leaves[place]
        seed: Any = 1.0 if seeds is None else seeds[number]
        if not isinstance(t, types.Array):
            return getattr(seed, part) if part else seed
        self.kept.append(seed)
        return marshalling.address_of(seed)

    def run(self, evaluator: Evaluator, args: list[Any]) -> tuple[Any, ...] | None:
        """Run; returns the words of the results, or None where there is not enough memory."""
        out = ctypes.create_string_buffer(self.program.out_bytes)
        status = self.program.call(self.words, out, evaluator.limit)
        if status == NO_MEMORY:
            return None
        if status:
            evaluator.failed(status, args)
        return self.program.unpacked(out)

    def outcome(self, found: Any) -> Outcome:
        """Read what a run has found."""
        program = self.program
        count, value, tangent, moved = len(program.words.outputs), None, None, None
        try:
            if program.request.value:
                value = marshalling.result_of(program.result, found)
            if self.directions is not None:
                if program.request.value:
                    tangent = marshalling.result_of(program.result, found, found[count:])
                moved = self._gradients(self.moved, found[count:])
        finally:
            if program.owns:
                program.release(found[program.owner_word])
        return Outcome(value, self._gradients(self.shadows, found), tangent, moved)

    def _gradients(self, shadows: dict[Any, Array], words: Sequence[Any]) -> list[Any]:
        found: list[Any] = []
        for p, number in self.program.leaf_of.items():
            if p.attribute.argument not in self.program.request.arguments:
                continue
            leaf = self.leaves[number]
            if p.type == "ptr" and not p.attribute.element:  # a handle, in a tuple
                found.append(None)
            elif p.type == "ptr":
                found.append(shadows[p] if p in shadows else np.zeros(leaf.shape, leaf.dtype))
            elif ("gradient", p) not in self.program.words.output:  # an integer, in a tuple
                found.append(None)
            else:
                g = words[self.program.words.output["gradient", p]]
                if p.attribute.is_imaginary:
                    g = complex(found.pop(), g)
                found.append(type(leaf)(g) if isinstance(leaf, np.inexact) else g)
        return found
