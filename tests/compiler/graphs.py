"""Graphs written down by hand, and what they compute, record by record."""

import ctypes

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.compiler.front import specialization
from tapegrad.compiler.ir.control_ops import (
    BRANCH,
    LOOP,
    REGION,
    TAKE,
    Glance,
    graphs_of,
    result,
    run_region,
)
from tapegrad.compiler.ir.copy_plans import ADDED
from tapegrad.compiler.ir.graph import Graph, Guard, Node, check
from tapegrad.ops.families import table
from tapegrad.ops.shape import embed

# Zeros of both signs, NaN, infinities, numbers at the ends of the range.
SPECIAL = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1.0, -1.5, 5e-324, -5e-324, 1.7e308])


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


def traced(f, *arrays):
    """The graph of a function as its trace leaves it, before any pass."""

    class Seen(BaseException):
        """Ends a compilation where the passes would begin."""

    def stop(graph):
        raise Seen(graph)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(specialization, "optimised", stop)
        with pytest.raises(Seen) as seen:
            tg.jit(f).lower(*arrays)
    return seen.value.args[0]


def run(graph, *inputs):
    """The results of a graph, by the forwards of its operations."""
    values = []
    for node in graph.nodes:
        with np.errstate(all="ignore"):
            value = _computed(node, [values[a] for a in node.args], inputs)
        if node.op is not LOOP and node.op is not BRANCH:
            assert (value.shape, value.dtype) == (node.shape, node.dtype), node.name
        values.append(value)
    return [values[k] for k in graph.outputs]


def _computed(node, args, inputs):
    if node.value is not None:
        return node.value
    if node.op is None:
        return inputs[node.params["k"]]
    if node.op is TAKE:
        return result(args[0], node.params["k"])
    if node.op.kind is REGION:
        return run_region(node.op, node.params, args, Glance(None))
    if node.name != ADDED:
        return np.asarray(node.op.forward(*args, **node.params))
    based = node.params["based"]
    total = args.pop(0).copy() if based else np.zeros(node.shape, node.dtype)
    for part, index in zip(args, node.params["indices"], strict=True):
        total = total + embed.forward(part, index=index, shape=node.shape)
    return total


def executed(graph, *inputs):
    """The results of a graph that is compiled as it is."""
    program = specialization.compiled(graph, fast=False, traced=graph)
    outputs = [np.empty(spec.shape, spec.dtype) for spec in program.outputs]
    addresses = [np.array([x.ctypes.data for x in xs] or [0]) for xs in (inputs, outputs)]
    call = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 3)(program.address)
    assert call(*[x.ctypes.data for x in addresses], None) == 0
    return outputs


def owned(graph):
    """The graphs that the loops and branches of a graph own, and those within them."""
    for node in graph.nodes:
        if node.op is LOOP or node.op is BRANCH:
            for sub in graphs_of(node):
                yield sub.graph()
                yield from owned(sub.graph())


def text(graph):
    """A graph as text, with those that its records own."""
    return "\n\n".join(map(str, (graph, *owned(graph))))


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


def same_without_python(f, *args, tolerance):
    """The compiled function gives what the eager one does, and calls no Python."""
    compiled = tg.jit(f)
    found, wanted = compiled(*args), f(*args)
    assert compiled.lower(*args).callbacks == ()
    several = isinstance(found, tuple)
    for a, b in zip(found, wanted, strict=True) if several else [(found, wanted)]:
        a, b = np.asarray(a), np.asarray(b)
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        scale = max(np.abs(b).max(initial=0.0), 1.0)
        np.testing.assert_allclose(a, b, rtol=0, atol=scale * tolerance)


def passed(change, before, *inputs, alike=same_bits):
    """The graph after a pass, which must compute the same and leave the other as it was."""
    was = text(before)
    after = change(before)
    for each in (after, *owned(after)):
        check(each)
    assert text(before) == was
    assert len(after.inputs) == len(before.inputs)
    assert [g.expected for g in after.guards] == [g.expected for g in before.guards]
    alike(run(after, *inputs), run(before, *inputs))
    return after
