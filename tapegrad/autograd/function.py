"""`Function`: an operation of the user's own, with its own backward."""

from __future__ import annotations

import functools
import inspect
import math
import warnings
import weakref
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from tapegrad.autograd.context import Context
from tapegrad.autograd.grad_mode import no_grad
from tapegrad.autograd.outputs import CALL, constant_output, is_argument, is_new, live_output
from tapegrad.autograd.pullback import Wanted, fit, wanted_inputs
from tapegrad.dispatch.dispatch import note_line, resolve
from tapegrad.dispatch.inplace import changed, check_inplace
from tapegrad.dispatch.native_calls import native_calls
from tapegrad.ops.core import CUSTOM, Op, Spec
from tapegrad.tape.record_format import DTYPE_BITS, GENERAL, SAVES
from tapegrad.tape.shape_table import LARGE
from tapegrad.tape.tape import MODE_FAST, MODE_OFF, Tape, current
from tapegrad.tensor import Tensor, wrap

__all__ = ["Context", "Function", "once_differentiable"]

_output = Op("output", CUSTOM, lambda: None, {})
WORD = CALL.code | GENERAL
_NOTHING = {type(None)}
_SCALAR = (), np.dtype(float)  # of a record that has several outputs
Specs = tuple[tuple[Any, np.dtype[Any]] | None, ...]  # as `Spec`; None for what is not a Tensor


def a_number(position: int) -> int:
    """A new int object for a position: references to the tape's own tell whether it is in use."""
    return position - 1 + 1


class Entry:
    """What the record of a Function saves in place of values."""

    __slots__ = ("context", "function", "outputs", "specs")

    def __init__(self, function: Any, context: Context, specs: Specs, outputs: Specs) -> None:
        self.function = function
        self.context = context
        self.specs = specs  # of the arguments; None for what is not a Tensor
        self.outputs = outputs

    @property
    def record_name(self) -> str:
        """What a printed tape calls the record."""
        name: str = self.function.__name__
        return name

    @property
    def grad_name(self) -> str:
        """What errors and `grad_fn` call it."""
        return self.record_name + "Backward"

    @property
    def watched(self) -> tuple[Any, ...]:
        """The saved arrays, of which a sweep asks whether they were changed since."""
        return tuple([value for kind, _, value, _ in self.context._saved if kind == "tensor"])

    def pull(
        self, tape: Tape, index: int, g: Any, wanted: Wanted, recorded: bool,
        scratch: dict[int, Any],
    ) -> list[tuple[int, Any]]:  # fmt: skip
        """Run the user's backward."""
        given = scratch.pop(tape.tokens[index], None) if scratch else None
        codes = wanted_inputs(tape, index, wanted)
        found = []
        for k, value in enumerate(self.gradients({0: g} if given is None else given, recorded)):
            code = codes[k]
            if code and value is not None:
                found.append((code, self.fitted(value, k, recorded)))
        return found

    @property
    def backward_only(self) -> bool:
        """Whether the user's rule may be reverse-mode only."""
        return bool(self.function._backward_only(self.context))

    def gradients(self, given: dict[int, Any], recorded: bool) -> tuple[Any, ...]:
        """Call the user's backward on the adjoints of the outputs: one for each argument."""
        grads = []
        for j, spec in enumerate(self.outputs):
            g = given.get(j)
            if g is None:
                if spec is not None and self.context._materialize:
                    g = wrap(np.zeros(*spec))
            elif not recorded:
                g = wrap(g)
            grads.append(g)
        function = self.function
        backward = function.backward
        if function.vjp is not Function.vjp:
            if backward is not Function.backward:
                raise RuntimeError(
                    f"`{self.record_name}` has both `backward` and `vjp`, which mean the same: "
                    "define one of them"
                )
            backward = function.vjp
        if current.tape.levels:
            with current.tape.levels[-1].seen_by(grads):
                found = backward(self.context, *grads)
        else:
            found = backward(self.context, *grads)
        if not isinstance(found, tuple):
            found = tuple(found) if isinstance(found, list) else (found,)
        count = len(self.specs)
        if len(found) != count:
            if len(found) < count or any(x is not None for x in found[count:]):
                raise RuntimeError(
                    f"`{self.record_name}.backward` returned an incorrect number of gradients: "
                    f"expected {count}, one for each argument of forward, got {len(found)}"
                )
            found = found[:count]
        return found

    def fitted(self, value: Any, k: int, recorded: bool) -> Any:
        """A gradient that the user's backward returned, in the shape and dtype of argument k."""
        spec = self.specs[k]
        assert spec is not None
        if isinstance(value, Tensor) and (value._a.shape, value._a.dtype) == spec:
            return value if recorded else value._a
        names = f"`{self.record_name}.backward`"
        if not isinstance(value, Tensor):
            raise RuntimeError(
                f"{names} returned {type(value).__name__} for argument {k}: expected a Tensor "
                "or None"
            )
        shape = value._a.shape
        try:
            fits = np.broadcast_shapes(shape, spec[0]) == shape
        except ValueError:
            fits = False
        if not fits:
            raise RuntimeError(
                f"{names} returned an invalid gradient for argument {k}: it has the shape {shape}, "
                f"expected a shape compatible with {spec[0]}"
            )
        return fit(value if recorded else value._a, Spec(*spec))


