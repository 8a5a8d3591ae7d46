"""Pytrees: nested containers whose leaves are arrays and numbers.

A container is flattened to its children and a structure that rebuilds it.  Known are
dict, OrderedDict, defaultdict, list, tuple, named tuples, dataclasses and None;
`register_pytree_node` adds others.
"""

from __future__ import annotations

import functools
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from tapegrad.base.dtypes import of_numpy
from tapegrad.base.native_arrays import in_native_form
from tapegrad.functions.joining import cat
from tapegrad.functions.shapes import reshape
from tapegrad.tensor import Tensor

Flatten = Callable[[Any], tuple[Iterable[Any], Any]]
Unflatten = Callable[[Any, Any], Any]
IsLeaf = Callable[[Any], bool]
_known: dict[type, tuple[Flatten, Unflatten]] = {}


class Tree(NamedTuple):
    """The structure of a pytree; `kind` is None for a leaf."""

    kind: type | None
    extra: Any
    children: tuple[Tree, ...]

    def __repr__(self) -> str:
        if self.kind is None:
            return "*"
        if self.kind is type(None):
            return "None"
        if self.kind is dict:
            pairs = zip(self.extra, self.children, strict=True)
            return "{" + ", ".join(f"{k!r}: {c!r}" for k, c in pairs) + "}"
        inner = ", ".join(map(repr, self.children))
        return f"({inner})" if self.kind is tuple else f"{self.kind.__name__}({inner})"


LEAF = Tree(None, None, ())
PLAIN = frozenset((Tensor, np.ndarray, np.float64, float, int))  # types of leaves, most of them
_tuples: list[Tree] = []  # structures of flat tuples, by length


def register_pytree_node(kind: type, flatten: Flatten, unflatten: Unflatten) -> None:
    """Teach transforms a container type of your own.

    `flatten(container)` returns its children and what else is needed to build it again;
    `unflatten(that, children)` builds it.

    >>> import tapegrad as tg
    >>> class Pair:
    ...     def __init__(self, a, b):
    ...         self.a, self.b = a, b
    >>> tg.register_pytree_node(Pair, lambda p: ((p.a, p.b), None), lambda _, ab: Pair(*ab))
    >>> tg.grad(lambda p: p.a * p.b)(Pair(2.0, 3.0)).a
    3.0
    """
    if kind in _known:
        raise ValueError(f"the type {kind.__name__} is registered as a pytree already")
    _known[kind] = flatten, unflatten


register_pytree_node(
    OrderedDict, lambda d: (d.values(), tuple(d)), lambda keys, xs: OrderedDict(zip(keys, xs))
)
register_pytree_node(
    defaultdict,
    lambda d: (d.values(), (d.default_factory, tuple(d))),
    lambda made, xs: defaultdict(made[0], zip(made[1], xs)),
)


def keys_of(tree: Tree) -> tuple[Any, ...] | None:
    """The keys of a dictionary of any kind, by its structure; None for other nodes."""
    if tree.kind is dict or tree.kind is OrderedDict:
        keys: tuple[Any, ...] = tree.extra
        return keys
    return tree.extra[1] if tree.kind is defaultdict else None


def _parts(x: Any) -> tuple[Iterable[Any], Any] | None:
    """The children of a container and what else it holds; None for a leaf."""
    kind = type(x)
    if kind is tuple or kind is list:
        return x, len(x)
    if kind is dict:
        return x.values(), tuple(x)
    if x is None:
        return (), None
    if kind in _known:
        return _known[kind][0](x)
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return x, None
    if hasattr(kind, "__dataclass_fields__"):
        from dataclasses import fields

        names = tuple(f.name for f in fields(x))
        return [getattr(x, name) for name in names], names
    return None


def flatten(x: Any, is_leaf: IsLeaf | None = None) -> tuple[list[Any], Tree]:
    """The leaves of a pytree, in order, and its structure."""
    if is_leaf is not None and is_leaf(x):
        return [x], LEAF
    if type(x) is np.ndarray or isinstance(x, (Tensor, float, int)):
        return [x], LEAF
    if type(x) is tuple and is_leaf is None and PLAIN.issuperset(map(type, x)):
        return list(x), _flat(len(x))
    found = _parts(x)
    if found is None:
        return [x], LEAF
    leaves: list[Any] = []
    trees = []
    for child in found[0]:
        below, tree = flatten(child, is_leaf)
        leaves += below
        trees.append(tree)
    return leaves, Tree(type(x), found[1], tuple(trees))


