"""Graphs written down by hand, and what they compute, record by record."""

import numpy as np

from tapegrad.compiler.graph import Graph, Guard, Node, check
from tapegrad.compiler.pieces import ADDED
from tapegrad.ops.core import table
from tapegrad.ops.shape import embed


def graph(*rows, outputs=(-1,), guards=()):
    """Of rows: a shape or an array with dtype (an input), ("=", value), or (name, args, params)."""
    nodes, values, inputs = [], [], []
    for row in rows:
        if isinstance(row, np.ndarray):
            inputs.append(len(nodes))
            nodes.append(Node(None, (), {"k": len(inputs) - 1}, row.shape, row.dtype))
            values.append(row)
        elif row[0] == "=":
            value = np.asarray(row[1])
            nodes.append(Node(None, (), {}, value.shape, value.dtype, value))
            values.append(value)
        else:
            name, args, *rest = row
            params = rest[0] if rest else {}
            with np.errstate(all="ignore"):
                value = np.asarray(table[name].forward(*[values[a] for a in args], **params))
            nodes.append(Node(table[name], tuple(args), params, value.shape, value.dtype))
            values.append(value)
    made = Graph(
        nodes, tuple(inputs), tuple(k % len(nodes) for k in outputs),
        tuple(Guard(k, expected) for k, expected in guards),
    )  # fmt: skip
    check(made)
    return made


def run(graph, *inputs):
    """The results of a graph, by the forwards of its operations."""
    values = []
    for node in graph.nodes:
        args = [values[a] for a in node.args]
        if node.value is not None:
            values.append(node.value)
        elif node.op is None:
            values.append(inputs[node.params["k"]])
        elif node.name == ADDED:
            based = node.params["based"]
            total = args.pop(0).copy() if based else np.zeros(node.shape, node.dtype)
            for part, index in zip(args, node.params["indices"], strict=True):
                total = total + embed.forward(part, index=index, shape=node.shape)
            values.append(total)
        else:
            with np.errstate(all="ignore"):
                values.append(np.asarray(node.op.forward(*args, **node.params)))
    return [values[k] for k in graph.outputs]


def names(graph):
    return [node.name for node in graph.nodes]


def same_bits(found, wanted):
    """Equal bit for bit; one NaN is as good as another."""
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_array_equal(a, b)
        if a.dtype.kind == "f":
            numbers = ~np.isnan(a)
            np.testing.assert_array_equal(np.signbit(a)[numbers], np.signbit(b)[numbers])


def passed(change, before, *inputs):
    """The graph after a pass, which must compute the same and leave the other as it was."""
    text = str(before)
    after = change(before)
    check(after)
    assert str(before) == text
    assert len(after.inputs) == len(before.inputs)
    same_bits(run(after, *inputs), run(before, *inputs))
    return after
