"""Write operations on complex numbers as operations on their two parts.

Loops compute with real numbers alone, and what they cannot compute is a call of Python.  A complex
value becomes two real ones, by a form for each operation, which is traced like a decomposition.
What has a decomposition that takes complex numbers (a variance) needs no form.  An operation that
has none is computed of the array of the parts, in which they lie side by side: by LAPACK, whose
complex numbers lie so, or by a call of Python.  Inputs and results are such arrays, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.compiler.ir.control_ops import graphs_of, owns_graphs
from tapegrad.compiler.ir.graph import Builder, Graph, Node
from tapegrad.compiler.passes.apply_decompositions import expanded, put, traced
from tapegrad.compiler.passes.apply_decompositions import form_of as decomposition_of
from tapegrad.ops.complex_forms import (
    FORMS,
    POWERS,
    Form,
    Pair,
    form_of,
    knows_zeros,
    real_type,
    whole_power,
)
from tapegrad.ops.complex_parts import complex_
from tapegrad.ops.core import CUSTOM, Op, Spec
from tapegrad.ops.elementwise import pow as pow_
from tapegrad.ops.shape import getitem, stack, view_as_complex, view_as_real
from tapegrad.tape.shape_table import Shape


def with_pairs(graph: Graph) -> Graph:
    """The graph, in which complex numbers are pairs where that spares a call of Python."""
    if not computes(graph):
        return graph
    graph = expanded(graph)
    builder = _PairBuilder(graph)
    for position in range(len(graph.nodes)):
        builder.take(position)
    for position in graph.roots():
        builder.joined(position)
    return builder.done()


def with_real_ends(graph: Graph) -> Graph:
    """The graph with its complex inputs and results as the arrays of their parts, of real numbers.

    They lie in memory alike: who calls the program sees no difference.
    """
    nodes = graph.nodes
    ends = [k for k in (*graph.inputs, *graph.outputs) if is_complex(nodes[k])]
    if not ends or not computes(graph):
        return graph
    builder = Builder(graph)
    given: dict[int, int] = {}  # the complex inputs, as pairs
    for position, node in enumerate(nodes):
        if node.op is None and node.value is None and is_complex(node):
            given[position] = builder.add(Node(None, (), node.params, *_pair_spec(node)))
            joined = Node(view_as_complex, (given[position],), {}, node.shape, node.dtype)
            builder.where[position] = builder.add(joined)
        else:
            builder.copy(position)
    found = builder.done()

    def spread(k: int) -> int:
        node = found.nodes[k]
        pairs = Node(view_as_real, (k,), {}, *_pair_spec(node))
        return builder.add(pairs) if is_complex(node) else k

    outputs = tuple([spread(k) for k in found.outputs])
    inputs = tuple([given.get(k, builder.where[k]) for k in graph.inputs])
    return found._replace(inputs=inputs, outputs=outputs)


def computes(graph: Graph) -> bool:
    """Whether there is more to compute without Python than moves of elements, which loops can."""
    nodes = graph.nodes
    if not any(map(is_complex, nodes)):  # programs are long
        return False
    for x in nodes:
        operands = [nodes[a] for a in x.args]
        if not x.moves and (_is_written(x, operands) or _by_lapack(x, operands)):
            return True
    return any(computes(sub.graph()) for x in nodes if owns_graphs(x) for sub in graphs_of(x))


def is_complex(node: Node) -> bool:
    """Whether a record's value is of complex numbers."""
    return node.dtype.kind == "c"


def part_spec(node: Node) -> Spec:
    """The shape and the type of one part of a complex value."""
    return Spec(node.shape, real_type(node.dtype))


def _pair_spec(node: Node) -> tuple[Shape, np.dtype]:
    """The shape and the type of the array of a complex value's parts."""
    return (*node.shape, 2), real_type(node.dtype)


def parts_of(builder: Builder, position: int, node: Node) -> tuple[int, int]:
    """Append the parts of a complex value that stands at a position of the new graph."""
    pairs = builder.add(Node(view_as_real, (position,), {}, *_pair_spec(node)))
    return _taken_apart(builder, pairs, node)


