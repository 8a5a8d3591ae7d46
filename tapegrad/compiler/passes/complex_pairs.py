"""Write operations on complex numbers as operations on their two parts.

Loops compute with real numbers alone, and what they cannot compute is a call of Python.  A complex
value becomes two real ones, by a form for each operation, which is traced like a decomposition.
Where an operation has none (an FFT, LAPACK), and at the inputs and results, the parts are joined.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.compiler.ir.graph import Builder, Graph, Node
from tapegrad.compiler.passes.apply_decompositions import put, traced
from tapegrad.ops.complex_forms import (
    FORMS,
    POWERS,
    SPARSE,
    Form,
    Pair,
    form_of,
    real_type,
    whole_power,
)
from tapegrad.ops.complex_parts import complex_
from tapegrad.ops.core import CUSTOM, Op
from tapegrad.ops.elementwise import pow as pow_
from tapegrad.ops.shape import getitem, stack, view_as_complex, view_as_real


def with_pairs(graph: Graph) -> Graph:
    """The graph, in which complex numbers are pairs where that spares a call of Python."""
    nodes = graph.nodes
    if not _computes(graph):
        return graph
    builder = _PairBuilder(graph)
    for position in range(len(nodes)):
        builder.take(position)
    for position in graph.roots():
        builder.joined(position)
    return builder.done()


def with_real_ends(graph: Graph) -> Graph:
    """The graph with its complex inputs and results as the arrays of their parts, of real numbers.

    They lie in memory alike: who calls the program sees no difference.
    """
    nodes = graph.nodes
    ends = [k for k in (*graph.inputs, *graph.outputs) if _is_complex(nodes[k])]
    if not ends or not _computes(graph):
        return graph
    builder = Builder(graph)
    inputs = list(graph.inputs)
    for position, node in enumerate(nodes):
        if position in graph.inputs and _is_complex(node):
            spread = Node(None, (), node.params, (*node.shape, 2), real_type(node.dtype))
            at = inputs[graph.inputs.index(position)] = builder.add(spread)
            joined = Node(view_as_complex, (at,), {}, node.shape, node.dtype)
            builder.where[position] = builder.add(joined)
        else:
            builder.copy(position)
    found = builder.done()
    outputs = []
    for k in found.outputs:
        node = found.nodes[k]
        if _is_complex(node):
            spread = Node(view_as_real, (k,), {}, (*node.shape, 2), real_type(node.dtype))
            k = builder.add(spread)
        outputs.append(k)
    inputs = [
        at if _is_complex(nodes[old]) else builder.where[old]
        for at, old in zip(inputs, graph.inputs, strict=True)
    ]
    return found._replace(inputs=tuple(inputs), outputs=tuple(outputs))


def _computes(graph: Graph) -> bool:
    """Whether an operation with a form does more than to move elements, which loops can."""
    nodes = graph.nodes
    if not any(map(_is_complex, nodes)):  # programs are long
        return False
    return any(_is_computed(x, [nodes[a] for a in x.args]) for x in nodes if not x.moves)


def _is_complex(node: Node) -> bool:
    return node.dtype.kind == "c"


def _is_computed(node: Node, operands: list[Node]) -> bool:
    """Whether a record that computes with complex numbers has a form."""
    if not (_is_complex(node) or any(map(_is_complex, operands))):
        return False
    return _form(node, operands)[0] is not None


def _form(node: Node, operands: list[Node]) -> tuple[Form | None, dict[str, Any]]:
    """What writes the record with parts, and its parameters."""
    op = node.op
    if not isinstance(op, Op):
        return None, {}
    if any(view in (view_as_real, view_as_complex) for view, _ in node.params.get("chain", ())):
        return None, {}  # it sees pairs on its way
    exponent = operands[1] if op is pow_ and operands[0].shape == node.shape else node
    if exponent.uniform and exponent.value is not None:
        x = exponent.value.flat[0]
        if x.imag == 0 and x.real in POWERS:
            return whole_power, {"n": int(x.real)}
    return form_of(op, len(operands), _is_complex(node)), node.params


class _PairBuilder(Builder):
    """A graph with a complex value joined (`where`), in its parts, or both."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.parts: dict[int, tuple[int, int | None]] = {}
        self._known: dict[Any, tuple[Graph, bool] | None] = {}

    def take(self, position: int) -> None:
        """Append a record: by its form, or as it is."""
        node = self.graph.nodes[position]
        operands = [self.graph.nodes[a] for a in node.args]
        if _is_computed(node, operands) and self._put(position, node, operands):
            return
        is_complex = [_is_complex(x) for x in (*operands, node)]
        split = any(a in self.parts for a in node.args)
        if isinstance(node.op, Op) and not node.moves and any(is_complex) and split:
            self._call(position, node, is_complex)
            return
        for a in node.args:
            self.joined(a)
        self.copy(position)

    def _call(self, position: int, node: Node, is_complex: list[bool]) -> None:
        """Append a call of Python, which is given arrays of parts and returns one."""
        args = [
            self._paired(a) if known else self.where[a]
            for a, known in zip(node.args, is_complex, strict=False)
        ]
        assert node.op is not None
        op = OnPairs(node.op, is_complex)
        shape, dtype = ((*node.shape, 2), real_type(node.dtype)) if is_complex[-1] else node.spec
        found = self.add(Node(op, tuple(args), node.params, shape, dtype))
        if is_complex[-1]:
            self.parts[position] = self._taken_apart(found, node)
        else:
            self.where[position] = found

    def _paired(self, position: int) -> int:
        """The array of a complex value's parts."""
        node = self.graph.nodes[position]
        re, im = self._split(position)
        if im is None:
            im = self.add(_constant(np.zeros(node.shape, real_type(node.dtype))))
        spec = (*node.shape, 2), real_type(node.dtype)
        return self.add(Node(stack, (re, im), {"dim": len(node.shape)}, *spec))

    def _taken_apart(self, pairs: int, node: Node) -> tuple[int, int]:
        re, im = (
            self.add(
                Node(getitem, (pairs,), {"index": (..., k)}, node.shape, real_type(node.dtype))
            )
            for k in range(2)
        )
        return re, im

    def joined(self, position: int) -> None:
        """Have a value as one record."""
        if position in self.where:
            return
        node = self.graph.nodes[position]
        re, im = self.parts[position]
        if im is None:
            im = self.add(_constant(np.zeros(node.shape, real_type(node.dtype))))
        self.where[position] = self.add(Node(complex_, (re, im), {}, node.shape, node.dtype))

    def _split(self, position: int) -> tuple[int, int | None]:
        """The parts of a complex value."""
        found = self.parts.get(position)
        if found is None:
            node = self.graph.nodes[position]
            real = real_type(node.dtype)
            if node.value is not None:
                re, im = (_constant(_part(node.value, k)) for k in range(2))
                zero = not im.value.any() if im.value is not None else False
                found = self.add(re), None if zero else self.add(im)
            else:
                spread = Node(view_as_real, (self.where[position],), {}, (*node.shape, 2), real)
                found = self._taken_apart(self.add(spread), node)
            self.parts[position] = found
        return found

    def _put(self, position: int, node: Node, operands: list[Node]) -> bool:
        """Append the form of a record; False where it is to be left as it is."""
        complex_args = [a for a, x in zip(node.args, operands, strict=True) if _is_complex(x)]
        moved = node.moves and node.name not in FORMS
        if moved and not any(a in self.parts for a in complex_args):
            return False  # loops move complex numbers too
        form, params = _form(node, operands)
        if form is None:
            return False
        places: list[int] = []
        shapes: list[tuple[int, ...]] = []
        for a, x in zip(node.args, operands, strict=True):
            found = self._split(a) if _is_complex(x) else (self.where[a],)
            shapes.append(tuple([p is not None for p in found]))
            places += [p for p in found if p is not None]
        inner = self._traced(form, params, node, operands, shapes)
        if inner is None:
            return False
        graph, missing = inner
        results = put(self, graph, places)
        if _is_complex(node):
            self.parts[position] = results[0], None if missing else results[1]
        else:
            self.where[position] = results[0]
        return True

    def _traced(
        self, form: Form, params: dict[str, Any], node: Node, operands: list[Node],
        shapes: list[tuple[int, ...]],
    ) -> tuple[Graph, bool] | None:  # fmt: skip
        """The form on the parts of such operands, and whether its imaginary part is zero."""
        specs = tuple([(x.shape, x.dtype.str, s) for x, s in zip(operands, shapes, strict=True)])
        key = (node.name, specs, repr(params))
        if key not in self._known:
            self._known[key] = _trace(form, params, node, operands, shapes)
        return self._known[key]


