"""A jitted function: its specializations, and how a call finds one."""

from __future__ import annotations

import copy
import functools
import threading
import types
import warnings
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from tapegrad.autograd.grad_mode import recording
from tapegrad.base.call_site import raise_cause, user_line
from tapegrad.base.compile_stages import stage
from tapegrad.base.dtypes import followers, get_default_dtype
from tapegrad.base.garbage import seldom_collected
from tapegrad.base.locks import lock
from tapegrad.base.public_names import listed
from tapegrad.compiler.front import jit_op, jit_transforms
from tapegrad.compiler.front.captured_reads import MISSING, SCALARS, CapturedReads, drawn, native
from tapegrad.compiler.front.cfunc import CFunction
from tapegrad.compiler.front.fastcall import fastcall
from tapegrad.compiler.front.foreign import Source
from tapegrad.compiler.front.inspect import Lowering, program_table
from tapegrad.compiler.front.signature import Signature, counting, signature_of
from tapegrad.compiler.front.specialization import ARRAY, FLOAT, STATIC, TENSOR, Specialization
from tapegrad.compiler.front.static_args import NONE, Static, Statics
from tapegrad.compiler.ir.control_ops import GLANCED, Glance
from tapegrad.compiler.runtime.link import failure
from tapegrad.compiler.trace.trace import Trace, Untraceable, check_open
from tapegrad.compiler.trace.traced import TensorTrace
from tapegrad.lift.levels import levels_of
from tapegrad.tape.tape import current
from tapegrad.tensor import Tensor
from tapegrad.transforms.call_arguments import name_of, restoring
from tapegrad.transforms.pickling import reduced
from tapegrad.transforms.pytree import flatten, unflatten

if TYPE_CHECKING:
    from tapegrad.compiler.front.numba_interface import Face

MOST = 8  # specializations of one signature
FASTCALLS = 16  # signatures with a fast call
RANDOM_TRIES = 10  # equal runs of a function that show that other threads draw random numbers


class CacheInfo(NamedTuple):
    """What a jitted function has compiled: see `Jitted.cache_info`."""

    signatures: int
    traces: int
    eager: int