def _taken_apart(builder: Builder, pairs: int, node: Node) -> tuple[int, int]:
    re, im = (
        builder.add(Node(getitem, (pairs,), {"index": (..., k)}, *part_spec(node)))
        for k in range(2)
    )
    return re, im


def _is_written(node: Node, operands: list[Node]) -> bool:
    """Whether a record of complex numbers has a form, or is made of what has some."""
    if _form(node, operands):
        return True
    made = isinstance(node.op, Op) and decomposition_of(node.op, node.dtype.kind) is not None
    return made and any(map(is_complex, operands))


def _form(node: Node, operands: list[Node]) -> tuple[Form, dict[str, Any]] | None:
    """What writes a record of complex numbers with their parts, and its parameters."""
    op = node.op
    if not isinstance(op, Op) or not any(map(is_complex, (node, *operands))):
        return None
    if any(view in (view_as_real, view_as_complex) for view, _ in node.params.get("chain", ())):
        return None  # it sees pairs on its way
    exponent = operands[1] if op is pow_ and operands[0].shape == node.shape else node
    if exponent.uniform and exponent.value is not None:
        x = exponent.value.flat[0]
        if x.imag == 0 and x.real in POWERS:
            return whole_power, {"n": int(x.real)}
    form = form_of(op, len(operands), is_complex(node))
    return None if form is None else (form, node.params)


def _by_lapack(node: Node, operands: list[Node]) -> bool:
    return isinstance(node.op, Op) and node.op.lapack and any(map(is_complex, (node, *operands)))


class _PairBuilder(Builder):
    """A graph with a complex value joined (`where`), in its parts, or both."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.parts: dict[int, tuple[int, int | None]] = {}
        self._known: dict[Any, tuple[Graph, bool]] = {}

    def take(self, position: int) -> None:
        """Append a record: by its form, or as it is."""
        node = self.graph.nodes[position]
        operands = [self.graph.nodes[a] for a in node.args]
        found, split = _form(node, operands), any(a in self.parts for a in node.args)
        # Loops move complex numbers too.
        if found is not None and (split or not node.moves or node.name in FORMS):
            self._put(position, node, operands, *found)
            return
        pairs = [is_complex(x) for x in (*operands, node)]
        split |= _by_lapack(node, operands)
        if isinstance(node.op, Op) and not node.moves and any(pairs) and split:
            self._call(position, node, pairs)
            return
        if self._take_part(position, node):
            return
        for a in node.args:
            self.joined(a)
        self.copy(position)

    def _take_part(self, position: int, node: Node) -> bool:
        """Have one part of a complex value that is known by its parts."""
        if node.op is not getitem or self.graph.nodes[node.args[0]].op is not view_as_real:
            return False
        dots, *which = node.params["index"]
        (whole,) = self.graph.nodes[node.args[0]].args
        if dots is not ... or len(which) != 1 or whole not in self.parts:
            return False
        self.where[position] = self._both(whole)[which[0]]
        return True

    def _call(self, position: int, node: Node, pairs: list[bool]) -> None:
        """Append an operation that is given arrays of parts and returns one."""
        args = [
            self._paired(a) if known else self.where[a]
            for a, known in zip(node.args, pairs, strict=False)
        ]
        assert node.op is not None
        op = OnPairs(node.op, pairs)
        shape, dtype = _pair_spec(node) if pairs[-1] else node.spec
        found = self.add(Node(op, tuple(args), node.params, shape, dtype))
        if pairs[-1]:
            self.parts[position] = _taken_apart(self, found, node)
        else:
            self.where[position] = found

    def _paired(self, position: int) -> int:
        """The array of a complex value's parts."""
        node = self.graph.nodes[position]
        dim = {"dim": len(node.shape)}
        return self.add(Node(stack, self._both(position), dim, *_pair_spec(node)))

    def _both(self, position: int) -> tuple[int, int]:
        """The parts of a complex value, zeros for an imaginary part that is left out."""
        node = self.graph.nodes[position]
        re, im = self._split(position)
        if im is None:
            im = self.add(_constant(np.zeros(node.shape, real_type(node.dtype))))
        return re, im

    def joined(self, position: int) -> None:
        """Have a value as one record."""
        if position in self.where:
            return
        node = self.graph.nodes[position]
        whole = Node(complex_, self._both(position), {}, node.shape, node.dtype)
        self.where[position] = self.add(whole)

    def _split(self, position: int) -> tuple[int, int | None]:
        """The parts of a complex value."""
        found = self.parts.get(position)
        if found is None:
            node = self.graph.nodes[position]
            if node.value is not None:
                re, im = node.value.real, node.value.imag
                found = self.add(_constant(re)), self.add(_constant(im)) if im.any() else None
            else:
                found = parts_of(self, self.where[position], node)
            self.parts[position] = found
        return found

    def _put(
        self, position: int, node: Node, operands: list[Node], form: Form, params: dict[str, Any]
    ) -> None:
        """Append the form of a record."""
        places: list[int] = []
        there: list[tuple[bool, ...]] = []
        for a, x in zip(node.args, operands, strict=True):
            found = self._split(a) if is_complex(x) else (self.where[a],)
            there.append(tuple([p is not None for p in found]))
            places += [p for p in found if p is not None]
        specs = tuple([(x.shape, x.dtype.str, s) for x, s in zip(operands, there, strict=True)])
        key = (node.name, specs, repr(params))
        if key not in self._known:
            self._known[key] = _trace(form, params, node, operands, there)
        graph, missing = self._known[key]
        results = put(self, graph, places)
        if is_complex(node):
            self.parts[position] = results[0], None if missing else results[1]
        else:
            self.where[position] = results[0]


