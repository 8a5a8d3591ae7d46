"""A derivative of a compiled function for arguments of given types, as machine code."""

from __future__ import annotations

import ctypes
import itertools
import os
import struct
import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

from numba.core.dispatcher import Dispatcher
from numba.np.ufunc import parallel

from tapegrad.base.locks import lock
from tapegrad.compiler.llvm import scipy_calls
from tapegrad.kernels import build
from tapegrad.njit.activity import Activity, refuse_active_calls
from tapegrad.njit.check_sinking import sink_divisor_checks
from tapegrad.njit.checkpoints import StateSweep, checkpoints_of
from tapegrad.njit.dual_emitter import DualEmitter
from tapegrad.njit.forward_sweep import ForwardSweep
from tapegrad.njit.idle_trips import leave_out_idle_trips
from tapegrad.njit.loop_arrays import ForwardAlone
from tapegrad.njit.marshalling import FORMAT, followed
from tapegrad.njit.numba_front.components import COMPLEX, components, parts_in
from tapegrad.njit.numba_front.objects import Kinds, NumbaType, types
from tapegrad.njit.numba_front.translation import code_of
from tapegrad.njit.outer_vectorization import vectorize_outer_loops
from tapegrad.njit.parallel_loops import find_parallel_loops
from tapegrad.njit.reverse_plan import ReversePlan
from tapegrad.njit.reverse_sweep import ReverseSweep
from tapegrad.njit.runtime_text import RUNTIME, SYMBOLS
from tapegrad.njit.ssa_form import function_of
from tapegrad.njit.sweep_frame import SweepFrame, Words
from tapegrad.njit.tabulation import tabulate_functions
from tapegrad.njit.threaded_loops import ThreadedSweep, threaded_loops
from tapegrad.njit.three_address_code import SourceLine, Unsupported
from tapegrad.njit.trip_counts import count_trips
from tapegrad.njit.value_numbering import find_alias_classes, simplify
from tapegrad.njit.values import Function, Value
from tapegrad.njit.vector_emitter import VectorEmitter

SYMBOL = "tapegrad_njit"
RECURSION = 6_000  # frames of Python for expressions that are nested deeply


class Request(NamedTuple):
    """What is wanted of a function.

    The `arguments` that it is differentiated in, by number, and of which of its `results`: the
    first number, or all.  Without `arguments` it is the function alone.  Unless it is `strong`, an
    adjoint of zero times an infinity is NaN.  There are tangents along the arguments `moved`.
    Without its `value`, what only that depends on is not computed.  With `checkpoints` long loops
    are gone back through in segments, which are run again.
    """

    kinds: Kinds
    arguments: tuple[int, ...]
    whole: bool = True
    moved: tuple[int, ...] | None = None
    restores: bool = True
    strong: bool = True
    value: bool = True
    checkpoints: bool = False


class ResultLeaf(NamedTuple):
    """A number or an array of the result: which one, its type, and which part of a complex one."""

    number: int
    type: NumbaType
    part: str


