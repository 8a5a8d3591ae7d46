"""Save residuals in a loop that its adjoint would recompute, where that pays.

A loop saves the carries at the start of each trip, and its adjoint reruns the body on them.  An
expensive value there (an elementary function, a matrix product) becomes an output of each trip of
the loop, and a row of the adjoint.  Cheap ones are rematerialised: they take no memory.
"""

from __future__ import annotations

from math import prod
from typing import Any

from tapegrad.compiler.ir.buffers import WINDOWS
from tapegrad.compiler.ir.control_ops import LOOP, REGION, TAKE, Repeat, Sub
from tapegrad.compiler.ir.graph import Builder, Graph, Node
from tapegrad.compiler.llvm.scalar_ops import calls
from tapegrad.compiler.passes.common_subexpressions import key_of
from tapegrad.ops.core import ELEMENTWISE

# Bytes of residuals allowed for one loop, and per byte of its rows.
ROOM, TIMES = 1 << 22, 4


def with_kept_values(graph: Graph) -> Graph:
    """Have loops output the expensive values that later loops would recompute."""
    nodes = graph.nodes
    kept: dict[int, list[int]] = {}  # loop -> residuals, as records of its body
    taken: dict[int, dict[int, tuple[int, int]]] = {}  # by the reader: records of its body
    for position, node in enumerate(nodes):
        if node.op is not LOOP or node.params["form"].trips is None:
            continue
        for source in _sources(nodes, node):
            known = taken.setdefault(position, {})
            for ours, theirs in _again(nodes, source, node, known).items():
                known[ours] = source, theirs
                given = kept.setdefault(source, [])
                if theirs not in given and theirs not in _given(nodes[source]):
                    given.append(theirs)
    if not any(taken.values()):
        return graph
    builder = Builder(graph)
    for position, node in enumerate(nodes):
        made = builder.remapped(node)
        if node.op is TAKE and node.args[0] in kept:
            form: Repeat = nodes[node.args[0]].params["form"]
            k = node.params["k"]
            if k >= form.entry(0):
                k += len(kept[node.args[0]])
            made = Node(TAKE, made.args, {"k": k}, node.shape, node.dtype)
        if taken.get(position):
            made = _reading(builder, nodes, made, taken[position], kept)
        if kept.get(position):
            made = _giving(made, kept[position])
        builder.where[position] = builder.add(made)
    return builder.done()


def _sources(nodes: list[Node], reader: Node) -> list[int]:
    """The loops of as many trips whose per-trip results a loop reads."""
    form: Repeat = reader.params["form"]
    rows = [nodes[a] for a in form.split(reader.args)[1]]
    found = dict.fromkeys([row.args[0] for row in rows if row.op is TAKE])
    return [f for f in found if nodes[f].op is LOOP and nodes[f].params["form"].trips == form.trips]


def _again(
    nodes: list[Node], source: int, reader: Node, known: dict[int, tuple[int, int]]
) -> dict[int, int]:
    """The expensive records of a body that another loop's body has computed already."""
    same = _same(nodes, source, reader)
    form: Repeat = reader.params["form"]
    body = form.body
    room = max(ROOM, TIMES * sum(_bytes(nodes[a]) for a in form.split(reader.args)[1]))
    needed = set(body.outputs)
    found = {}
    for position in range(len(body.nodes) - 1, -1, -1):
        node = body.nodes[position]
        if position not in needed or position in known or node.op is None:
            continue
        size = _bytes(node) * (form.trips or 0)
        if position in same and size <= room and _takes_long(node):
            found[position] = same[position]
            room -= size
        else:
            needed.update(node.args)
    return found


def _takes_long(node: Node) -> bool:
    """Whether loading a value is cheaper than computing it."""
    assert node.op is not None
    if node.op.kind is ELEMENTWISE:
        return calls(node.name)
    if node.op.kind is REGION or node.name == "to":
        return False
    # A concatenation is written to memory anyway.
    return node.moves not in WINDOWS and "gather" not in node.moves