class OutputEntry:
    """The record of one of several outputs of a Function, which collects its adjoint."""

    __slots__ = ("grad_name", "j", "main", "record_name")

    def __init__(self, main: int, j: int, name: str) -> None:
        self.main = a_number(main)
        self.j = j
        self.record_name = name
        self.grad_name = name + "Backward"

    def pull(
        self, tape: Tape, index: int, g: Any, wanted: Wanted, recorded: bool,
        scratch: dict[int, Any],
    ) -> list[tuple[int, Any]]:  # fmt: skip
        """Leave the adjoint for the Function's record, and have that swept."""
        scratch.setdefault(self.main, {})[self.j] = g
        nothing = np.zeros(())
        return [(self.main, wrap(nothing) if recorded else nothing)]


class Function:
    """Derive from this class to define an operation with a backward of its own.

    >>> import tapegrad as tg
    >>> class Exp(tg.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         y = x.exp()
    ...         ctx.save_for_backward(y)
    ...         return y
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         y, = ctx.saved_tensors
    ...         return g * y
    >>> x = tg.tensor([0.0], requires_grad=True)
    >>> Exp.apply(x).backward(); x.grad
    tensor([1.])
    """

    setup_context: Any = None
    generate_vmap_rule = False

    def __init__(self) -> None:
        raise RuntimeError(
            "a Function is not instantiated: call its `apply`, with static `forward` and `backward`"
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the result; the first argument is the context."""
        raise NotImplementedError("a Function needs a static method `forward(ctx, ...)`")

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Compute one gradient for every argument of `forward`."""
        raise NotImplementedError("a Function needs a static method `backward(ctx, ...)`")

    @staticmethod
    def vjp(ctx: Any, *grads: Any) -> Any:
        """Another name for `backward`."""
        raise NotImplementedError("a Function needs a static method `backward(ctx, ...)`")

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        """Compute one tangent for every output, from one for every argument of `forward`.

        A Tensor without a tangent gets zeros, what is no Tensor None. The context is that of
        `forward`: called right after it, `ctx.saved_tensors` are those of `save_for_forward`.
        """
        raise NotImplementedError("a Function needs a static method `jvp(ctx, ...)`")

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> Any:
        """Compute all examples: the results, and where along each of them the examples lie.

        `info.batch_size` says how many there are; `in_dims` where in each argument they lie, None
        for one that is the same for all. `generate_vmap_rule = True` makes such a rule from
        `forward`, `setup_context`, `backward` and `jvp`, if these are made of operations.
        """
        raise NotImplementedError("a Function needs a static method `vmap(info, in_dims, ...)`")

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run `forward` and record it as one record."""
        if kwargs or (cls.setup_context is not None and getattr(cls.forward, "__defaults__", None)):
            args = _bound(cls, args, kwargs)
        for arg in args:
            if type(arg) is not Tensor and isinstance(arg, Tensor):
                return arg._apply(cls, args)
        return cls._applied(args)[0]

    @classmethod
    def _applied(cls, args: tuple[Any, ...]) -> tuple[Any, Context]:
        """The results, and the context of `forward`."""
        tape = current.tape
        places, specs = places_and_specs(args, tape)  # which `forward` may change
        context = Context()
        recording = False
        if tape.enabled:
            context.needs_input_grad = tuple([place != 0 for place in places])
            recording = any(places)
        if recording and tape.levels:
            with tape.levels[-1].seen_by(()):
                out = cls.run_forward(context, args)
        else:
            out = cls.run_forward(context, args)
        several = isinstance(out, (tuple, list))
        outputs = list(out) if several else [out]
        results = record(cls, context, args, places, specs, outputs, tape, recording)
        return tuple(results) if several else results[0], context

    @classmethod
    def _backward_only(cls, context: Context) -> bool:
        """Whether a call may be differentiable in reverse mode only."""
        return True

    @classmethod
    def run_forward(cls, context: Context, args: tuple[Any, ...]) -> Any:
        """Run `forward` without recording."""
        tape = current.tape
        enabled, tape.enabled, tape.mode = tape.enabled, False, MODE_OFF
        try:
            if cls.setup_context is None:
                return cls.forward(context, *args)
            out = cls.forward(*args)
            cls.setup_context(context, args, out)
            if context._to_save or context._for_forward:
                _refuse_passed_on(cls, context, args, out)
            return out
        finally:
            tape.enabled = enabled
            tape.mode = tape.careful if enabled else MODE_OFF


def _refuse_passed_on(cls: Any, context: Context, args: tuple[Any, ...], out: Any) -> None:
    """Refuse to save an argument that is a result as well: it is ambiguous."""
    outputs = out if isinstance(out, (tuple, list)) else (out,)
    for t in (*context._to_save, *context._for_forward):
        both = any(t is a for a in args) and any(t is o for o in outputs)
        if both and isinstance(t, Tensor) and not any(t is d for d in context._dirty):
            raise RuntimeError(
                f"`{cls.__name__}` saves an argument that `forward` returned as it is: return a "
                "view of it, `x.view_as(x)`, and save that or the argument"
            )


def _lifted(cls: Any, t: Tensor) -> RuntimeError:
    """The error for a result that is lifted where no argument is."""
    return RuntimeError(
        f"`{cls.__name__}.forward` returned a Tensor under a transform ({type(t).__name__}) that "
        "is not computed from its arguments, so that derivative would be lost: pass it as an "
        "argument"
    )


def _bound(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Bind keyword arguments and defaults to positions."""
    signature = inspect.signature(cls.forward)
    lead = () if cls.setup_context is not None else (None,)
    bound = signature.bind(*lead, *args, **kwargs)
    bound.apply_defaults()
    if bound.kwargs:
        raise TypeError(
            f"`{cls.__name__}.forward` has arguments by keyword alone ({', '.join(bound.kwargs)}): "
            "a Function passes all by position"
        )
    return tuple(bound.args[len(lead) :])


def places_and_specs(args: tuple[Any, ...], tape: Tape) -> tuple[list[int], Specs]:
    """The positions, shapes and dtypes of arguments."""
    places: list[int] = []
    specs: list[Any] = []
    for arg in args:
        if isinstance(arg, Tensor):
            home = arg._home
            if home is not None and home is not tape:
                resolve(arg, tape)
            places.append(arg._pos)
            specs.append((arg._a.shape, arg._a.dtype))
        else:
            places.append(0)
            specs.append(None)
    return places, tuple(specs)


def record(
    cls: Any, context: Context, args: tuple[Any, ...], places: list[int], specs: Specs,
    outputs: list[Any], tape: Tape, recording: bool,
) -> list[Any]:  # fmt: skip
    """Record a call of a Function; returns its outputs as Tensors on the tape."""
    dirty = _changed(cls, context, args, outputs, tape, recording) if context._dirty else ()
    constant = [id(t) for t in context._constant] if context._constant else ()
    live: list[bool] = []
    found: list[Any] = []
    for out in outputs:
        if isinstance(out, Tensor):
            if recording and type(out) is not Tensor:
                raise _lifted(cls, out)
            kind = out._a.dtype
            live.append(kind.kind in "fc" and id(out) not in constant)
            found.append((out._a.shape, kind))
        else:
            live.append(False)
            found.append(None)
    if not recording or True not in live:
        return [constant_output(o, args, dirty, tape) for o in outputs]
    entry = Entry(cls, context, specs, tuple(found))
    saves = not _NOTHING.issuperset(map(type, context._to_save))
    results = None
    if len(outputs) == 1 and not dirty and native_calls.record_call is not None:
        out = outputs[0]
        if tape.mode == MODE_FAST and is_new(out, args):
            word = WORD | (SAVES if saves else 0)
            if native_calls.record_call(word, entry, out, args, places, out._s) is not None:
                results = outputs
    if results is None:
        results = _placed(entry, args, places, outputs, live, dirty, tape, saves)
    context._tape = tape
    if context._to_save:
        _save(context, args, places, outputs, results, tape)
    return results


def _placed(
    entry: Entry, args: tuple[Any, ...], places: list[int], outputs: list[Any], live: list[bool],
    dirty: Collection[int], tape: Tape, saves: bool,
) -> list[Any]:  # fmt: skip
    """Record a call, and each of its outputs if they are several."""
    spec = entry.outputs[0] if len(outputs) == 1 else _SCALAR
    main = append(tape, entry, args, places, spec, saves)
    results = []
    for j, out in enumerate(outputs):
        if not live[j]:
            results.append(constant_output(out, args, dirty, tape))
            continue
        if j and (first := [r for o, r in zip(outputs, results) if o is out]):
            results += first[:1]  # returned twice, it is one Tensor
            continue
        token = main if len(outputs) == 1 else _output_record(tape, main, j, entry)
        results.append(live_output(out, args, dirty, tape, token))
    return results


def append(
    tape: Tape, entry: Any, args: Sequence[Any], places: list[int], spec: Any, saves: bool
) -> int:
    """Write the record of a call of a function with a rule of its own, and return its position."""
    shape, dtype = spec
    count = math.prod(shape)
    if count > LARGE:
        tape.add_debt(count * dtype.itemsize)
    word = WORD | DTYPE_BITS[dtype] | (SAVES if saves else 0)
    main = tape.append(word, places, shape, 0, entry, args)
    if tape.anomaly is not None:
        note_line(tape, main)
    return main


def _changed(
    cls: Any, context: Context, args: tuple[Any, ...], outputs: list[Any], tape: Tape,
    recording: bool,
) -> set[int]:  # fmt: skip
    """The arguments that `forward` changed in place, by their ids."""
    given = [t for t in context._dirty if is_argument(t, args)]
    if len(given) < len(context._dirty):
        warnings.warn(
            f"`{cls.__name__}.forward` gave `mark_dirty` a Tensor that is no argument: only "
            "arguments that were changed in place are marked",
            stacklevel=5,
        )
        context._dirty = tuple(given)
    dirty = {id(t) for t in given}
    if not dirty <= {id(o) for o in outputs}:
        raise RuntimeError(
            f"`{cls.__name__}.forward` marked an argument as dirty and does not return it: every "
            "argument that it changes in place must be among its outputs"
        )
    for t in context._dirty:
        if recording:
            check_inplace(cls.__name__, t, tape, True)
        changed(t)
    return dirty


def _output_record(tape: Tape, main: int, j: int, entry: Entry) -> int:
    tape.sweeping += 1  # the main record has no handle yet: nothing may be reclaimed now
    try:
        spec = entry.outputs[j]
        assert spec is not None
        shape, dtype = spec
        output = OutputEntry(main, j, entry.record_name)
        word = _output.code | DTYPE_BITS[dtype] | GENERAL
        return tape.append(word, (main,), shape, 0, output)
    finally:
        tape.sweeping -= 1


def _save(
    context: Context, args: tuple[Any, ...], places: list[int], outputs: list[Any],
    results: list[Any], tape: Tape,
) -> None:  # fmt: skip
    saved: list[tuple[Any, ...]] = []  # kind, place, value, and who held it
    for t in context._to_save:
        if t is None:
            saved.append(("plain", 0, None, None))
            continue
        if not isinstance(t, Tensor):
            raise TypeError(f"`save_for_backward` takes Tensors or None, got {type(t).__name__}")
        place = _place(t, context, args, places, outputs, results)
        where = t if place < 0 else place - 1 + 1  # as `a_number`
        if tape.saved_hooks:
            send, receive = tape.saved_hooks[-1]
            saved.append(("packed", where, (receive, send(t)), None))
        else:
            saved.append(("tensor", where, t._a, weakref.ref(t)))
    context._saved = tuple(saved)
    context._to_save = ()


def _place(
    t: Tensor, context: Context, args: tuple[Any, ...], places: list[int], outputs: list[Any],
    results: list[Any],
) -> int:  # fmt: skip
    """The position of a saved Tensor: an argument, an output, or another."""
    for arg, place in zip(args, places):
        if arg is t and not (context._dirty and any(t is d for d in context._dirty)):
            return place
    for out, result in zip(outputs, results):
        if out is t:
            return result._pos  # type: ignore[no-any-return]
    return t._pos


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a `backward` that is not written over operations: it cannot be differentiated again.

    >>> import tapegrad as tg
    >>> from tapegrad.autograd.function import once_differentiable
    >>> class Double(tg.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return 2 * x
    ...     @staticmethod
    ...     @once_differentiable
    ...     def backward(ctx, g):
    ...         return 2 * g
    """

    @functools.wraps(backward)
    def wrapped(ctx: Any, *grads: Any) -> Any:
        recorded = current.tape.enabled
        with no_grad():
            found = backward(ctx, *grads)
        if not recorded or not any(isinstance(g, Tensor) and g.requires_grad for g in grads):
            return found
        several = isinstance(found, tuple)
        outs = found if several else (found,)
        barred = tuple(
            _Barrier.apply(o, *[g for g in grads if isinstance(g, Tensor)])
            if isinstance(o, Tensor)
            else o
            for o in outs
        )
        return barred if several else barred[0]

    return wrapped


class _Barrier(Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(out: Tensor, *grads: Tensor) -> Tensor:
        return out.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise RuntimeError(
            "trying to differentiate twice a function that was marked with @once_differentiable"
        )

    jvp = backward
