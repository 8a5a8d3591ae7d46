"""Points as the user sees them, pytrees, and as SciPy sees them, vectors of float64."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tapegrad.base.native_arrays import in_native_form
from tapegrad.lift.lifted_tensor import Lifted, on_tape
from tapegrad.tape.tape import current
from tapegrad.tensor import Tensor, wrap
from tapegrad.transforms.call_arguments import name_of
from tapegrad.transforms.pytree import Tree, flatten, flatten_up_to, ravel_pytree, unflatten


def paths(tree: Tree, above: str = "") -> Iterator[str]:
    """What an error calls the leaves of a pytree."""
    if tree.kind is None:
        yield above
    names = tree.extra if isinstance(tree.extra, tuple) else range(len(tree.children))
    for name, child in zip(names, tree.children):
        yield from paths(child, f"{above}[{name!r}]")


class Points:
    """The start as a vector, and the way from a vector to what the user's functions take."""

    def __init__(self, x0: Any, name: str) -> None:
        self.leaves, self.tree = flatten(x0)
        self.name = name
        self.paths = list(paths(self.tree))
        arrays = [self._checked(x, path) for x, path in zip(self.leaves, self.paths)]
        self.shapes = [a.shape for a in arrays]
        self.dtypes = [a.dtype if a.dtype.kind == "f" else np.dtype(float) for a in arrays]
        self.ends = np.cumsum([a.size for a in arrays], dtype=int).tolist()
        self.tensors = any(isinstance(x, Tensor) for x in self.leaves)
        pieces = [np.ravel(a).astype(float) for a in arrays]
        self.start = np.concatenate(pieces) if pieces else np.zeros(0)
        if not self.start.size:
            raise ValueError(f"`{name}`: `x0` has no elements, there is nothing to vary")

    def _checked(self, x: Any, path: str) -> np.ndarray:
        where = f"`{self.name}`: `x0{path}`"
        refuse_tracked(x, self.name, f"`x0{path}`")
        if isinstance(x, Tensor):
            x = x._a
        if not isinstance(x, (float, int, np.ndarray, np.generic)):
            raise TypeError(f"{where} must be an array or a number, got {type(x).__name__}")
        array = np.asarray(x)
        if array.dtype.kind not in "iuf":
            raise TypeError(f"{where} must be made of real numbers, got {array.dtype}")
        array = in_native_form(x, self.name)
        if not np.isfinite(array).all():
            raise ValueError(f"{where} is not finite: start from numbers other than nan and inf")
        return array

    def pieces(self, flat: Any) -> list[Any]:
        """The leaves of a vector, in their shapes."""
        ranges = zip([0, *self.ends], self.ends)
        return [flat[a:b].reshape(shape) for (a, b), shape in zip(ranges, self.shapes)]

    def given(self, flat: Any) -> Any:
        """The pytree that the user's functions are called with: of a Tensor one of Tensors."""
        if isinstance(flat, Tensor):
            return unflatten(self.tree, self.pieces(flat))
        pieces = self.pieces(np.array(flat, float))  # SciPy may use its array again
        return unflatten(self.tree, [
            float(piece) if isinstance(x, (float, int)) else wrap(piece)
            if isinstance(x, Tensor) else piece
            for piece, x in zip(pieces, self.leaves)
        ])  # fmt: skip

    def result(self, flat: Any) -> Any:
        """The pytree that is returned: every leaf of the kind and the type of that in `x0`."""
        leaves: list[Any] = []
        for piece, x, dtype in zip(self.pieces(np.array(flat, float)), self.leaves, self.dtypes):
            array = piece.astype(dtype, copy=False)
            if isinstance(x, (float, int)):
                leaves.append(float(array))
            elif isinstance(x, Tensor):
                leaves.append(wrap(array))
            else:
                leaves.append(array if isinstance(x, np.ndarray) else array[()])
        return unflatten(self.tree, leaves)

    def vector(self, tree: Any) -> np.ndarray:
        """The vector of a pytree of gradients."""
        pieces = [
            np.ravel(self.array(x, "the gradient")).astype(float, copy=False)
            for x in flatten(tree)[0]
        ]
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)

    def array(self, x: Any, what: str) -> Any:
        """What came of the user's function, without history."""
        refuse_tracked(x, self.name, what)
        return x._a if isinstance(x, Tensor) else x

    def stray(self, flat: np.ndarray) -> str:
        """The leaf in which a vector is not finite."""
        wrong = [not np.isfinite(piece).all() for piece in self.pieces(flat)]
        return self.paths[wrong.index(True)]


