"""Structured control flow: `cond`, `switch`, `while_loop`, `fori_loop`, `scan`.

Without `jit` Python runs them; inside, each becomes one branch or loop of the program, however many
iterations there are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from tapegrad.functions.elementwise import maximum
from tapegrad.lift.flatten import differs
from tapegrad.lift.gradient_targets import plain
from tapegrad.tensor import Tensor
from tapegrad.transforms.call_arguments import name_of, require_function
from tapegrad.transforms.checkpointing import checkpoint as checkpointed
from tapegrad.transforms.looping import (
    Carried,
    alike,
    as_leaf,
    chosen,
    condition,
    copies,
    decided,
    mapped_truth,
    plain_arrays,
    spec_of,
    stacked,
    tracer,
)
from tapegrad.transforms.pytree import flatten, unflatten

Function = Callable[..., Any]


def cond(pred: Any, true_fun: Function, false_fun: Function, *operands: Any) -> Any:
    """`true_fun(*operands)` if a condition holds, else `false_fun(*operands)`.

    Parameters
    ----------
    pred : a single bool, or number that is true if it is not zero: Python's, NumPy's or a Tensor.
    true_fun, false_fun : functions of the operands that return alike pytrees.
    operands : pytrees of arrays, numbers and Tensors.

    Only one of the two runs, also in a compiled program.  Under `vmap`, where the condition can
    differ from example to example, both run, and no derivative passes into the one not chosen.

    >>> import tapegrad as tg
    >>> f = tg.jit(lambda x: tg.cond(x > 0, lambda x: x**2, lambda x: -x, x))
    >>> f(3.0), f(-3.0), tg.jit(tg.grad(f))(3.0)
    (9.0, 3.0, 6.0)
    """
    require_function(true_fun, "cond")
    require_function(false_fun, "cond")
    pred = condition(pred, "cond")
    if decided(pred):
        return (true_fun if bool(pred) else false_fun)(*operands)
    at = tracer()
    leaves, operand_tree = flatten(operands)
    if at is None or differs(pred):
        arms = (true_fun, false_fun)
        with nullcontext() if at is None else at.both():
            found = [f(*unflatten(operand_tree, copies(leaves))) for f in arms]
            a, b, tree = alike(found[0], found[1], arms)
            return unflatten(tree, [chosen(pred, x, y) for x, y in zip(a, b, strict=True)])
    moving = [k for k, x in enumerate(leaves) if isinstance(x, Tensor)]
    given_back: dict[Function, Any] = {}

    def arm(f: Function) -> Callable[[list[Any]], list[Any]]:
        """A function of the leaves that are Tensors."""

        def run(values: list[Any]) -> list[Any]:
            given = list(leaves)
            for k, value in zip(moving, values, strict=True):
                given[k] = value
            returned = given_back[run] = f(*unflatten(operand_tree, given))
            found = flatten(returned)[0]
            if len(given_back) == 2:
                first, second = given_back.values()
                a, b, _ = alike(first, second, (true_fun, false_fun))
                found = a if returned is first else b
            return [as_leaf(x) for x in found]

        return run

    inputs = [leaves[k] for k in moving]
    results = at.branch(plain(pred).bool(), [arm(true_fun), arm(false_fun)], inputs)
    return unflatten(flatten(next(iter(given_back.values())))[1], results)


def switch(index: Any, branches: Sequence[Function], *operands: Any) -> Any:
    """`branches[index](*operands)`; an index out of range means the first or the last of them.

    It is made of `cond`: one of the functions runs, and all of them under `vmap`, where the index
    can differ from example to example.

    >>> import numpy as np, tapegrad as tg
    >>> f = tg.jit(lambda k, x: tg.switch(k, [np.sin, np.exp, lambda x: x * x], x))
    >>> f(2, 3.0), tg.jit(tg.grad(f, argnums=1))(2, 3.0)
    (9.0, 6.0)
    """
    if not branches:
        raise ValueError("`switch` needs at least one function to choose from")
    for f in branches:
        require_function(f, "switch")
    _integer(index, "switch", "the index")

    def among(low: int, high: int) -> Function:
        if high - low == 1:
            return branches[low]
        middle = (low + high) // 2
        return lambda *x: cond(index < middle, among(low, middle), among(middle, high), *x)

    return among(0, len(branches))(*operands)


def while_loop(cond_fun: Function, body_fun: Function, init_val: Any) -> Any:
    """Repeat `carry = body_fun(carry)`, beginning with `init_val`, as long as `cond_fun(carry)`.

    Parameters
    ----------
    cond_fun : function of the carry that returns a single bool.
    body_fun : function of the carry that returns one of the same structure, shapes and dtypes.
    init_val : the first carry: a pytree of arrays, numbers and Tensors.

    It is differentiated in every mode; for that a compiled program keeps the carries of all
    iterations.
    Under `vmap` it runs until no example goes on.

    >>> import tapegrad as tg
    >>> root = lambda a: tg.while_loop(
    ...     lambda x: abs(x * x - a) > 1e-12, lambda x: 0.5 * (x + a / x), a
    ... )
    >>> round(tg.jit(root)(2.0), 6), round(tg.jit(tg.grad(root))(2.0), 6)
    (1.414214, 0.353553)
    """
    require_function(cond_fun, "while_loop")
    require_function(body_fun, "while_loop")
    form, leaves = Carried.of("while_loop", init_val)

    def until(values: list[Any]) -> Any:
        """Whether to go on."""
        return condition(cond_fun(unflatten(form.tree, values)), "while_loop", "b")

    def body(values: list[Any]) -> list[Any]:
        """One trip."""
        return form.leaves(body_fun(unflatten(form.tree, values)), body_fun)

    at = tracer()
    if at is not None:
        leaves, _ = at.loop(
            "while_loop", lambda c, _: (_leaves(body(c)), []),
            lambda c: as_leaf(until(c)).bool(), _leaves(leaves), [], None, False,
        )  # fmt: skip
        return unflatten(form.tree, leaves)
    return unflatten(form.tree, _repeated(until, body, leaves))


def _repeated(
    until: Callable[[list[Any]], Any], body: Callable[[list[Any]], list[Any]], leaves: list[Any]
) -> list[Any]:
    """Go on as long as a condition says, which can differ from example to example of a map."""
    while True:
        pred = until(leaves)
        if decided(pred):
            if not bool(pred):
                return leaves
            leaves = body(leaves)
        elif mapped_truth(pred):
            done = zip(body(copies(leaves)), leaves, strict=True)
            leaves = [chosen(pred, x, y) for x, y in done]
        else:
            return leaves


def fori_loop(
    lower: Any, upper: Any, body_fun: Function, init_val: Any, *, unroll: int | None = None
) -> Any:
    """Repeat `carry = body_fun(i, carry)` for i from `lower` to `upper - 1`.

    Parameters
    ----------
    lower, upper : integers; inside `jit` they may be values that a call brings.
    body_fun : function of i and the carry that returns a carry like it.
    init_val : the first carry: a pytree of arrays, numbers and Tensors.
    unroll : accepted as in JAX, and ignored: the compiler decides what is unrolled.

    >>> import tapegrad as tg
    >>> power = lambda x, n: tg.fori_loop(0, n, lambda i, y: y * x, 1.0)
    >>> tg.jit(power)(2.0, 10), tg.jit(tg.grad(power))(2.0, 10)
    (1024.0, 5120.0)
    """
    require_function(body_fun, "fori_loop")
    bounds = [_integer(x, "fori_loop", f"`{w}`") for x, w in ((lower, "lower"), (upper, "upper"))]
    form, leaves = Carried.of("fori_loop", init_val)

    def trip(i: Any, values: list[Any]) -> list[Any]:
        """One trip."""
        return form.leaves(body_fun(i, unflatten(form.tree, values)), body_fun)

    at = tracer()
    known = all(map(decided, bounds))
    first = as_leaf(bounds[0])
    below = lambda v: v[0] < bounds[1]
    if at is None:
        if known:
            for i in range(int(bounds[0]), int(bounds[1])):
                leaves = trip(i, leaves)
        else:
            step = lambda v: [v[0] + 1, *trip(v[0], v[1:])]
            _, *leaves = _repeated(below, step, [first, *leaves])
        return unflatten(form.tree, leaves)
    trips: Any = None
    if known:
        trips = max(int(bounds[1]) - int(bounds[0]), 0)
    elif not any(map(differs, bounds)):
        trips = maximum(as_leaf(bounds[1]) - first, 0).long()
    (_, *last), _ = at.loop(
        "fori_loop", lambda c, _: ([c[0] + 1, *_leaves(trip(c[0], c[1:]))], []),
        below if trips is None else None, [first.long(), *_leaves(leaves)], [], trips, False,
    )  # fmt: skip
    return unflatten(form.tree, last)


def scan(
    f: Function, init: Any, xs: Any = None, length: int | None = None, reverse: bool = False,
    unroll: int | bool = 1, *, checkpoint: int | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """Go through the entries of arrays with a carry: `carry, y = f(carry, x)` for each.

    Parameters
    ----------
    f : function of the carry and an entry that returns a carry like it and anything else, `y`.
    init : the first carry: a pytree of arrays, numbers and Tensors.
    xs : pytree of arrays and Tensors whose first dimensions are equal: x holds one entry of each;
        or None, with `length`.
    length : the number of iterations; not needed with `xs`.
    reverse : begin with the last entry; the `y` are in the order of the entries.
    unroll : accepted as in JAX, and ignored: the compiler decides what is unrolled.
    checkpoint : for how many iterations reverse mode keeps the carry; it computes the others again
        from the one before. About √n of n take the least memory. By default it keeps all.

    Returns the last carry, and the `y` of all iterations along a new first dimension.

    >>> import numpy as np, tapegrad as tg
    >>> total = lambda xs: tg.scan(lambda c, x: (c + x, c * x), 0.0, xs)
    >>> tg.jit(total)(np.array([1.0, 2.0, 3.0]))
    (6.0, array([0., 2., 9.]))
    """
    require_function(f, "scan")
    form, leaves = Carried.of("scan", init)
    given, tree = flatten(xs)
    rows = plain_arrays(given, "scan")
    trips = _length(rows, length)
    if checkpoint is not None:
        return _in_segments(f, init, rows, tree, trips, bool(reverse), checkpoint)
    shape: list[Any] = []

    def trip(values: list[Any], entry: list[Any]) -> tuple[list[Any], list[Any]]:
        """One trip."""
        found = f(unflatten(form.tree, values), unflatten(tree, entry))
        if not isinstance(found, tuple) or len(found) != 2:
            raise TypeError(
                f"`scan`: {name_of(f)} must return a pair (carry, y), got {type(found).__name__}; "
                "return (carry, None) if there is nothing to keep"
            )
        outputs, shape[:] = flatten(found[1])[0], [flatten(found[1])[1]]
        for x in outputs:
            spec_of(x, "scan", "what each iteration returns")
        return form.leaves(found[0], f), outputs

    at = tracer()
    if at is not None:

        def body(c: list[Any], x: list[Any]) -> tuple[list[Any], list[Any]]:
            """One trip of Tensors."""
            new, outputs = trip(c, x)
            return _leaves(new), _leaves(outputs)

        last, found = at.loop(
            "scan", body, None, _leaves(leaves), _leaves(rows), trips, bool(reverse)
        )
        return unflatten(form.tree, last), unflatten(shape[0], found)
    if not trips:  # a trip on zeros tells the form of y
        _, outputs = trip(
            leaves,
            [
                x.new_zeros(x.shape[1:])
                if isinstance(x, Tensor)
                else np.zeros(x.shape[1:], x.dtype)
                for x in rows
            ],
        )
        return init, unflatten(shape[0], [stacked([y])[:0] for y in outputs])
    kept: list[list[Any]] = []
    for t in reversed(range(trips)) if reverse else range(trips):
        leaves, outputs = trip(leaves, [x[t] for x in rows])
        kept.append(outputs)
    if reverse:
        kept.reverse()
    columns = [stacked(list(column)) for column in zip(*kept, strict=True)]
    return unflatten(form.tree, leaves), unflatten(shape[0], columns)


def _in_segments(
    f: Function, init: Any, rows: list[Any], tree: Any, trips: int, reverse: bool, count: Any
) -> tuple[Any, Any]:
    """A scan over `count` segments, each a scan that is computed again in a sweep."""
    if not isinstance(count, int) or count < 1:
        raise ValueError(f"`scan`: `checkpoint` must be a positive integer, got {count!r}")
    size = max(-(-trips // count), 1)
    whole, rest = divmod(trips, size)

    def part(start: int, stop: int) -> Any:
        return unflatten(tree, [x[start:stop] for x in rows])

    def segment(carry: Any, entries: Any) -> tuple[Any, Any]:
        return scan(f, carry, entries, size, reverse)

    # The trips that are left over come last.
    first, last = (rest, trips) if reverse else (0, whole * size)
    segments = [x[first:last].reshape(whole, size, *x.shape[1:]) for x in rows]
    body = checkpointed(segment) if tracer() is None else segment
    carry, found = scan(body, init, unflatten(tree, segments), whole, reverse)
    ys, form = flatten(found)
    ys = [y.reshape(whole * size, *y.shape[2:]) for y in ys]
    if rest:
        left = part(0, rest) if reverse else part(whole * size, trips)
        carry, more = scan(f, carry, left, rest, reverse)
        pairs = zip(ys, flatten(more)[0], strict=True)
        ys = [np.concatenate((b, a) if reverse else (a, b)) for a, b in pairs]
    return carry, unflatten(form, ys)


def _leaves(values: list[Any]) -> list[Tensor]:
    return [as_leaf(x) for x in values]


def _integer(x: Any, name: str, what: str) -> Any:
    spec = spec_of(x, name, what)
    if spec.shape or spec.dtype.kind not in "iu":
        raise TypeError(
            f"`{name}`: {what} must be an integer, got the shape {spec.shape} and dtype "
            f"{spec.dtype}: write 10 instead of 10.0"
        )
    return x


def _length(rows: list[Any], length: int | None) -> int:
    """The number of trips of a scan."""
    shapes = [spec_of(x, "scan", "`xs`").shape for x in rows]
    if not all(shapes):
        raise TypeError(
            "`scan`: every array of `xs` needs a first dimension to go along, got one of shape (): "
            "what is the same in every iteration is closed over, or carried"
        )
    found = {shape[0] for shape in shapes}
    if len(found) > 1:
        raise ValueError(
            f"`scan`: the arrays of `xs` differ in their first dimension: {sorted(found)}"
        )
    if length is None and not found:
        raise ValueError("`scan` without arrays in `xs` needs `length`, the number of iterations")
    if length is not None:
        found.add(int(length))
    if len(found) > 1:
        raise ValueError(
            f"`scan`: `length` is {length}, but the arrays of `xs` have {shapes[0][0]} entries: "
            "leave one of the two out"
        )
    return found.pop()
