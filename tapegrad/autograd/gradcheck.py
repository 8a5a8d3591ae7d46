"""Checking derivatives against central differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.autograd.engine import grad
from tapegrad.tensor import Tensor, wrap

Specs = list[tuple[Any, Any]]


class GradcheckError(RuntimeError):
    """A derivative that differs from the differences, or cannot be checked."""


def _tuple(x: Any) -> tuple[Any, ...]:
    return (x,) if isinstance(x, Tensor) else tuple(x)


def _differentiable(found: Any) -> list[Tensor]:
    return [o for o in _tuple(found) if isinstance(o, Tensor) and o._a.dtype.kind in "fc"]


# A complex number counts as its two parts: by PyTorch's convention a gradient is that of the sum of
# products of the parts, so that Jacobians of the parts are compared as any other.


def _size(x: Tensor) -> int:
    """The number of real coordinates."""
    return x._a.size * (2 if x._a.dtype.kind == "c" else 1)


def _coordinates(a: np.ndarray) -> np.ndarray:
    """All elements as a vector of float64, a copy."""
    if a.dtype.kind == "c":
        return a.astype(np.complex128, order="C").ravel().view(np.float64)
    return a.astype(np.float64).ravel()


def _elements(like: Tensor, rows: np.ndarray) -> np.ndarray:
    """An array like a Tensor from its coordinates, which are the last dimension of `rows`."""
    a = like._a
    if a.dtype.kind == "c":
        rows = np.ascontiguousarray(rows, np.float64).view(np.complex128)
    return rows.astype(a.dtype).reshape((*rows.shape[:-1], *a.shape))


def _rows(n: int, fast: bool, rng: np.random.Generator) -> np.ndarray:
    """The directions that are tried: all of a basis, or a random one of length 1."""
    if not fast:
        return np.eye(n)
    row = rng.uniform(0.1, 1.0, n)
    return (row / np.linalg.norm(row))[None] if n else np.eye(0)


def _weight(out: Tensor, row: np.ndarray) -> Tensor:
    return wrap(_elements(out, row))


def _check_alike(outputs: list[Tensor], specs: Specs) -> None:
    """Refuse outputs whose shapes or dtypes depend on the values of the inputs."""
    found = [(o._a.shape, o.dtype) for o in outputs]
    if found != specs:
        raise AssertionError(
            "`gradcheck`: the function must return outputs of the same shape and dtype when its "
            f"inputs are changed a little: it returned {specs}, then {found}"
        )


def _numerical(
    func: Any, inputs: tuple[Any, ...], k: int, eps: float, rows: np.ndarray, specs: Specs
) -> list[np.ndarray]:
    """For each output, its derivatives along directions of input k, by central differences."""
    x = inputs[k]._a
    before = x.copy()
    found: list[list[np.ndarray]] = []
    try:
        for row in rows:
            sides = []
            for step in (eps, -eps):
                x[...] = before + _elements(inputs[k], step * row)
                outputs = _differentiable(func(*inputs))
                _check_alike(outputs, specs)
                sides.append([_coordinates(o._a) for o in outputs])
            found.append([(a - b) / (2 * eps) for a, b in zip(*sides, strict=True)])
    finally:
        x[...] = before
    if not found:
        return [np.zeros((0, _size(o))) for o in _differentiable(func(*inputs))]
    return [np.array([one[j] for one in found]) for j in range(len(found[0]))]


def _backward(out: Tensor, x: Tensor, rows: np.ndarray, *, dtypes: bool = False) -> np.ndarray:
    """The gradients of an output, weighted by each row, in an input."""
    found = []
    for row in rows:
        g = None
        if out.requires_grad:
            (g,) = grad(out, x, _weight(out, row), retain_graph=True, allow_unused=True)
        if dtypes and g is not None and g._a.dtype != x._a.dtype:
            raise GradcheckError(f"a gradient of {g.dtype} was returned for an input of {x.dtype}")
        found.append(np.zeros(_size(x)) if g is None else _coordinates(g._a))
    return np.array(found).reshape(len(rows), _size(x))


def _tangents(func: Any, inputs: tuple[Any, ...], given: dict[int, np.ndarray]) -> list[np.ndarray]:
    """For each output its tangent, by forward mode, where some inputs have the tangents given."""
    from tapegrad.autograd import forward_ad

    with forward_ad.dual_level():
        duals = [
            forward_ad.make_dual(x, _weight(x, given[k])) if k in given else x
            for k, x in enumerate(inputs)
        ]
        pairs = [forward_ad.unpack_dual(o) for o in _differentiable(func(*duals))]
        return [np.zeros(_size(y)) if t is None else _coordinates(t.detach()._a) for y, t in pairs]


def _forward(
    func: Any, inputs: tuple[Any, ...], chosen: list[int], k: int, rows: np.ndarray
) -> list[np.ndarray]:
    """For each output, its derivatives along directions of input k, by forward mode."""
    zeros = {i: np.zeros(_size(inputs[i])) for i in chosen}
    found = [_tangents(func, inputs, zeros | {k: row}) for row in rows]
    return [np.array([one[j] for one in found]) for j in range(len(found[0]))] if found else []


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Whether the gradients of `func` agree with central differences.

    The inputs that require grad should be float64 or complex128; they are changed and restored.
    Of complex inputs and outputs both parts are checked.

    Parameters
    ----------
    eps, atol, rtol : the step of the differences, and how far they may be off.
    raise_exception : raise where a check fails; else return False.
    nondet_tol : how far two sweeps may differ.
    check_undefined_grad : a weight of zero gives zeros where other outputs have none, too; in
        forward mode an input without a tangent is one whose tangent is zero.
    check_grad_dtypes : gradients must have the dtypes of their inputs.
    check_batched_grad : several weights at once must give what each gives alone.
    check_batched_forward_grad : the same for several tangents at once.
    check_forward_ad, check_backward_ad : which modes are compared with the differences.
    fast_mode : along one random direction of inputs and outputs, not along all.
    masked : only of sparse Tensors, which there are not; None or False.

    >>> import tapegrad as tg
    >>> x = tg.tensor([0.5, 1.0], requires_grad=True)
    >>> tg.autograd.gradcheck(lambda x: x.sin() * x, (x,), check_forward_ad=True)
    True
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError(
            "`gradcheck`: one of `check_forward_ad` and `check_backward_ad` is needed"
        )
    if check_batched_grad and not check_backward_ad:
        raise ValueError("`gradcheck`: `check_batched_grad` needs `check_backward_ad`")
    if check_batched_forward_grad and not check_forward_ad:
        raise ValueError("`gradcheck`: `check_batched_forward_grad` needs `check_forward_ad`")
    if masked:
        raise NotImplementedError("`gradcheck`: there are no sparse Tensors to be `masked`")
    inputs = _tuple(inputs)
    check = _Check(func, inputs, eps, atol, rtol, fast_mode)
    try:
        chosen, outputs = check.begin()
        if not outputs:
            return True
        check.specs = [(o._a.shape, o.dtype) for o in outputs]
        if check_backward_ad:
            check.backward(chosen, outputs, check_grad_dtypes, nondet_tol)
        if check_forward_ad:
            check.forward(chosen)
            if check_undefined_grad:
                check.undefined_forward(chosen)
        if check_batched_forward_grad:
            check.batched_forward(chosen)
        if check_batched_grad:
            check.batched_backward(chosen, outputs)
        if check_backward_ad:
            check.zero(chosen, outputs, each=check_undefined_grad)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


class _Check:
    """One call of `gradcheck`."""

    def __init__(
        self, func: Any, inputs: tuple[Any, ...], eps: float, atol: float, rtol: float, fast: bool
    ) -> None:
        self.func = func
        self.inputs = inputs
        self.eps, self.atol, self.rtol, self.fast = eps, atol, rtol, fast
        self.rng = np.random.default_rng(0)
        self.specs: Specs = []  # shape and dtype of each output

    def begin(self) -> tuple[list[int], list[Tensor]]:
        """Which inputs are differentiated in, and the outputs."""
        inputs = self.inputs
        chosen = [k for k, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]
        if not chosen:
            raise ValueError("`gradcheck` needs at least one input that requires grad")
        for k in chosen:
            a = inputs[k]._a
            if 0 in a.strides and a.size > 1:
                raise GradcheckError(
                    f"input {k} of `gradcheck` has overlapping memory (it is expanded): clone it "
                    "first"
                )
        return chosen, _differentiable(self.func(*inputs))

    def backward(
        self, chosen: list[int], outputs: list[Tensor], dtypes: bool, nondet: float
    ) -> None:
        """Reverse mode against differences, and against itself."""
        for k in chosen:
            x = self.inputs[k]
            directions = _rows(_size(x), self.fast, self.rng)
            numerical = _numerical(self.func, self.inputs, k, self.eps, directions, self.specs)
            for j, out in enumerate(outputs):
                weights = _rows(_size(out), self.fast, self.rng)
                rows = _backward(out, x, weights, dtypes=dtypes)
                if nondet < float("inf") and out.requires_grad:
                    again = _backward(out, x, weights)
                    if not np.allclose(rows, again, rtol=0, atol=nondet, equal_nan=True):
                        raise GradcheckError(
                            f"the gradient of output {j} in input {k} is nondeterministic: two "
                            "sweeps differ"
                        )
                expected = numerical[j].reshape(len(directions), _size(out)) @ weights.T
                self._compare(j, k, directions, weights, directions @ rows.T, expected, "backward")

    def forward(self, chosen: list[int]) -> None:
        """Forward mode against differences."""
        for k in chosen:
            directions = _rows(_size(self.inputs[k]), self.fast, self.rng)
            numerical = _numerical(self.func, self.inputs, k, self.eps, directions, self.specs)
            found = _forward(self.func, self.inputs, chosen, k, directions)
            for j, (rows, expected) in enumerate(zip(found, numerical, strict=False)):
                weights = np.eye(expected.shape[1])
                self._compare(j, k, directions, weights, rows, expected, "forward")

    def undefined_forward(self, chosen: list[int]) -> None:
        """An input that has no tangent against one whose tangent is zero."""
        directions = {k: self.rng.standard_normal(_size(self.inputs[k])) for k in chosen}
        for k in chosen:
            others = {i: row for i, row in directions.items() if i != k}
            zero = {k: np.zeros(_size(self.inputs[k]))}
            found = _tangents(self.func, self.inputs, others | zero)
            for j, (a, b) in enumerate(
                zip(found, _tangents(self.func, self.inputs, others), strict=True)
            ):
                if not np.allclose(a, b, self.rtol, self.atol, equal_nan=True):
                    raise GradcheckError(
                        f"output {j} has another tangent where input {k} has the tangent zero than "
                        f"where it has none: {a} and {b}"
                    )

    def _compare(
        self, j: int, k: int, directions: Any, weights: Any, found: Any, expected: Any, mode: str
    ) -> None:
        # Differences along a direction add up the errors of all its elements.
        scale = np.abs(directions).sum(1)[:, None] * np.abs(weights).sum(1)
        excess = np.abs(found - expected) > self.atol * scale + self.rtol * np.abs(expected)
        if (excess | (np.isnan(found) != np.isnan(expected))).any():
            raise GradcheckError(
                f"Jacobian mismatch in {mode} mode for output {j} with respect to input {k}:\n"
                f"numerical:\n{expected}\nanalytical:\n{found}"
            )

    def batched_backward(self, chosen: list[int], outputs: list[Tensor]) -> None:
        """Several weights at once against each alone."""
        for j, out in enumerate(outputs):
            rows = self.rng.standard_normal((3, _size(out)))
            if not out.requires_grad:
                continue
            for k in chosen:
                x = self.inputs[k]
                weights = wrap(_elements(out, rows))
                (g,) = grad(
                    out, x, weights, retain_graph=True, allow_unused=True, is_grads_batched=True
                )
                if g is not None:
                    alone = _backward(out, x, rows)
                    self._same(_coordinates(g.detach()._a), alone, "gradients", j, k)

    def batched_forward(self, chosen: list[int]) -> None:
        """Several tangents at once against each alone."""
        from tapegrad import func as transforms

        for k in chosen:
            x = self.inputs[k].detach()
            rows = self.rng.standard_normal((2, _size(x)))

            def tangent(t: Tensor, k: int = k, x: Tensor = x) -> Any:
                def one(x: Tensor) -> Any:
                    return tuple(
                        _differentiable(self.func(*self.inputs[:k], x, *self.inputs[k + 1 :]))
                    )

                return transforms.jvp(one, (x,), (t,))[1]

            tangents = wrap(_elements(x, rows))
            alone = _forward(self.func, self.inputs, chosen, k, rows)
            for j, t in enumerate(transforms.vmap(tangent)(tangents)):
                self._same(_coordinates(t.detach()._a), alone[j], "tangents", j, k)

    def _same(self, found: np.ndarray, expected: np.ndarray, what: str, j: int, k: int) -> None:
        found = found.reshape(expected.shape)
        if not np.allclose(found, expected, self.rtol, self.atol, equal_nan=True):
            raise GradcheckError(
                f"batched {what} of output {j} with respect to input {k} differ from those that "
                f"are computed alone:\n{found}\n{expected}"
            )

    def zero(self, chosen: list[int], outputs: list[Tensor], *, each: bool) -> None:
        """Weights of zero, of all outputs and of `each` while no sweep reaches the others."""
        live = [out for out in outputs if out.requires_grad]
        xs = [self.inputs[k] for k in chosen]
        for some in (live, *([out] for out in live if each and len(live) > 1)):
            weights = [wrap(np.zeros_like(out._a)) for out in some]
            found = grad(some, xs, weights, retain_graph=True, allow_unused=True) if some else ()
            for k, g in zip(chosen, found, strict=False):
                if g is not None and np.any(g._a):
                    raise GradcheckError(
                        f"the gradient in input {k} is not zero where the gradients of all outputs "
                        "are: a backward is linear in them"
                    )


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Whether second derivatives agree with central differences of the first ones.

    Parameters
    ----------
    grad_outputs : the weights of the outputs; random ones if they are not given.
    gen_non_contig_grad_outputs : random weights do not lie side by side in memory.
    check_fwd_over_rev, check_rev_over_rev : in which mode the gradients are differentiated.

    All other parameters are those of `gradcheck`.

    >>> import tapegrad as tg
    >>> x = tg.tensor([0.5, 1.0], requires_grad=True)
    >>> tg.autograd.gradgradcheck(lambda x: x.sin() * x, (x,))
    True
    """
    inputs = _tuple(inputs)
    outputs = _differentiable(func(*inputs))
    if grad_outputs is None:
        rng = np.random.default_rng(0)
        weights = []
        for o in outputs:
            drawn = _elements(o, rng.standard_normal((2, _size(o))))
            whole = np.moveaxis(drawn, 0, -1).copy()[..., 0]  # not side by side
            whole = whole if gen_non_contig_grad_outputs else whole.copy()
            weights.append(wrap(whole).requires_grad_())
    else:
        weights = list(_tuple(grad_outputs))
    count = len(inputs)

    def first(*args: Any) -> tuple[Tensor, ...]:
        xs, ws = args[:count], args[count:]
        outs = _differentiable(func(*xs))
        live = [(o, w) for o, w in zip(outs, ws, strict=True) if o.requires_grad]
        wanted = [x for x in xs if isinstance(x, Tensor) and x.requires_grad]
        found = grad(
            [o for o, _ in live], wanted, [w for _, w in live], create_graph=True, allow_unused=True
        )
        return tuple(g for g in found if g is not None)

    return gradcheck(
        first, (*inputs, *weights), eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception,
        nondet_tol=nondet_tol, check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes, check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev, check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode, masked=masked,
    )  # fmt: skip