def _flat(count: int) -> Tree:
    while len(_tuples) <= count:
        _tuples.append(Tree(tuple, len(_tuples), (LEAF,) * len(_tuples)))
    return _tuples[count]


def is_flat(tree: Tree) -> bool:
    """Whether a structure is a cached one of a tuple of leaves."""
    count = len(tree.children)
    return count < len(_tuples) and tree is _tuples[count]


def unflatten(tree: Tree, leaves: Iterable[Any]) -> Any:
    """The pytree of a structure with these leaves."""
    if tree is LEAF:
        return next(iter(leaves))
    if type(leaves) is list and is_flat(tree):
        return tuple(leaves[: len(tree.children)])
    rest = iter(leaves)
    return _build(tree, rest)


def _build(tree: Tree, rest: Any) -> Any:
    kind = tree.kind
    if kind is None:
        return next(rest)
    children = [_build(child, rest) for child in tree.children]
    if kind is tuple or kind is list:
        return kind(children)
    if kind is dict:
        return dict(zip(tree.extra, children, strict=True))
    if kind is type(None):
        return None
    if kind in _known:
        return _known[kind][1](tree.extra, children)
    if issubclass(kind, tuple):
        return kind(*children)
    made = object.__new__(kind)
    for name, child in zip(tree.extra, children, strict=True):
        object.__setattr__(made, name, child)
    return made


def tree_map(
    function: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf | None = None
) -> Any:
    """A pytree of the results of a function on the leaves of one or several alike pytrees.

    What `is_leaf` says True of is not taken apart; `rest` may have any subtree there.

    >>> import tapegrad as tg
    >>> tg.tree_map(lambda a, b: a + b, {"w": 1.0, "b": 2.0}, {"w": 10.0, "b": 20.0})
    {'w': 11.0, 'b': 22.0}
    """
    leaves, structure = flatten(tree, is_leaf)
    part = matching if is_leaf is None else flatten_up_to
    others = [part(other, structure, "tree_map") for other in rest]
    return unflatten(structure, [function(*each) for each in zip(leaves, *others, strict=True)])


def tree_flatten(tree: Any, is_leaf: IsLeaf | None = None) -> tuple[list[Any], Tree]:
    """The leaves of a pytree, in order, and its structure.

    >>> import tapegrad as tg
    >>> leaves, structure = tg.tree_flatten({"w": [1.0, 2.0], "b": (3.0, None)})
    >>> leaves, structure
    ([1.0, 2.0, 3.0], {'w': list(*, *), 'b': (*, None)})
    """
    return flatten(tree, is_leaf)


def tree_unflatten(structure: Tree, leaves: Iterable[Any]) -> Any:
    """The pytree of a structure that `tree_flatten` gave, with these leaves.

    >>> import tapegrad as tg
    >>> leaves, structure = tg.tree_flatten({"w": [1.0, 2.0], "b": (3.0, None)})
    >>> tg.tree_unflatten(structure, [10 * x for x in leaves])
    {'w': [10.0, 20.0], 'b': (30.0, None)}
    """
    given = list(leaves)
    if len(given) != _count(structure):
        raise ValueError(
            f"`tree_unflatten`: the structure {structure!r} has {_count(structure)} leaves, got "
            f"{len(given)}"
        )
    return unflatten(structure, given)


def tree_leaves(tree: Any, is_leaf: IsLeaf | None = None) -> list[Any]:
    """The leaves of a pytree, in order.

    >>> import numpy as np, tapegrad as tg
    >>> norm = lambda tree: np.sqrt(sum(np.sum(x**2) for x in tg.tree_leaves(tree)))
    >>> tg.grad(norm)({"w": np.array([3.0, 0.0]), "b": 4.0})
    {'w': array([0.6, 0. ]), 'b': 0.8}
    """
    return flatten(tree, is_leaf)[0]


def tree_reduce(function: Callable[[Any, Any], Any], tree: Any, *initializer: Any) -> Any:
    """What remains of the leaves of a pytree when two at a time are combined, as by `reduce`.

    >>> import numpy as np, tapegrad as tg
    >>> tg.tree_reduce(lambda n, x: n + x.size, {"w": np.ones((2, 3)), "b": np.ones(3)}, 0)
    9
    """
    return functools.reduce(function, flatten(tree)[0], *initializer)


def matching(x: Any, tree: Tree, name: str) -> list[Any]:
    """The leaves of a pytree that must have a given structure."""
    leaves, found = flatten(x)
    ordered = in_order_of(tree, found, leaves)
    if ordered is None:
        raise ValueError(
            f"`{name}`: the pytrees differ in structure: expected {tree!r}, got {found!r}"
        )
    return ordered