class DerivativeProgram:
    """Machine code for a request, and what a caller has to know of it.

    It is a C function ``int64_t program(int64_t *in, int64_t *out, int64_t limit)``: `Words` says
    what is where; the last word of `out` gets the arrays that the results own, for `release`.
    `limit` is how many bytes it may take.  It returns 0; 1 where the function itself raises; 2
    where there is not enough memory.
    """

    vectorizes = True  # loops, where it can
    has_checkpoints = False

    def __init__(self, f: Dispatcher, request: Request) -> None:
        self.request = request
        with _compiling():
            code = code_of(f, request.kinds)
            self.result: NumbaType = code.result
            function = function_of(code)
            simplify(function)
            count_trips(function)
            if not request.checkpoints and self.vectorizes:
                tabulate_functions(function)
                find_parallel_loops(function)
                vectorize_outer_loops(function)
                sink_divisor_checks(function)
            self.written = _written(function)
            self.text = self._text(function)
        self._link(self.text)

    def _text(self, function: Function) -> str:
        emitter = self._emitter()
        self.draws = _draws(function)
        emitter.strong = self.request.strong or self.draws is not None
        leaves = _leaves(self.result)
        # By the place of the component.
        self.result_leaves = {
            k + n: ResultLeaf(j, t, part)
            for j, (k, t) in enumerate(leaves.items())
            for n, part in enumerate(("real", "imag") if t in COMPLEX else ("",))
        }
        arrays = {k: t for k, t in leaves.items() if isinstance(t, types.Array)}
        self.owns = bool(arrays) and self.request.value
        self._result_kinds = [v.type for v in function.results]
        chosen = {*self.request.arguments, *(self.request.moved or ())}
        refuse_active_calls(function, chosen, function.results)
        if not self.request.arguments:
            frame = SweepFrame(function, None, None, emitter, moved=self.request.moved)
            ForwardAlone(frame).write()
        else:
            frame = self._frame(function, emitter)
            lengths = {
                k: [*function.results[k + 1 : k + 1 + t.ndim], function.const(parts_in(t), "i64")]
                for k, t in arrays.items()
            }
            self._write_sweeps(frame, lengths)
        frame.finish(self.owns)
        self.words: Words = frame.words
        self._describe_words(emitter.words)
        self.owner_word = frame.owner_word
        self.moving = frame.moving
        self.plan, self.stacks = frame.plan, list(frame.stacks.values())
        self.uses_threads = emitter.team is not None
        return emitter.module(SYMBOL)

    def _emitter(self) -> VectorEmitter:
        return VectorEmitter() if self.request.moved is None else DualEmitter()

    def _frame(self, function: Function, emitter: VectorEmitter) -> SweepFrame:
        request = self.request
        chosen = range(len(function.results)) if request.whole else range(1)
        activity = Activity(function, request.arguments, chosen)
        self.depends = _active(function, activity)
        if not request.checkpoints and self.vectorizes:
            leave_out_idle_trips(function, activity)
        plan = ReversePlan(function, activity, request.restores)
        return SweepFrame(function, activity, plan, emitter, request.value, request.moved)

    def _write_sweeps(self, frame: SweepFrame, lengths: dict[int, list[Value]]) -> None:
        """Both sweeps; the lengths are those of the arrays among the results."""
        after = f"r{frame.function.last.label}"
        checkpoints = checkpoints_of(frame) if self.request.checkpoints else {}
        self.has_checkpoints = bool(checkpoints)
        threads = threaded_loops(frame)
        if checkpoints:
            StateSweep(frame, after, checkpoints).write()
        elif threads:
            ThreadedSweep(frame, after, threads).write()
        else:
            ForwardSweep(frame, after).write()
        ReverseSweep(frame, lengths, checkpoints, threads).write()

    def _describe_words(self, copies: int) -> None:
        """How the words of a call are packed and read; the leaf that each parameter is."""
        words = (self.words.inputs, self.words.outputs)
        kinds, made = (
            [self._result_kinds[p] if isinstance(p, int) else p.type for _, p in part]
            for part in words
        )
        self.packed = struct.Struct("=" + copies * "".join(FORMAT[k] for k in kinds)).pack
        out = struct.Struct("=" + copies * "".join(FORMAT[k] for k in made) + "Q")
        self.unpacked, self.out_bytes = out.unpack, out.size
        values = [p for kind, p in self.words.inputs if kind == "value"]
        leaves = [p for p in values if not p.attribute.is_length]
        firsts = itertools.accumulate(not p.attribute.is_imaginary for p in leaves)
        self.leaf_of = {p: k - 1 for k, p in zip(firsts, leaves)}
        self.followed = [known for t in self.request.kinds for known in followed(t)]

    def _link(self, text: str) -> None:
        _offer_symbols()
        if self.uses_threads:
            _launch_threads()
        scipy_calls.offer(text)
        self.engine = build.assembled(text, backwards=True, library=RUNTIME)  # which owns the code
        address = self.engine[0].get_function_address
        self.address, self.release_address = int(address(SYMBOL)), int(address("release"))
        self.call = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 2, ctypes.c_int64)(
            self.address
        )
        self.release = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.release_address)
        forget = ctypes.CFUNCTYPE(None)(int(address("forget")))
        weakref.finalize(self, _forget, forget, self.engine).atexit = False


class Effects(NamedTuple):
    """What a function does beside what it computes, and the type of its result."""

    written: frozenset[int]  # arguments
    draws: SourceLine | None  # the first line that may give something else the next time
    result: NumbaType


def effects_of(f: Dispatcher, kinds: Kinds, chosen: tuple[int, ...]) -> Effects:
    """What a function does, for arguments of given types; it has derivatives in the `chosen`."""
    with _compiling():
        code = code_of(f, kinds)
        function = function_of(code)
        find_alias_classes(function)
        refuse_active_calls(function, chosen, function.results)
        return Effects(_written(function), _draws(function), code.result)


def _written(function: Function) -> frozenset[int]:
    """The arguments whose arrays, or containers, the function writes into."""
    written = function.written_pointers()
    return frozenset(p.attribute.argument for p in function.parameters if p in written)


def _draws(function: Function) -> SourceLine | None:
    """The line of the first call that may give something else when it is made again."""
    calls = (v for v in function.instructions() if v.op == "call")
    return next((v.line for v in calls if v.attribute.effects), None)


def _active(function: Function, activity: Activity) -> frozenset[int]:
    """The arguments that the results depend on smoothly."""
    return frozenset(
        p.attribute.argument for p in function.parameters if p.active or activity.is_active(p)
    )


def _leaves(t: NumbaType, at: int = 0) -> dict[int, NumbaType]:
    """The places of numbers and arrays among the components of a type."""
    if not isinstance(t, types.BaseTuple):
        return {at: t} if components(t) else {}
    found: dict[int, NumbaType] = {}
    for part in t:
        found |= _leaves(part, at)
        at += len(components(part))
    return found


def _forget(forget: Callable[[], None], engine: Any) -> None:
    """Give back what a program keeps from call to call; the engine has the code for that."""
    forget()


_compilation = lock()


@contextmanager
def _compiling() -> Iterator[None]:
    """One program at a time, with room for expressions that are nested deeply."""
    with _compilation:
        before = sys.getrecursionlimit()
        sys.setrecursionlimit(max(before, RECURSION))
        try:
            yield
        except RecursionError:
            raise Unsupported("expressions that are nested thousands deep") from None
        finally:
            sys.setrecursionlimit(before)


@cache
def _launch_threads() -> None:
    """Have Numba's threads, and the symbols by which they are called."""
    launch: Any = parallel._launch_threads
    launch()


@cache
def _offer_symbols() -> None:
    """Define the symbols of the C library."""
    llvm, library = build.binding(), build.c_library()
    for name in SYMBOLS:
        llvm.add_symbol(name, ctypes.cast(getattr(library, name), ctypes.c_void_p).value)


@cache
def default_limit() -> int:
    """A quarter of the machine's memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4