def _trace(
    form: Form, params: dict[str, Any], node: Node, operands: list[Node],
    there: list[tuple[bool, ...]],
) -> tuple[Graph, bool]:  # fmt: skip
    """A form on the parts of operands that are there, and whether its imaginary part is zero."""
    given = [  # an index names the first place, which all have
        np.full(x.shape, x.dtype.kind in "fc", real_type(x.dtype))
        for x, parts in zip(operands, there, strict=True)
        for part in parts
        if part
    ]
    missing = False

    def flat(*values: Any) -> tuple[Any, ...]:
        nonlocal missing
        left = iter(values)
        args: list[Any] = []
        for x, parts in zip(operands, there, strict=True):
            found = [next(left) if part else None for part in parts]
            args.append(Pair(*found) if is_complex(x) else found[0])
        if not (isinstance(node.op, Op) and knows_zeros(node.op)):
            args = [_full(x, arg) for x, arg in zip(operands, args, strict=True)]
        result = form(*args, **params)
        if not is_complex(node):
            return (result,)
        missing = result.im is None
        return (result.re,) if missing else tuple(result)

    inner = traced(flat, given, {})
    assert inner is not None
    for k in inner.outputs:
        made = inner.nodes[k]
        assert made.shape == node.shape, f"{node.name}: {made.spec}, {node.spec}"
        assert made.dtype == real_type(node.dtype), f"{node.name}: {made.spec}, {node.spec}"
    return inner, missing


def _full(x: Node, value: Any) -> Any:
    """An operand with both parts, if it is complex."""
    if isinstance(value, Pair) and value.im is None:
        return Pair(value.re, np.zeros(x.shape, real_type(x.dtype)))
    return value


class OnPairs(Op):
    """An operation on arrays of parts, for LAPACK or a call of Python; it stands in no table."""

    def __init__(self, op: Op, pairs: list[bool]) -> None:
        count = len(pairs) - 1
        # Of another name: what loops compute of this operation they compute of numbers.
        self.name, self.kind, self.code = f"{op.name} of pairs", CUSTOM, op.code
        self.whole, self.pairs, self.lapack = op, tuple(pairs), op.lapack
        self.inputs, self.formulas, self.saves = op.inputs, op.formulas, op.saves
        self.moving = self.exact = (False,) * count
        self.named, self.entry_point = op.named, None
        self.view = self.variadic = self.multilinear = self.jointly_linear = self.keeps = False

        def forward(*args: np.ndarray, **params: Any) -> Any:
            given = [
                _joined(arg) if known else arg for arg, known in zip(args, pairs, strict=False)
            ]
            found = np.asarray(op.forward(*given, **params), order="C")
            if not pairs[-1]:
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
