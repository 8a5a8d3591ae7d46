"""Loops and branches without what nobody takes of them, and passes over the graphs they own."""

from __future__ import annotations

from collections.abc import Callable

from tapegrad.compiler.graph import Builder, Graph, Node
from tapegrad.compiler.region import BRANCH, LOOP, REGION, TAKE, Repeat, Sub

Pass = Callable[[Graph], Graph]
Narrow = tuple[Node, dict[int, int]]


def narrowed(graph: Graph, inner: Pass) -> Graph:
    """The graph whose loops and branches compute what is taken of them and nothing else.

    `inner` is what is done to the graphs that they own.
    """
    if not any(node.op is not None and node.op.kind is REGION for node in graph.nodes):
        return graph
    narrow = _backwards(graph, inner)
    builder = Builder(graph)
    for position, node in enumerate(graph.nodes):
        made = narrow[position][0] if position in narrow else node
        if node.op is TAKE and node.args[0] in narrow:
            # What nobody reads any more has no number: it is dead.
            k = narrow[node.args[0]][1].get(node.params["k"], -1)
            made = Node(TAKE, node.args, {"k": k}, node.shape, node.dtype)
        builder.where[position] = builder.add(builder.moved(made))
    return builder.done()


def _backwards(graph: Graph, inner: Pass) -> dict[int, Narrow]:
    """What becomes of each loop and branch: a record with less, and new numbers of its results.

    From the last to the first: one that reads less lets those before it compute less.
    """
    live = set(graph.roots())
    taken: dict[int, set[int]] = {}
    found: dict[int, Narrow] = {}
    for position in range(len(graph.nodes) - 1, -1, -1):
        if position not in live:
            continue
        node = graph.nodes[position]
        if node.op is TAKE:
            taken.setdefault(node.args[0], set()).add(node.params["k"])
        elif node.op is LOOP:
            found[position] = _loop(node, taken[position], inner)
            node = found[position][0]
        elif node.op is BRANCH:
            found[position] = _branch(node, taken[position], inner)
            node = found[position][0]
        live.update(node.args)
    return found


def _loop(node: Node, taken: set[int], inner: Pass) -> Narrow:
    form: Repeat = node.params["form"]
    n, count = form.carries, len(form.body.outputs)
    carries = {k if k < n else k - count for k in taken if k < n or count <= k < form.counter}
    outputs = sorted(k for k in taken if n <= k < count)
    if form.until is not None:
        carries |= {k for k in form.until.used() if k < n}
    while True:
        kept = [*sorted(carries), *outputs]
        positions = tuple([form.body.outputs[k] for k in kept])
        reads = Sub(form.body.nodes, form.body.inputs, positions).used()
        if {k for k in reads if k < n} <= carries:
            break
        carries |= {k for k in reads if k < n}
    # The graphs they own may read less when they have been through the passes themselves.
    body = _inner(Sub(form.body.nodes, form.body.inputs, positions), inner)
    until = None if form.until is None else _inner(form.until, inner)
    reads = body.used() | (until.used() if until is not None else set())
    operands = [*sorted(carries), *sorted(k for k in reads if k >= n)]
    new = {k: i for i, k in enumerate(operands)}
    made = form._replace(
        body=body.renumbered(new),
        until=None if until is None else until.renumbered(new),
        carries=len(carries),
        rows=sum(n <= k < n + form.rows for k in operands),
    )
    given = node.args[form.counted :]
    args = (*node.args[: form.counted], *[given[k] for k in operands])
    found = {k: i for i, k in enumerate(kept)}
    found |= {form.entry(k): made.entry(i) for i, k in enumerate(sorted(carries))}
    found[form.counter] = made.counter
    return Node(LOOP, args, {"form": made}, node.shape, node.dtype), found


def _branch(node: Node, taken: set[int], inner: Pass) -> Narrow:
    kept = sorted(taken)
    arms = [
        _inner(Sub(arm.nodes, arm.inputs, tuple([arm.outputs[k] for k in kept])), inner)
        for arm in node.params["arms"]
    ]
    operands = sorted({k for arm in arms for k in arm.used()})
    new = {k: i for i, k in enumerate(operands)}
    graphs = tuple([arm.renumbered(new) for arm in arms])
    args = (node.args[0], *[node.args[1 + k] for k in operands])
    numbers = {k: i for i, k in enumerate(kept)}
    return Node(BRANCH, args, {"arms": graphs}, node.shape, node.dtype), numbers


def _inner(sub: Sub, inner: Pass) -> Sub:
    return Sub.of(inner(sub.graph()))