def in_order_of(tree: Tree, found: Tree, leaves: list[Any]) -> list[Any] | None:
    """The leaves of a pytree in the order of another one; None if their structures differ.

    The entries of dicts may stand in any order.
    """
    if found == tree:
        return leaves
    if found.kind is not tree.kind or len(found.children) != len(tree.children):
        return None
    parts, start = [], 0
    for child in found.children:
        end = start + _count(child)
        parts.append((child, leaves[start:end]))
        start = end
    if tree.kind is dict and set(found.extra) == set(tree.extra):
        named = dict(zip(found.extra, parts, strict=True))
        parts = [named[key] for key in tree.extra]
    elif found.extra != tree.extra:
        return None
    ordered: list[Any] = []
    for part, (child, own) in zip(tree.children, parts, strict=True):
        below = in_order_of(part, child, own)
        if below is None:
            return None
        ordered += below
    return ordered


def _count(tree: Tree) -> int:
    """The number of leaves."""
    return 1 if tree.kind is None else sum(map(_count, tree.children))


def flatten_up_to(x: Any, tree: Tree, name: str) -> list[Any]:
    """Flatten a pytree up to the leaves of another one; None may stand for a whole branch.

    The two need to agree down to there only: at a leaf there may be any subtree.
    """
    if tree.kind is None:
        return [x]
    if x is None:
        return [None] * len(flatten(unflatten(tree, iter(lambda: 0.0, None)))[0])
    found = _parts(x)
    if type(x) is not tree.kind or found is None:
        raise ValueError(f"`{name}`: expected something like {tree!r}, got {type(x).__name__}")
    children = list(found[0])
    keys = keys_of(tree)
    if isinstance(x, dict) and keys is not None and set(x) == set(keys):
        children = [x[key] for key in keys]
    elif found[1] != tree.extra or len(children) != len(tree.children):
        raise ValueError(f"`{name}`: expected something like {tree!r}, got {flatten(x)[1]!r}")
    parts = zip(children, tree.children)
    return [y for part, below in parts for y in flatten_up_to(part, below, name)]


def ravel_pytree(tree: Any) -> tuple[Any, Callable[[Any], Any]]:
    """All leaves of a pytree as one vector, and the function that makes a pytree of a vector.

    >>> import numpy as np, tapegrad as tg
    >>> flat, unravel = tg.ravel_pytree({"w": np.ones((2, 2)), "b": 3.0})
    >>> flat
    array([1., 1., 1., 1., 3.])
    >>> unravel(2 * flat)["b"]
    6.0
    """
    leaves, structure = flatten(tree)
    shapes = [x._a.shape if isinstance(x, Tensor) else np.shape(x) for x in leaves]
    kinds = [type(x) for x in leaves]
    dtypes = [
        x._a.dtype if isinstance(x, Tensor) else in_native_form(x, "ravel_pytree").dtype
        for x in leaves
    ]
    sizes = [int(np.prod(s)) for s in shapes]
    common = np.result_type(*dtypes) if dtypes else np.dtype(float)
    if common.kind not in "fc":
        common = np.dtype(float)
    total = sum(sizes)

    def unravel(flat: Any) -> Any:
        """The pytree of a vector."""
        shape = tuple(flat.shape)
        if shape != (total,):
            raise ValueError(f"`unravel` takes a vector of {total} elements, got the shape {shape}")
        parts: list[Any] = []
        start = 0
        for shape, size, kind, dtype in zip(shapes, sizes, kinds, dtypes, strict=True):
            piece = flat[start : start + size]
            start += size
            if dtype.kind == "f" and dtype != common:
                piece = (
                    piece.to(of_numpy(dtype)) if isinstance(piece, Tensor) else piece.astype(dtype)
                )
            if isinstance(piece, Tensor):
                parts.append(reshape(piece, shape))
            elif kind in (float, int):
                parts.append(float(piece[0]))
            else:
                parts.append(piece.reshape(shape).copy())
        return unflatten(structure, parts)

    if any(isinstance(x, Tensor) for x in leaves):
        pieces = [
            reshape(x, (-1,)) if isinstance(x, Tensor) else np.ravel(np.asarray(x, common))
            for x in leaves
        ]
        return cat([p if isinstance(p, Tensor) else _constant(p) for p in pieces]), unravel
    flat = np.concatenate([np.ravel(np.asarray(x, common)) for x in leaves] or [np.zeros(0)])
    return flat, unravel


def _constant(array: np.ndarray) -> Tensor:
    from tapegrad.tensor import wrap

    return wrap(array)