def _trace(
    form: Form, params: dict[str, Any], node: Node, operands: list[Node],
    shapes: list[tuple[int, ...]],
) -> tuple[Graph, bool] | None:  # fmt: skip
    given = [
        np.ones(x.shape, real_type(x.dtype))
        for x, there in zip(operands, shapes, strict=True)
        for part in there
        if part
    ]
    missing = False

    def flat(*values: Any) -> tuple[Any, ...] | None:
        nonlocal missing
        left = iter(values)
        args: list[Any] = []
        for x, there in zip(operands, shapes, strict=True):
            found = [next(left) if part else None for part in there]
            args.append(Pair(*found) if _is_complex(x) else found[0])
        if node.name not in SPARSE:
            args = [_full(x, arg) for x, arg in zip(operands, args, strict=True)]
        found = form(*args, **params)
        if found is None or not _is_complex(node):
            return None if found is None else (found,)
        missing = found.im is None
        return (found.re,) if missing else (found.re, found.im)

    inner = traced(flat, given, {})
    if inner is None:
        return None
    for k in inner.outputs:
        made = inner.nodes[k]
        assert made.shape == node.shape, f"{node.name}: {made.spec}, {node.spec}"
        assert made.dtype == real_type(node.dtype), f"{node.name}: {made.spec}, {node.spec}"
    return inner, missing


