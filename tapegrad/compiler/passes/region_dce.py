"""Eliminate dead code in loops and branches, and run passes over the graphs they own."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tapegrad.compiler.ir.control_ops import BRANCH, LOOP, REGION, TAKE, Repeat, Sub
from tapegrad.compiler.ir.graph import Builder, Graph, Node

Pass = Callable[[Graph], Graph]
Pruned = tuple[Node, dict[int, int]]
Read = Callable[[int, Node, set[int]], Iterable[int]]


def pruned(graph: Graph, inner: Pass) -> Graph:
    """Drop the results of loops and branches that nothing uses, and what computes them.

    `inner` is run on the graphs that they own, and prunes those nested in these.
    """
    if not any(op.kind is REGION for op in graph.ops()):
        return graph
    replaced = _backwards(graph, inner)
    builder = Builder(graph)
    for position, node in enumerate(graph.nodes):
        made = replaced[position][0] if position in replaced else node
        if node.op is TAKE and node.args[0] in replaced:
            # A result without a number is dead.
            k = replaced[node.args[0]][1].get(node.params["k"], -1)
            made = Node(TAKE, node.args, {"k": k}, node.shape, node.dtype)
        builder.where[position] = builder.add(builder.remapped(made))
    return builder.done()


def _backwards(graph: Graph, inner: Pass) -> dict[int, Pruned]:
    """The pruned record of each loop and branch, and new numbers of its results."""
    found: dict[int, Pruned] = {}

    def read(position: int, node: Node, taken: set[int]) -> Iterable[int]:
        made = _loop if node.op is LOOP else _branch
        found[position] = made(node, taken, inner)
        return found[position][0].args

    _walk(graph.nodes, graph.roots(), read)
    return found


def _walk(nodes: list[Node], roots: Iterable[int], read: Read) -> set[int]:
    """The live records; a loop or branch keeps live what `read` says of it.

    Backwards: one that reads less lets those before it compute less.
    """
    live = set(roots)
    taken: dict[int, set[int]] = {}
    for position in range(len(nodes) - 1, -1, -1):
        if position not in live:
            continue
        node = nodes[position]
        if node.op is TAKE:
            taken.setdefault(node.args[0], set()).add(node.params["k"])
        region = node.op is LOOP or node.op is BRANCH
        live.update(read(position, node, taken[position]) if region else node.args)
    return live


def _used(sub: Sub, outputs: Iterable[int]) -> set[int]:
    """The inputs that some outputs depend on, through nested loops too."""
    live = _walk(sub.nodes, [sub.outputs[k] for k in outputs], _read)
    return {k for k, i in sub.inputs.items() if i in live}


def _read(position: int, node: Node, taken: set[int]) -> Iterable[int]:
    """The operands of a loop or branch that the results in use depend on."""
    if node.op is BRANCH:
        reads = set().union(*[_used(arm, taken) for arm in node.params["arms"]])
        return [node.args[0], *[node.args[1 + k] for k in reads]]
    form: Repeat = node.params["form"]
    carries, _, reads = _kept(form, taken)
    reads |= carries
    if form.until is not None:
        reads |= _used(form.until, [0])
    given = node.args[form.counted :]
    return [*node.args[: form.counted], *[given[k] for k in reads]]


def _kept(form: Repeat, taken: set[int]) -> tuple[set[int], list[int], set[int]]:
    """The live carries of a loop, its live outputs, and the inputs that both read."""
    n, count = form.carries, len(form.body.outputs)
    carries = {k if k < n else k - count for k in taken if k < n or count <= k < form.counter}
    outputs = sorted(k for k in taken if n <= k < count)
    if form.until is not None:
        carries |= {k for k in _used(form.until, [0]) if k < n}
    while True:
        reads = _used(form.body, [*carries, *outputs])
        more = {k for k in reads if k < n} - carries
        if not more:
            return carries, outputs, reads
        carries |= more


def _loop(node: Node, taken: set[int], inner: Pass) -> Pruned:
    form: Repeat = node.params["form"]
    n = form.carries
    carries, outputs, _ = _kept(form, taken)
    kept = [*sorted(carries), *outputs]
    positions = tuple([form.body.outputs[k] for k in kept])
    # The passes may make owned graphs read less.
    body = _inner(Sub(form.body.nodes, form.body.inputs, positions), inner)
    until = None if form.until is None else _inner(form.until, inner)
    reads = body.used() | (until.used() if until is not None else set())
    assert all(k in carries for k in reads if k < n), "a nested loop was not pruned"
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


def _branch(node: Node, taken: set[int], inner: Pass) -> Pruned:
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
