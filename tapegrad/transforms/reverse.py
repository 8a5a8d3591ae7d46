"""Reverse mode over functions: `grad`, `value_and_grad`, `vjp`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.autograd.engine import leaf_gradient
from tapegrad.autograd.grad_mode import recording
from tapegrad.base.call_site import raise_cause
from tapegrad.base.native_arrays import native_array
from tapegrad.dispatch.dispatch import resolve
from tapegrad.dispatch.truncate import mark_escaped, truncate
from tapegrad.lift.gradient_targets import (
    depends,
    followed,
    followed_leaves,
    forget,
    plain,
    variable,
)
from tapegrad.lift.lifted_tensor import Lifted, constant, on_tape, pull
from tapegrad.tape.record_format import IN0, LISTED, SHAPE, WORD
from tapegrad.tape.tape import MODE_FAST, Ended, Tape, current, leaf_keys
from tapegrad.tensor import F8, Tensor, View, wrap
from tapegrad.transforms.call_arguments import (
    Argnums,
    any_tensor,
    as_tensor,
    checked_argnums,
    chosen_leaves,
    forgetting,
    given_back,
    name_of,
    paired,
    read_only,
    require_function,
    restoring,
    transforming,
    value_back,
    values,
    with_leaves,
)
from tapegrad.transforms.numba_functions import numba_derivatives
from tapegrad.transforms.pickling import reads_tape, repeatable
from tapegrad.transforms.pytree import flatten, matching, unflatten


class Inputs:
    """The arguments that a function is differentiated in: their leaves, and variables for them."""

    def __init__(self, args: tuple[Any, ...], chosen: tuple[int, ...], name: str) -> None:
        self.args = args
        self.chosen = chosen
        self.leaves, self.trees = chosen_leaves(args, chosen)
        self.given_tensors = any(isinstance(x, Tensor) for x in self.leaves)
        self.tensors = [as_tensor(x, name) for x in self.leaves]
        self.tracked = any(on_tape(t) for t in self.tensors)
        # A new int object: the references of the one on the tape tell whether the record is in use.
        self.since = current.tape.next - 1 + 1
        self.variables = [variable(t) for t in self.tensors]
        # What depends on these alone is a constant elsewhere.
        self.own = {p for v in self.variables if (p := plain(v)._pos) < 0}
        self.start = current.tape.next - 1 + 1
        self._alone: bool | None = None

    def end(self) -> None:
        """End the variables: what was computed from them is a constant from now on."""
        for v in self.variables:
            forget(v)

    def close(self, name: str, roots: list[Tensor]) -> None:
        """`end` where the records stay: mark other values of them as escaped."""
        self.end()
        if self.alone() and not any(isinstance(t, Lifted) for t in (*roots, *self.variables)):
            mark_escaped(current.tape, self.start, name, [*roots, *self.variables])
            for v in self.variables:
                if all(v is not root for root in roots):
                    v._home = Ended(name)

    def call(self, f: Callable[..., Any], kwargs: dict[str, Any]) -> Any:
        """Call the function on the variables."""
        return f(*with_leaves(self.args, self.chosen, self.trees, self.variables), **kwargs)

    def matters_outside(self) -> bool:
        """Whether the gradients may be differentiated again, and so must be recorded."""
        tape = current.tape
        if self.tracked or not tape.enabled:
            return self.tracked and tape.enabled
        nested = tape.depth > 1 or self.given_tensors
        return nested and not self.alone()

    def alone(self) -> bool:
        """Whether no record since reads anything but the variables."""
        if self.tracked:
            return False
        if self._alone is None:
            self._alone = not reads_others(current.tape, self.start, self.own)
        return self._alone

    def back(self, found: list[Tensor]) -> list[Any]:
        """Gradients, one for each chosen argument, in the form of the arguments."""
        rest = iter([
            given_back(settled(g, self.own), x) for g, x in zip(found, self.leaves, strict=True)
        ])  # fmt: skip
        return [unflatten(tree, rest) for tree in self.trees]


def reads_others(tape: Tape, start: int, own: set[int]) -> bool:
    """Whether any record from a position on reads a leaf or an older record not in `own`."""
    older, leaves = read_from_before(tape, start)
    return bool(older - own) or any(leaf._pos not in own and followed(leaf) for leaf in leaves)


def read_from_before(tape: Tape, start: int) -> tuple[set[int], list[Tensor]]:
    """The older records and the leaves that the records from a position on read."""
    if start >= tape.next:
        return set(), []
    tape.sweeping += 1  # excludes compaction, which renumbers leaves
    try:
        first = tape.index(start)
        words = tape.words()[max(first, 0) :]
        codes = words[(words[:, WORD] & LISTED) == 0, IN0:SHAPE].ravel()
        used = set(codes[(codes < 0) | (codes < start) & (codes > 0)].tolist())
        for row in words[(words[:, WORD] & LISTED) != 0].tolist():
            inputs = tape.input_lists[row[IN0] : row[IN0] + row[IN0 + 1]]
            used |= {code for code in inputs if code < start and code}
        leaves = [tape.leaves[-code - 1] for code in used if code < 0]
        return {code for code in used if code > 0}, leaves
    finally:
        tape.sweeping -= 1


def scalar_root(y: Any, name: str, f: Any) -> Tensor:
    """Check the result of a function to differentiate: a scalar."""
    if not isinstance(y, (Tensor, float, int, np.ndarray, np.generic)) or isinstance(y, bool):
        raise TypeError(
            f"`{name}`: {name_of(f)} must return a scalar, got {type(y).__name__}; with "
            "`has_aux=True` it may return a pair of a scalar and anything else"
        )
    root = y if isinstance(y, Tensor) else wrap(np.asarray(y, float))
    if root._a.shape != ():
        raise TypeError(
            f"`{name}`: {name_of(f)} must return a scalar, got the shape {root._a.shape}: reduce "
            "it (`.sum()`), or use `jacobian`"
        )
    kind = root._a.dtype if isinstance(y, Tensor) else np.asarray(y).dtype
    if kind.kind == "b" or root._a.dtype.kind not in "fc":
        raise TypeError(f"`{name}`: {name_of(f)} must return a floating-point scalar, got {kind}")
    if kind.kind == "c":
        raise RuntimeError(
            f"`{name}`: {name_of(f)} must return a real scalar, got {kind}: take its absolute "
            "value or its real part"
        )
    return root


def value_and_grad(
    f: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, *, strict: bool = False,
    max_memory: int | None = None, inplace: bool = False,
) -> Callable[..., Any]:  # fmt: skip
    """The function that returns the value of `f` and its gradient.

    Parameters
    ----------
    f : returns a scalar; with `has_aux` a pair of a scalar and anything else, which is passed on.
    argnums : which positional arguments to differentiate in: one, or a tuple of several.
    strict : an argument that the value does not depend on is an error, not a gradient of zeros.
    max_memory : of a function that Numba compiles, how many bytes the gradient may take; a quarter
        of the machine's memory unless given.  Beyond that, long loops are run again in segments.
    inplace : of a function that Numba compiles, whether what it writes into its arguments is there
        for the caller; otherwise the function works on copies.

    >>> import numpy as np, tapegrad as tg
    >>> tg.value_and_grad(lambda x: np.sum(x**2))(np.array([1.0, 2.0]))
    (5.0, array([2., 4.]))
    """
    if (numba := numba_derivatives(f)) is not None:
        return numba.value_and_grad(  # type: ignore[no-any-return]
            f, argnums, has_aux, strict, max_memory, inplace
        )
    refuse_options(max_memory, inplace, "value_and_grad")
    return differentiated(f, argnums, has_aux, strict, "value_and_grad", both=True)


def grad(
    f: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, *, strict: bool = False,
    max_memory: int | None = None, inplace: bool = False,
) -> Callable[..., Any]:  # fmt: skip
    """The gradient of `f`, a function of arrays, numbers, Tensors or pytrees of them.

    Parameters
    ----------
    f : returns a scalar; with `has_aux` a pair of a scalar and anything else, which is passed on.
    argnums : which positional arguments to differentiate in: one, or a tuple of several.
    strict : an argument that the value does not depend on is an error, not a gradient of zeros.
    max_memory : of a function that Numba compiles, how many bytes the gradient may take; a quarter
        of the machine's memory unless given.  Beyond that, long loops are run again in segments.
    inplace : of a function that Numba compiles, whether what it writes into its arguments is there
        for the caller; otherwise the function works on copies.

    >>> import numpy as np, tapegrad as tg
    >>> tg.grad(lambda x: np.sin(x["a"]) * x["b"])({"a": 0.0, "b": 2.0})
    {'a': 2.0, 'b': 0.0}
    >>> tg.grad(tg.grad(lambda x: x**3))(2.0)
    12.0
    """
    if (numba := numba_derivatives(f)) is not None:
        return numba.grad(f, argnums, has_aux, strict, max_memory, inplace)  # type: ignore[no-any-return]
    refuse_options(max_memory, inplace, "grad")
    return differentiated(f, argnums, has_aux, strict, "grad")


def refuse_options(max_memory: int | None, inplace: bool, name: str) -> None:
    """Refuse what is for functions that Numba compiles alone."""
    if inplace:
        raise TypeError(
            f"`{name}`: `inplace` is for functions under `numba.njit`; on the tape a function "
            "writes into its arguments as it does without `tapegrad`"
        )
    if max_memory is not None:
        raise TypeError(
            f"`{name}`: `max_memory` is for functions under `numba.njit`; on the tape "
            "`tapegrad.checkpoint` computes again what is not to be kept"
        )


@repeatable
def differentiated(
    f: Callable[..., Any], argnums: Argnums, has_aux: bool, strict: bool, name: str, *,
    both: bool = False,
) -> Callable[..., Any]:  # fmt: skip
    """`grad` by any name; `both`: with the value."""
    require_function(f, name)
    single = isinstance(argnums, (int, np.integer))
    place = argnums if type(argnums) is int and not (has_aux or strict) else -1

    @forgetting(name)
    def general(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        chosen = checked_argnums(argnums, len(args), name, f)
        tape = current.tape
        with transforming():
            with recording(tape, True):
                inputs = Inputs(args, chosen, name)
                y = inputs.call(f, kwargs)
            y, aux = paired(y, name, f, has_aux)
            root = scalar_root(y, name, f)
            recorded = inputs.matters_outside()
            pulled = pull([root], [None], inputs.variables, recorded=recorded, since=inputs.since)
            if strict:
                refuse_unused([root], inputs, name, f)
        inputs.end()
        tensors = inputs.given_tensors
        gradients = inputs.back(pulled)
        found = gradients[0] if single else tuple(gradients)
        rest = (aux_back(aux, inputs.own, tensors),) if has_aux else ()
        if not both:
            return (found, *rest) if rest else found
        since = 0 if recorded else 1  # swept without recording: no history to extend
        value = released(root, inputs.own, tensors, since)
        return ((value, *rest) if rest else value), found

    @functools.wraps(f, updated=())
    def derivative(*args: Any, **kwargs: Any) -> Any:
        if 0 <= place < len(args):
            found = quick(f, args, kwargs, place, name)
            if found is not None:
                return found if both else found[1]
        return general(args, kwargs)

    return derivative


Sweep = Callable[[Tensor, Tensor, int], Any]  # of a root, a leaf, and the position of its start


def gradient_pulled(root: Tensor, leaf: Tensor, start: int) -> Any:
    """The gradient by the general sweep."""
    return pull([root], [None], [leaf], recorded=False, since=start)[0]._a


def quick(
    f: Callable[..., Any], args: Any, kwargs: Any, place: int, name: str,
    sweep: Sweep = leaf_gradient, otherwise: Sweep = gradient_pulled,
) -> Any:  # fmt: skip
    """The value and gradient in the common case: one float64 array or float, no enclosing
    transform, a scalar result.

    Returns None, before anything is done, where the general path must be taken.  `sweep` computes
    the gradient, or what else is wanted, from the tape; `otherwise` does where that finds None.
    """
    x = args[place]
    tape = current.tape
    kind = type(x)
    if kind is float:
        leaf = wrap(np.array(x))
    elif kind is np.ndarray and x.dtype is F8 and x.flags.aligned:
        leaf = wrap(read_only(x))
    else:
        return None
    if tape.depth or tape.levels or tape.mode != MODE_FAST or tape.inference:
        return None
    leaf._pos = -leaf_keys()
    start = tape.next
    mark = tape.tokens, tape.used, len(tape.leaves), len(tape.input_lists)  # `Tape.mark`
    tape.depth, tape.transform_start = 1, start - 1 + 1
    try:
        if len(args) == 1 and not kwargs:
            y = f(leaf)
        else:
            y = f(*args[:place], leaf, *args[place + 1 :], **kwargs)
        g = None
        if type(y) is Tensor and y._s == 0 and y._pos > 0 and (y._home is tape or _seen(y, tape)):
            g = sweep(y, leaf, start)
            value: Any = float(y._a)
        if g is None:
            root = scalar_root(y, name, f)
            g = otherwise(root, leaf, start)
            value = released(root, {leaf._pos}, tensors=False, since=1)
            del root
    except ValueError as error:
        raise_cause(error)
        raise
    finally:
        tape.depth = 0
        if tape.mode != MODE_FAST:  # an interruption, or what the function has switched off
            tape.enabled, tape.inference, tape.mode = True, False, tape.careful
        del start  # the object on the tape, whose references count
        y = None
        if not truncate(tape, mark, name, leaf):
            tape.drop_spent(mark)
    return value, (float(g) if kind is float else g)


def _seen(y: Tensor, tape: Tape) -> bool:
    """Whether a Tensor is a view of one on a tape."""
    if type(y._home) is not View or y._home.tape is not tape:
        return False
    resolve(y, tape)
    return y._pos > 0


def settled(t: Tensor, own: set[int], since: int = 0) -> Tensor:
    """Detach a result of a transform, unless it depends on more than its variables.

    What is recorded from a position `since` on, if one is given, is known to lead to those alone.
    """
    silent = not current.tape.enabled  # under the user's `no_grad`
    if isinstance(t, Lifted):
        if silent and t._lift.at.traces:
            return t.detach()
        return t.mapped(lambda part: settled(part, own, since))
    unrelated = 0 < since <= t._pos or (silent and t._pos > 0)
    return t.detach() if t._pos and (unrelated or not _leads_outside(t, own)) else t


def _leads_outside(t: Tensor, own: set[int]) -> bool:
    """Whether a Tensor depends on more than the variables (given by position)."""
    tape = current.tape
    if t._pos < 0:
        return t._pos not in own and followed(t)
    tape.sweeping += 1  # excludes compaction, which renumbers leaves
    try:
        codes = {tape.slots.get(p, 0) if p < 0 else p for p in own}
        return t._pos not in codes and any(True for _ in followed_leaves(t, codes))
    finally:
        tape.sweeping -= 1


def released(x: Any, own: set[int], tensors: bool, since: int = 0) -> Any:
    """A result of a transform, detached and in the form of the arguments."""
    return value_back(settled(x, own, since), tensors) if isinstance(x, Tensor) else x


def aux_back(aux: Any, own: set[int], tensors: bool) -> Any:
    """The auxiliary output of a function, `released` leaf by leaf."""
    leaves, tree = flatten(aux)
    return unflatten(tree, [released(x, own, tensors) for x in leaves])


def refuse_unused(roots: list[Tensor], inputs: Inputs, name: str, f: Any) -> None:
    """With `strict`, refuse a leaf of the arguments that no result depends on."""
    bases = [plain(root) for root in roots]
    for k, v in enumerate(inputs.variables):
        if not any(depends(base, plain(v)) for base in bases):
            raise RuntimeError(
                f"`{name}` with `strict=True`: the value of {name_of(f)} does not depend on leaf "
                f"{k} of its arguments"
            )


def vjp(f: Callable[..., Any], *primals: Any, has_aux: bool = False, strict: bool = False) -> Any:
    """The value of `f`, and the function from its weights to the gradients in all arguments.

    With `strict` an argument that the value does not depend on is an error, not a gradient of
    zeros.

    >>> import numpy as np, tapegrad as tg
    >>> y, pullback = tg.vjp(lambda x, a: a * np.sin(x), np.array([0.0, 1.0]), 2.0)
    >>> y
    array([0.        , 1.68294197])
    >>> pullback(np.array([1.0, 0.0]))
    (array([2., 0.]), 0.0)
    """
    if (numba := numba_derivatives(f, primals)) is not None:
        return numba.vjp(f, primals, has_aux, strict)
    return pulled_back(f, primals, "vjp", has_aux=has_aux, strict=strict)


@restoring
def pulled_back(
    f: Callable[..., Any], primals: tuple[Any, ...], name: str, *, has_aux: bool = False,
    strict: bool = False,
) -> Any:  # fmt: skip
    """`vjp`, whose errors call it by a given name."""
    require_function(f, name)
    with transforming():
        with recording(current.tape, True):
            inputs = Inputs(primals, tuple(range(len(primals))), name)
            y = inputs.call(f, {})
        y, aux = paired(y, name, f, has_aux)
        roots, tree = values(y, name, f)
        if strict:
            refuse_unused(roots, inputs, name, f)
        recorded = inputs.matters_outside()
    del y
    inputs.close(name, roots)
    tensors = any_tensor(inputs.leaves)

    @restoring
    def pullback(weights: Any) -> tuple[Any, ...]:
        """The gradients of the value, weighted."""
        given = matching(weights, tree, name)
        ws = []
        for w, root in zip(given, roots, strict=True):
            t = w if isinstance(w, Tensor) else constant(native_array(w, name), root)
            if t._a.dtype.kind not in "biuf" + root._a.dtype.kind:
                raise TypeError(
                    f"`{name}`: weights of {t._a.dtype} were given for a value of {root._a.dtype}"
                )
            if t._a.dtype != root._a.dtype:
                t = t.to(root.dtype)
            if t._a.shape != root._a.shape:
                raise ValueError(
                    f"`{name}`: weights of shape {t._a.shape} were given for a value of shape "
                    f"{root._a.shape}"
                )
            ws.append(t)
        traced = recorded or any(on_tape(w) for w in ws)
        with transforming():
            found = pull(
                roots, ws, inputs.variables, recorded=traced, retain=True, since=inputs.since
            )
        return tuple(inputs.back(found))

    pulling = reads_tape(pullback, name)
    value = unflatten(tree, [released(r, inputs.own, tensors) for r in roots])
    if has_aux:
        return value, pulling, aux_back(aux, inputs.own, tensors)
    return value, pulling
