"""Replace compound operations by their decompositions.

It comes after the gradients: these were traced by each operation's own rule, and what that computes
is decomposed in turn.  A form, the `decomposition` of a row, is traced once for each shape, on
operands of any value, and what it did is put in the place of every record like it; records that
have no form are copied as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.autograd.grad_mode import recording
from tapegrad.compiler.ir.graph import Builder, Graph, Node
from tapegrad.compiler.passes.dead_code import without_dead
from tapegrad.compiler.trace.traced import TensorTrace
from tapegrad.ops.core import Op
from tapegrad.ops.scan import DOUBLE_OF
from tapegrad.ops.shape import to
from tapegrad.tape.tape import current

Form = Callable[..., Any]


def expanded(graph: Graph) -> Graph:
    """Replace compound operations, and records with empty operands by constants."""
    if not any(
        0 in node.shape or _is_compound(node.op) or _in_double(node) for node in graph.nodes
    ):
        return graph
    builder = Builder(graph)
    known: dict[Any, Graph | None] = {}
    for position, node in enumerate(graph.nodes):
        if _is_empty(graph, node):
            builder.where[position] = builder.add(_constant(graph, node))
            continue
        form = form_of(node.op, node.dtype.kind) if isinstance(node.op, Op) else None
        form = form or _in_double(node)
        operands = [graph.nodes[a] for a in node.args]
        inner = None if form is None else _known(known, form, node, operands)
        if inner is None:
            builder.copy(position)
        else:
            (found,) = put(builder, inner, [builder.where[a] for a in node.args])
            builder.where[position] = found
    return builder.done()


def form_of(op: Op, kind: str) -> Form | None:
    """The form of an operation whose result has a dtype of some kind, if it has one."""
    return op.decomposition if kind.replace("u", "i") in op.kinds else None


def _in_double(node: Node) -> Form | None:
    """The form of running sums and products in single precision: they are computed in double."""
    op, kind = node.op, DOUBLE_OF.get(node.dtype.char)
    if not isinstance(op, Op) or not op.scans or kind is None:
        return None

    def form(*xs: Any, **params: Any) -> Any:
        found = op(*[to(x, dtype=kind) for x in xs], **params)
        return to(found, dtype=node.dtype)

    return form


def _is_compound(op: Any) -> bool:
    """Whether an operation has a form for some operands."""
    return isinstance(op, Op) and op.decomposition is not None


def _is_empty(graph: Graph, node: Node) -> bool:
    """Whether a result is known because its operands are empty."""
    if not node.args or not isinstance(node.op, Op):
        return False
    return 0 in node.shape or all(0 in graph.nodes[a].shape for a in node.args)


def _constant(graph: Graph, node: Node) -> Node:
    if 0 in node.shape:
        value = np.empty(node.shape, node.dtype)
    else:
        assert node.op is not None
        empty = [np.empty(graph.nodes[a].shape, graph.nodes[a].dtype) for a in node.args]
        with np.errstate(all="ignore"):
            value = np.array(node.op.forward(*empty, **node.params), node.dtype)
    return Node(None, (), {}, node.shape, node.dtype, value)


def _known(
    known: dict[Any, Graph | None], form: Form, node: Node, operands: list[Node]
) -> Graph | None:
    """The traced decomposition for such operands, expanded in turn; None if it has none."""
    specs = tuple([(x.shape, x.dtype.str) for x in operands])
    key = (node.name, specs, repr(node.params))
    if key not in known:
        inner = traced(form, [np.ones(x.shape, x.dtype) for x in operands], node.params)
        found = known[key] = None if inner is None else expanded(inner)
        if found is not None:
            result = found.nodes[found.outputs[0]]
            assert result.spec == node.spec, f"the form of {node.name} gave {result.spec}"
    return known[key]


def traced(form: Form, operands: list[np.ndarray], params: dict[str, Any]) -> Graph | None:
    """What a form does with such operands; it gives a result, or several, or None."""
    trace = TensorTrace()
    given = [trace.input(x) for x in operands]
    tape = current.tape
    before = tape.levels
    tape.levels = [*before, trace]
    try:
        with recording(tape, False), np.errstate(all="ignore"):
            found = form(*given, **params)
    finally:
        tape.levels = before
    if found is None:
        return None
    results = found if isinstance(found, tuple) else (found,)
    return without_dead(trace.graph(tuple([trace.position(x) for x in results])))


def put(builder: Builder, inner: Graph, operands: list[int]) -> list[int]:
    """Inline another graph over some operands; returns the positions of its results."""
    where = dict(zip(inner.inputs, operands, strict=True))
    for position, node in enumerate(inner.nodes):
        if position not in where:
            args = tuple([where[a] for a in node.args])
            where[position] = builder.add(node.on(args) if args else node)
    return [where[k] for k in inner.outputs]