def refuse_tracked(x: Any, name: str, what: str) -> None:
    """No derivative goes through an optimization."""
    if isinstance(x, Tensor) and (isinstance(x, Lifted) or (current.tape.depth and on_tape(x))):
        raise RuntimeError(
            f"`{name}`: {what} belongs to a derivative under way, and no derivative goes through "
            "an optimization: use `tapegrad.scipy.optimize`, or hand over the values with "
            "`tapegrad.stop_gradient`"
        )


def arguments(args: Any, name: str) -> tuple[Any, ...]:
    """Further arguments of the user's function."""
    given = args if isinstance(args, tuple) else (args,)
    for x in flatten(given)[0]:
        refuse_tracked(x, name, "`args`")
    return given


def flattened(f: Callable[..., Any], points: Points, args: tuple[Any, ...]) -> Callable[[Any], Any]:
    """A function of a vector; what it returns is one vector too."""

    def vectorial(flat: Any) -> Any:
        y = f(points.given(flat), *args)
        for leaf in flatten(y)[0]:
            if not isinstance(leaf, (Tensor, np.ndarray, np.generic, float, int)):
                raise TypeError(
                    f"`{points.name}`: {name_of(f)} must return numbers, arrays or pytrees of "
                    f"them, got a leaf of type {type(leaf).__name__}"
                )
        return ravel_pytree(y)[0]

    return vectorial


def limits(bounds: Any, points: Points, *, rows: bool) -> tuple[np.ndarray, np.ndarray] | None:
    """Lower and upper bounds as vectors.

    `bounds` has a pair (low, high) for every leaf of `x0`, or None where there are none; with
    `rows` that of a vector may be SciPy's sequence of pairs, one for each element.
    """
    if bounds is None:
        return None
    low, high = [], []
    pairs = flatten_up_to(bounds, points.tree, f"{points.name}(bounds=...)")
    for given, shape, path in zip(pairs, points.shapes, points.paths):
        what = f"`{points.name}`: the bounds of `x0{path}`"
        pair: Any = (None, None) if given is None else given
        if rows and len(shape) == 1 and _is_rows(pair, shape[0]):
            pair = [[_number(row[k], k) for row in pair] for k in (0, 1)]
        if not isinstance(pair, (tuple, list, np.ndarray)) or len(pair) != 2:
            raise ValueError(f"{what} are a pair (low, high), got {pair!r}")
        try:
            below, above = (
                np.broadcast_to(np.asarray(_number(side, k), float), shape)
                for k, side in enumerate(pair)
            )
        except (TypeError, ValueError) as error:
            raise ValueError(f"{what} do not fit its shape {shape}") from error
        if not (below <= above).all():
            raise ValueError(f"{what}: a lower bound is above its upper one, or one of them nan")
        low.append(below.ravel())
        high.append(above.ravel())
    return np.concatenate(low), np.concatenate(high)


def _is_rows(pair: object, size: int) -> bool:
    if isinstance(pair, np.ndarray):
        return bool(pair.shape == (size, 2))
    return (
        isinstance(pair, (tuple, list))
        and len(pair) == size
        and all(isinstance(row, (tuple, list)) and len(row) == 2 for row in pair)
    )


def _number(side: Any, k: int) -> Any:
    return (-np.inf, np.inf)[k] if side is None else side