def _full(x: Node, value: Any) -> Any:
    """An operand with both parts; what is real beside complex operands is a part, too."""
    if isinstance(value, Pair) and value.im is None:
        return Pair(value.re, np.zeros(x.shape, real_type(x.dtype)))
    return value


class OnPairs(Op):
    """An operation on arrays of parts, for a call of Python; it stands in no table."""

    def __init__(self, op: Op, is_complex: list[bool]) -> None:
        count = len(is_complex) - 1
        # Of another name: what loops and LAPACK compute of this operation they compute of numbers.
        self.name, self.kind, self.code = f"{op.name} of pairs", CUSTOM, op.code
        self.inputs, self.formulas, self.saves = op.inputs, op.formulas, op.saves
        self.moving = self.exact = (False,) * count
        self.named, self.short = op.named, None
        self.view = self.variadic = self.multilinear = self.jointly_linear = self.keeps = False

        def forward(*args: np.ndarray, **params: Any) -> Any:
            given = [
                _joined(arg) if known else arg for arg, known in zip(args, is_complex, strict=False)
            ]
            found = np.asarray(op.forward(*given, **params), order="C")
            if not is_complex[-1]:
                return found
            return found.reshape(*found.shape, 1).view(real_type(found.dtype))

        self.forward = forward


def _joined(pairs: np.ndarray) -> np.ndarray:
    """The complex numbers whose parts lie side by side."""
    kind = np.result_type(pairs.dtype, np.complex64)
    joined: np.ndarray = np.ascontiguousarray(pairs).view(kind)[..., 0]
    return joined


def _constant(value: np.ndarray) -> Node:
    return Node(None, (), {}, value.shape, value.dtype, value)


def _part(value: np.ndarray, which: int) -> np.ndarray:
    return value.imag if which else value.real