class Jitted:
    """A function that is traced once for each signature, compiled, and run as machine code.

    Made by `tapegrad.jit`.
    """

    def __init__(
        self, f: Callable[..., Any], statics: Statics = NONE, *, fastmath: bool = False
    ) -> None:
        functools.update_wrapper(self, f, updated=())
        self.function = f
        self.statics = statics if any(statics) else NONE
        self.fastmath = fastmath
        self._lock = lock()
        self.clear_cache()
        _all.add(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._fast_call(*args, **kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __dir__(self) -> list[str]:
        return listed(self, "cache_info cfunc clear_cache lower njit")

    def __repr__(self) -> str:
        return f"<jitted {name_of(self.function)}>"

    def _repr_html_(self) -> str:
        with self._lock:
            return program_table(self._specializations, repr(self)[1:-1])

    # Compiled code is not copied: a copy recompiles it, or finds it on disk.

    def __reduce__(self) -> Any:
        return reduced(self, Jitted, self.function, self.statics, fastmath=self.fastmath)

    def __copy__(self) -> Jitted:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Jitted:
        return Jitted(copy.deepcopy(self.function, memo), self.statics, fastmath=self.fastmath)

    # -- what was compiled -----------------------------------------------------------------

    def clear_cache(self) -> None:
        """Forget everything that was compiled for this function.

        >>> import tapegrad as tg
        >>> f = tg.jit(lambda x: x * x)
        >>> f(3.0)
        9.0
        >>> f.clear_cache()
        >>> f.cache_info()
        CacheInfo(signatures=0, traces=0, eager=0)
        """
        with self._lock:
            self._specializations: dict[Signature, list[Specialization]] = {}
            self._eager: set[Signature] = set()
            self._derived: dict[Any, Jitted] = {}
            self._fast_call: Callable[..., Any] = self._general
            self._fastcalls = 0
            self._warned = False

    def cache_info(self) -> CacheInfo:
        """How many signatures were met, how many traces made, and which gave up compiling.

        Those of derivatives and maps of the function, which are compiled too, are among them.

        >>> import tapegrad as tg
        >>> f = tg.jit(lambda x: x if x > 0 else -x)
        >>> f(1.0), f(-1.0)
        (1.0, 1.0)
        >>> f.cache_info()
        CacheInfo(signatures=1, traces=2, eager=0)
        """
        with self._lock:
            traces = sum(map(len, self._specializations.values()))
            own = CacheInfo(len(self._specializations), traces, len(self._eager))
            derived = [f.cache_info() for f in self._derived.values()]
        return CacheInfo(*map(sum, zip(own, *derived, strict=True)))

    def lower(self, *args: Any, **kwargs: Any) -> Lowering:
        """What these arguments are compiled to, see `Lowering`.

        >>> import tapegrad as tg
        >>> print(tg.jit(lambda x: x * x + 1.0).lower(3.0).as_text())
        %0     input                               -          float64  k=0
        %1     mul              %0 %0              -          float64
        %2     constant                            -          float64  1
        %3     add              %1 %2              -          float64    -> result 0
        """
        signature, leaves, arrays = self.signature(args, kwargs)
        try:
            specialization = self.specialization(signature, leaves, arrays)
        except Untraceable:
            raise RuntimeError(
                f"`lower`: {name_of(self.function)} is not compiled for arguments like these, it "
                "runs in Python: it uses a Tensor from outside that requires grad or is followed "
                "by a transform (pass it as an argument), or what it does depends on values in "
                f"more than {MOST} ways"
            ) from None
        return Lowering(specialization.graph, self.fastmath, name_of(self.function))

    def plain(self, args: Any, kwargs: dict[str, Any]) -> Any:
        """Call the function itself, on arguments of which some are marked as static."""
        return self.function(*map(_out, args), **{k: _out(x) for k, x in kwargs.items()})

    # -- from compiled code ----------------------------------------------------------------

    @functools.cached_property
    def njit(self) -> Face:
        """The function as `numba.njit` code calls it: with numbers and arrays in C order.

        Each combination of shapes is compiled when it first occurs; from then on such a call takes
        no lock of the interpreter. What fails is raised as `RuntimeError`.

        >>> import numba, numpy as np, tapegrad as tg
        >>> f = tg.jit(tg.value_and_grad(lambda x: (x * x).sum()))
        >>> @numba.njit
        ... def descend(x, steps):
        ...     for _ in range(steps):
        ...         value, gradient = f.njit(x)
        ...         x = x - 0.25 * gradient
        ...     return value, x
        >>> descend(np.array([4.0, 8.0]), 3)
        (5.0, array([0.5, 1. ]))
        """
        from tapegrad.compiler.front.numba_interface import Face

        return Face(Source(self))

    @property
    def _numba_type_(self) -> Any:
        """By this Numba knows the function itself."""
        return self.njit._numba_type_

    def cfunc(self, kind: str, *examples: Any) -> CFunction:
        """The function for arguments of these shapes as a C function pointer.

        Parameters
        ----------
        kind : "scipy", "logp" or "plain"
            Its prototype: ``double f(int n, double *x, void *user)``, as `scipy.LowLevelCallable`
            takes it; ``int f(size_t dim, const double *x, double *gradient, double *logp, void
            *user)``, for samplers; or ``int f(const void *const *inputs, void *const *outputs)``.
        *examples : floats and arrays
            Arguments like those that it will be called for.

        Returns
        -------
        CFunction
            With the attributes `address` and `ctypes` and the method `low_level_callable()`. The
            pointer is good for as long as this object lives.

        >>> import numpy as np, tapegrad as tg
        >>> from scipy import integrate
        >>> f = tg.jit(lambda x, y: x * np.exp(y))
        >>> made = f.cfunc("scipy", 0.0, 0.0).low_level_callable()
        >>> round(integrate.nquad(made, [[0, 1], [0, 1]])[0], 6)
        0.859141
        """
        return CFunction(Source(self), kind, examples)

    # -- calling ---------------------------------------------------------------------------

    def signature(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Signature, list[Any], list[np.ndarray]]:
        """The signature of a call, its leaves, and the arrays among them."""
        if self.statics is not NONE:
            args, kwargs = self.statics.marked(args, kwargs)
        leaves, tree = flatten((args, kwargs))
        found, arrays = signature_of(tree, leaves, self.function)
        return found, leaves, arrays

    def _general(self, *args: Any, **kwargs: Any) -> Any:
        with suppress(Untraceable):
            return self.compiled(args, kwargs)
        return self.function(*args, **kwargs)

    def compiled(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a program; raises Untraceable where Python has to run the function."""
        signature, leaves, arrays = self.signature(args, kwargs)
        if signature in self._eager:
            raise Untraceable
        if TENSOR in signature.kinds:
            levels = levels_of(leaves)
            if any(at.traces for at in levels):
                for x in leaves:
                    check_open(x)
                raise Untraceable
            if levels:
                return jit_transforms.run(self, signature, leaves)
            if jit_op.needs_record(leaves):
                return jit_op.run(self, signature, leaves)
        specialization, outputs = self.outputs(signature, leaves, arrays)
        return specialization.returned(outputs)

    def derived(self, key: Any, make: Callable[[], Callable[..., Any]]) -> Jitted:
        """A function compiled from this one: a derivative or a batched form, by key."""
        with self._lock:
            found = self._derived.get(key)
            if found is None:
                found = self._derived[key] = Jitted(make(), fastmath=self.fastmath)
            return found

    def outputs(
        self, signature: Signature, leaves: list[Any], arrays: list[np.ndarray]
    ) -> tuple[Specialization, list[np.ndarray]]:
        """Run the specialization for these arguments, made on demand."""
        for specialization in tuple(self._specializations.get(signature, ())):
            if specialization.fits():
                outputs = specialization.run(arrays)
                if outputs is not None:
                    return specialization, outputs
        specialization = self._traced(signature, leaves, arrays)
        outputs = specialization.run(arrays)
        if outputs is None:
            raise Untraceable  # a shape that depends on values
        return specialization, outputs

    def specialization(
        self, signature: Signature, leaves: list[Any], arrays: list[np.ndarray]
    ) -> Specialization:
        """A specialization for these arguments, made on demand."""
        for specialization in tuple(self._specializations.get(signature, ())):
            if _serves(specialization, arrays):
                return specialization
        return self._traced(signature, leaves, arrays)

    def _traced(
        self, signature: Signature, leaves: list[Any], arrays: list[np.ndarray]
    ) -> Specialization:
        """Trace without the lock: tracing may take, or wait for, Numba's lock."""
        with self._lock:
            known = self._specializations.setdefault(signature, [])
            known[:] = [specialization for specialization in known if specialization.lasts()]
            seen = tuple(known)
            if len(known) >= MOST:
                self._give_up(signature, seen)
                raise Untraceable
        with stage("trace"):
            made = self.trace(signature, leaves, arrays)
        with self._lock:
            for specialization in known:  # another thread may have made it meanwhile
                if specialization not in seen and _serves(specialization, arrays):
                    return specialization
            known.append(made)
            self._open(signature, made)
            self._warn_of_counter(signature)
        return made

    def _warn_of_counter(self, signature: Signature) -> None:
        """Warn once that each value of a Python int compiles a program."""
        found = None if self._warned else counting(signature, self._specializations)
        if found is None or len(found[1]) < MOST:
            return
        self._warned = True
        warnings.warn_explicit(
            f"`jit`: {name_of(self.function)} was compiled {len(found[1])} times, for each value "
            f"of its {found[0]}, a Python int ({', '.join(map(str, found[1]))}): pass a number "
            "that changes as `np.int64(i)` or `float(i)`, which are arguments of one program; if "
            "it has to be compiled in (a shape, `range(n)`), name it in `static_argnums`",
            UserWarning,
            *user_line(),
        )

    def _give_up(self, signature: Signature, known: tuple[Specialization, ...]) -> None:
        self._eager.add(signature)
        self._fast_call = self._general
        self._fastcalls = FASTCALLS
        names = {
            read.text
            for specialization in known
            for read in specialization.reads
            if not read.holds()
        }
        if names:
            said = (
                f"reads {', '.join(sorted(names))} from outside, and was traced for {MOST} values "
                "of that"
            )
            instead = "pass what changes as an argument"
        else:
            lines = sorted(
                {guard.line for specialization in known for guard in specialization.graph.guards}
            )
            sites = ", ".join([f"{file}:{at}" for file, at in lines[:3]])
            said = (
                f"branched in more than {MOST} ways on values of its arguments (asked for at "
                f"{sites})"
            )
            instead = (
                "use `tapegrad.where`, `cond`, `while_loop`, `fori_loop` or `scan` in place of "
                "Python's `if`, `while` and `float()` on values, and `np.sin(t)` for `math.sin(t)`"
            )
        warnings.warn_explicit(
            f"`jit`: {name_of(self.function)} {said}; for arguments like these it runs without "
            f"compiling from now on: {instead}",
            UserWarning,
            *user_line(),
        )

    def _open(self, signature: Signature, specialization: Specialization) -> None:
        """Put the fast call first."""
        args, kwargs = signature.tree.children
        plain = args.kind is tuple and all(child.kind is None for child in args.children)
        if kwargs.children or not plain or specialization.captured or self._fastcalls >= FASTCALLS:
            return
        if not native(specialization.reads):
            return
        if any(kind not in (ARRAY, FLOAT) for kind in signature.kinds):
            return
        try:
            result = specialization.result
        except ValueError:
            return
        kinds: Any = signature.kinds
        self._fast_call = fastcall(
            specialization.program, kinds, result, self._fast_call, _failed, name_of(self.function),
            reads=specialization.reads,
        )  # fmt: skip
        self._fastcalls += 1

    def open_again(self) -> None:
        """Rebuild the fast calls, which do not check the default dtype: it has changed."""
        with self._lock:
            if not self._eager:
                self._fast_call, self._fastcalls = self._general, 0
                for signature, specializations in self._specializations.items():
                    for specialization in (
                        specializations if signature.default is get_default_dtype() else ()
                    ):
                        self._open(signature, specialization)

    def trace(
        self, signature: Signature, leaves: list[Any], arrays: list[np.ndarray]
    ) -> Specialization:
        """Run the function on Traced Tensors, and compile what it did."""
        glance = Glance(GLANCED)
        try:
            return self._trace(signature, leaves, arrays, glance)
        except (Untraceable, MemoryError):
            raise
        except RecursionError as error:
            raise RecursionError(
                f"`jit`: {name_of(self.function)} calls itself deeper than Python allows while it "
                "is traced, where every call is run: a recursion must end by what is known then (a "
                "shape, a static argument, a value that Python asks for); write one that goes on "
                "for long as `while_loop` or `fori_loop`, or raise `sys.setrecursionlimit`"
            ) from error
        except Exception:
            if not glance.cuts:
                raise
        # The failure may come of a loop cut short: this time all loops run to their ends.
        return self._trace(signature, leaves, arrays, Glance(None))

    def _trace(
        self, signature: Signature, leaves: list[Any], arrays: list[np.ndarray], glance: Glance
    ) -> Specialization:
        """`trace`, again where another thread may have drawn random numbers at the same time."""
        values: list[list[bytes]] = []
        made = None
        with seldom_collected():
            while made is None:
                made = self._trace_once(signature, leaves, arrays, glance, values)
        return made

    @restoring
    def _trace_once(
        self, signature: Signature, leaves: list[Any], arrays: list[np.ndarray], glance: Glance,
        values: list[list[bytes]],
    ) -> Specialization | None:  # fmt: skip
        """One run of the function; None, with its `values`, if another run is to be compared.

        A generator that was used during the run may have been used by another thread: then all
        values are the same in the next run.
        """
        trace = TensorTrace(glance=glance)
        inputs = iter([trace.input(a) for a in arrays])
        given = [
            x if kind == STATIC else next(inputs)
            for x, kind in zip(leaves, signature.kinds, strict=True)
        ]
        args, kwargs = unflatten(signature.tree, iter(given))
        around = CapturedReads(self.function, tuple(map(_known, args)))
        tape = current.tape
        tape.levels.append(trace)
        try:
            with recording(tape, True):
                results, tree = flatten(self.plain(args, kwargs))
        except BaseException as error:
            trace.outsiders.give_back()
            if isinstance(error, ValueError):
                raise_cause(error)
            raise
        finally:
            tape.levels.remove(trace)
            trace.ended = True
        if source := around.drawn_from():
            values.append(_bytes(trace, results))
            if threading.active_count() == 1 or values[-1] != values[0]:
                raise drawn(name_of(self.function), source)
            if len(values) < RANDOM_TRIES:
                trace.outsiders.give_back()
                return None
        made = Specialization(
            trace, signature.kinds, tree, results, self.function, self.fastmath, around.kept()
        )
        del results, given, args, kwargs, around
        trace.outsiders.check(made.captured, name_of(self.function))
        return made


_all: weakref.WeakSet[Jitted] = weakref.WeakSet()


def _open_all() -> None:
    for jitted in tuple(_all):
        jitted.open_again()


followers.append(_open_all)


def _out(x: Any) -> Any:
    return x.value if type(x) is Static else x


def _known(x: Any) -> Any:
    """An argument that is no variable of the program."""
    return MISSING if isinstance(x, (Tensor, tuple, list, dict)) else _out(x)


def _bytes(trace: Trace, results: list[Any]) -> list[bytes]:
    """All values of a trace, and the results that are none of them."""
    arrays = [x for x in results if isinstance(x, np.ndarray)]
    values = [trace.value(position) for position in range(len(trace.nodes))]
    plain = [repr(x).encode() for x in results if isinstance(x, SCALARS)]
    return [*plain, *[a.tobytes() for a in (*values, *arrays)]]


def _serves(specialization: Specialization, arrays: list[np.ndarray]) -> bool:
    return specialization.fits() and (
        not specialization.graph.guards or specialization.run(arrays) is not None
    )


def _failed() -> NoReturn:
    raise failure()