def _bytes(node: Node) -> int:
    return prod(node.shape) * node.dtype.itemsize


def _same(nodes: list[Node], source: int, reader: Node) -> dict[int, int]:
    """Map records of a loop's body to equal ones of an earlier loop's.

    They have the same value in the same trip.
    """
    theirs: Repeat = nodes[source].params["form"]
    ours: Repeat = reader.params["form"]
    same = _same_inputs(nodes, source, reader)
    known = {_key(node): p for p, node in enumerate(theirs.body.nodes)}
    known.pop(None, None)
    for position, node in enumerate(ours.body.nodes):
        if node.op is None and node.value is None:
            continue
        if all(a in same for a in node.args):
            found = known.get(_key(node.on(tuple([same[a] for a in node.args]))))
            if found is not None:
                same[position] = found
    return same


def _key(node: Node) -> Any:
    value = node.value
    if value is None or node.uniform or value.nbytes > ROOM:
        return key_of(node)
    return value.dtype.str, value.shape, value.tobytes()


def _same_inputs(nodes: list[Node], source: int, reader: Node) -> dict[int, int]:
    theirs: Repeat = nodes[source].params["form"]
    ours: Repeat = reader.params["form"]
    given = nodes[source].args
    rows = range(theirs.carries, theirs.carries + theirs.rows)
    same = {}
    for k, position in ours.body.inputs.items():
        if k < ours.carries:
            continue
        a = reader.args[k]
        node = nodes[a]
        row = k < ours.carries + ours.rows
        found: int | None = None
        if row and node.op is TAKE and node.args[0] == source:
            result = node.params["k"]
            if theirs.carries <= result < theirs.entry(0):
                found = theirs.body.outputs[result]
            elif result >= theirs.entry(0):
                found = theirs.body.inputs.get(result - theirs.entry(0))
        else:
            among = rows if row else range(rows.stop, len(given))
            number = next((j for j in among if given[j] == a), -1)
            found = theirs.body.inputs.get(number)
        if found is not None:
            same[position] = found
    return same


def _given(node: Node) -> tuple[int, ...]:
    """The per-trip outputs of a loop, as records of its body."""
    form: Repeat = node.params["form"]
    return form.body.outputs[form.carries :]


def _giving(node: Node, more: list[int]) -> Node:
    """A loop with further per-trip outputs."""
    form: Repeat = node.params["form"]
    body = form.body
    made = Sub(body.nodes, body.inputs, (*body.outputs, *more), pulled=body.pulled)
    return _changed(node, form._replace(body=made), node.args)


def _reading(
    builder: Builder, nodes: list[Node], node: Node, taken: dict[int, tuple[int, int]],
    kept: dict[int, list[int]],
) -> Node:  # fmt: skip
    """A loop that reads residuals as further rows."""
    form: Repeat = node.params["form"]
    assert form.trips is not None
    start = form.carries + form.rows
    body = form.body
    records = list(body.nodes)
    inputs = {k + len(taken) if k >= start else k: p for k, p in body.inputs.items()}
    for k, p in inputs.items():
        records[p] = Node(None, (), {"k": k}, records[p].shape, records[p].dtype)
    rows = []
    for k, (position, (source, theirs)) in enumerate(taken.items(), start):
        old = records[position]
        records[position] = Node(None, (), {"k": k}, old.shape, old.dtype)
        inputs[k] = position
        given = [*_given(nodes[source]), *kept[source]]
        number = nodes[source].params["form"].carries + given.index(theirs)
        shape = (form.trips, *old.shape)
        take = Node(TAKE, (builder.where[source],), {"k": number}, shape, old.dtype)
        rows.append(builder.add(take))
    made = Sub(records, inputs, body.outputs, pulled=body.pulled)
    args = (*node.args[:start], *rows, *node.args[start:])
    return _changed(node, form._replace(body=made, rows=form.rows + len(rows)), args)


def _changed(node: Node, form: Repeat, args: tuple[int, ...]) -> Node:
    return Node(node.op, args, {**node.params, "form": form}, node.shape, node.dtype)
