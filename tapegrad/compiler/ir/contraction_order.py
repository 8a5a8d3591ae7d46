"""Contract sums of weighted matrix products in the cheapest order.

``((A @ P) * w[:, None, :]).sum(0)`` is a sum over three factors, of which any two may be multiplied
first: with ``A`` of b × r × k, ``P`` of k × n and ``w`` of b × n, the array between the two
products has b·r·n elements as written, r·k·n where the matrices are blended first, b·k·n where the
points are weighted first.  The order with the least cost is written, before a gradient is taken,
which then follows it.  Strong products stay strong: a zero factor gives zero.  Unless a product
overflows, the same elements are finite: those reached by an infinite factor may be NaN in place of
an infinity, or the reverse.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterator
from math import prod
from typing import NamedTuple

from tapegrad.compiler.ir.graph import Builder, Graph, Node, Rewritten, reached
from tapegrad.ops import shape as s
from tapegrad.ops.core import Op
from tapegrad.ops.elementwise import add, exact, mul, strong
from tapegrad.ops.linalg import matmul, product
from tapegrad.ops.reduce import sum as sum_along
from tapegrad.tape.shape_table import Shape

GAIN = 1.2  # another order must be cheaper by so much
LEAST = 512  # elements of what is summed, from which on it is looked at
DEPTH = 16  # sums of sums that are looked through
# Costs, in units of one element written and read again: of a multiplication within a product of
# matrices, of one within a loop over elements, and of a call for one matrix of a batch.
WITHIN_GEMM, WITHIN_LOOP, CALL = 1 / 16, 1 / 8, 25.0


class Factor(NamedTuple):
    """A record, and the names of its dimensions but for those of one element."""

    at: int
    dims: str


class Term(NamedTuple):
    """A product of matrices, and what its elements are multiplied by."""

    matrices: int  # the record of the product
    shape: Shape  # in which it is seen
    weights: tuple[int, ...]
    strong: bool  # whether a zero factor gives zero


class Pair(NamedTuple):
    """How two factors are multiplied: the names of dimensions in groups; and the cost.

    Those of `batch` are in both and stay, those of `inner` are summed.  Products of elements have
    all their other dimensions in `left`.
    """

    a: int
    b: int
    batch: str
    left: str
    right: str
    inner: str
    matrices: bool
    cost: float

    @property
    def result(self) -> str:
        """The names of the result's dimensions."""
        return self.batch + self.left + self.right


class Plan(NamedTuple):
    """The pairs to multiply, one after the other; each result goes to the end of the factors.

    And the sizes of dimensions by their names, the cost, and that of what is written `before`.
    """

    term: Term
    factors: tuple[Factor, ...]
    pairs: tuple[Pair, ...]
    size: dict[str, int]
    cost: float
    before: float


def contracted(graph: Graph, blocked: Container[int] = ()) -> Rewritten:
    """Write contractions in the cheapest order.

    Gradients do not pass the records that are `blocked`: these stay as they are.
    """
    found = _Search(graph, blocked).plans() if may_contract(graph.nodes) else {}
    if not found:
        return Rewritten(graph, {}, blocked)
    writer = _Writer(graph)
    for position in range(len(graph.nodes)):
        if position in found:
            writer.contract(position, found[position])
        else:
            writer.copy(position)
    where = writer.where
    return Rewritten(writer.done(), where, {where[p] for p in where if p in blocked})


def may_contract(nodes: list[Node]) -> bool:
    """Whether there is anything to look at."""
    return (
        any(_is_product(node) for node in nodes)
        and any(map(_is_sum, nodes))
        and any(node.size >= LEAST for node in nodes)
    )


def _is_product(node: Node) -> bool:
    return node.op is matmul or node.op is product


def _is_sum(node: Node) -> bool:
    return node.op is sum_along


class _Search:
    """Finds sums that are cheaper in another order."""

    def __init__(self, graph: Graph, blocked: Container[int]) -> None:
        self.nodes, self.uses, self.blocked = graph.nodes, graph.uses(), blocked
        self.live = reached(graph, graph.roots())

    def plans(self) -> dict[int, list[Plan]]:
        """Of each sum the plans of its terms.

        What its products are read by elsewhere would need them anyway: such sums stay.
        """
        found: dict[int, list[Plan]] = {}
        for position, node in enumerate(self.nodes):
            if _is_sum(node) and self.nodes[node.args[0]].size >= LEAST:
                plans = self._of_sum(position)
                if plans:
                    found[position] = plans
        while found:
            reads = Counter(plan.term.matrices for plans in found.values() for plan in plans)
            elsewhere = [
                position
                for position, plans in found.items()
                if any(self.uses[p.term.matrices] != reads[p.term.matrices] for p in plans)
            ]
            if not elsewhere:
                break
            for position in elsewhere:
                del found[position]
        return {position: plans for position, plans in found.items() if self.live[position]}

    def _of_sum(self, position: int) -> list[Plan]:
        node = self.nodes[position]
        whole = self.nodes[node.args[0]]
        if whole.dtype.kind != "f" or position in self.blocked:
            return []
        terms = self._terms(node.args[0], whole)
        plans = [self._planned(t, whole.shape, node.params["dim"]) for t in terms or ()]
        found = [plan for plan in plans if plan is not None]
        if len(found) < len(plans):
            return []
        pays = sum(plan.cost for plan in found) * GAIN <= sum(plan.before for plan in found)
        return found if pays else []

    def _terms(
        self, position: int, whole: Node, weighted: bool = False, depth: int = 0
    ) -> list[Term] | None:
        """The terms that a record adds up, each with its weights; None if it is anything else."""
        node = self.nodes[position]
        if node.dtype != whole.dtype or position in self.blocked or depth > DEPTH:
            return None
        if _is_product(node):
            factors = [self.nodes[a] for a in node.args]
            matrices = all(len(x.shape) > 1 and x.size for x in factors)
            return [Term(position, node.shape, (), node.op is product)] if matrices else None
        if self.uses[position] != 1:
            return None
        if node.op is s.reshape:
            before = self.nodes[node.args[0]].shape
            inner = self._terms(node.args[0], whole, weighted, depth + 1)
            if inner is None or any(t.weights or t.shape != before for t in inner):
                return None
            return [t._replace(shape=node.shape) for t in inner]
        if node.moves == "identity":
            return self._terms(node.args[0], whole, weighted, depth + 1)
        if node.op is add and all(self.nodes[a].shape == node.shape for a in node.args):
            found = [self._terms(a, whole, weighted, depth + 1) for a in node.args]
            return None if None in found else [t for terms in found for t in terms or ()]
        if node.op not in (mul, strong, exact) or weighted:
            return None
        for k in (0, 1):
            weight = self._source(node.args[1 - k], _repeats)
            terms = self._terms(node.args[k], whole, True, depth + 1)
            if terms is not None and self.nodes[weight].dtype == whole.dtype:
                zero = node.op is not mul
                return [t._replace(weights=(weight,), strong=t.strong or zero) for t in terms]
        return None

    def _source(self, position: int, passes: Callable[[Node], bool]) -> int:
        """What a record shows, behind records that only show it."""
        while passes(self.nodes[position]) and position not in self.blocked:
            (position,) = self.nodes[position].args
        return position

    def _planned(self, term: Term, whole: Shape, summed: tuple[int, ...]) -> Plan | None:
        """The cheapest plan of a term; None for what rows or columns of a product add up to."""
        names = "".join(chr(ord("a") + d) for d in range(len(whole)))
        inner = chr(ord("a") + len(whole))
        size = dict(zip(names, whole, strict=True))
        made = self.nodes[term.matrices]
        left, right = made.args
        size[inner] = self.nodes[left].shape[-1]
        groups = _groups(made.shape, term.shape, names[len(names) - len(term.shape) :])
        if groups is None:
            return None
        *batch, rows, columns = groups
        aligned = [*batch, rows, inner], [*batch, inner, columns], list(names)
        given = zip((left, right, *term.weights), aligned, strict=False)
        factors = tuple([self._named(at, own, size) for at, own in given])
        gone = {names[d] for d in summed if whole[d] > 1}
        for x in gone.intersection(rows + columns):
            if sum(x in factor.dims for factor in factors) < 2:
                return None
        out = "".join(x for x in names if x not in gone and size[x] > 1)
        before = made.size * (size[inner] * WITHIN_GEMM + 1) + prod(whole) * WITHIN_LOOP
        return _cheapest(term, factors, out, size, before + _elements_of(out, size))

    def _named(self, at: int, aligned: list[str], size: dict[str, int]) -> Factor:
        shape = self.nodes[at].shape
        pairs = zip(aligned[len(aligned) - len(shape) :], shape, strict=True)
        dims = "".join(x for group, n in pairs for x in group if n != 1 and size[x] != 1)
        return Factor(self._source(at, _adds_ones), dims)


def _groups(shape: Shape, seen: Shape, names: str) -> list[str] | None:
    """The names of the dimensions into which each dimension is split; None if some are joined."""
    if shape == seen:
        return list(names)
    found, at = [], 0
    for n in shape:
        start, size = at, 1
        while size < n and at < len(seen):
            size *= seen[at]
            at += 1
        if size != n:
            return None
        found.append("".join(names[d] for d in range(start, at) if seen[d] > 1))
    return found


def _repeats(node: Node) -> bool:
    return node.op is s.expand


def _adds_ones(node: Node) -> bool:
    """Whether a record adds dimensions of one element."""
    if node.op is s.getitem:
        return all(part in (None, ..., slice(None)) for part in node.params["index"])
    return node.op is s.unsqueeze


# -- orders and their costs ----------------------------------------------------------------------


def _cheapest(
    term: Term, factors: tuple[Factor, ...], out: str, size: dict[str, int], before: float
) -> Plan:
    rests = [_rest(k, factors, out) for k in range(len(factors))]
    alone = [f.dims for f, rest in zip(factors, rests, strict=True) if rest != f.dims]
    start = sum(_elements_of(dims, size) for dims in alone) * WITHIN_LOOP
    orders = [tuple(pairs) for pairs in _orders(rests, out, size)]
    costs = [start + sum(pair.cost for pair in pairs) for pairs in orders]
    return Plan(term, factors, orders[costs.index(min(costs))], size, min(costs), before)


def _rest(k: int, factors: tuple[Factor, ...], out: str) -> str:
    """What is left of a factor's dimensions once it is summed over those of its own."""
    others = "".join(f.dims for j, f in enumerate(factors) if j != k)
    return "".join(x for x in factors[k].dims if x in out or x in others)


def _orders(given: list[str], out: str, size: dict[str, int]) -> Iterator[list[Pair]]:
    if len(given) == 2:
        yield [_pair(0, 1, given, out, out, size)]
        return
    for k in range(3):
        a, b = [j for j in range(3) if j != k]
        first = _pair(a, b, given, out + given[k], out, size)
        yield [first, _pair(0, 1, [given[k], first.result], out, out, size)]


def _pair(a: int, b: int, given: list[str], later: str, out: str, size: dict[str, int]) -> Pair:
    """How to multiply two factors, of whose dimensions some are read `later`."""
    x, y = given[a], given[b]
    inner = "".join(d for d in x if d in y and d not in later)
    batch = "".join(d for d in x if d in y and d in later)
    left, right = ["".join(d for d in own if d not in other) for own, other in ((x, y), (y, x))]
    if inner and (left or right) and not (batch and not (left and right)):
        if _place(right, out) < _place(left, out):
            a, b, x, y, left, right = b, a, y, x, right, left
        free = [batch + own for own in (left + inner, inner + left, inner + right, right + inner)]
        copies = sum(_elements_of(dims, size) for dims in (x, y) if dims not in free)
        result = _elements_of(batch + left + right, size)
        cost = result * (1 + _elements_of(inner, size) * WITHIN_GEMM) + copies
        return Pair(a, b, batch, left, right, inner, True, cost + _elements_of(batch, size) * CALL)
    larger = max(x, y, key=lambda d: _elements_of(d, size))
    whole = _laid_out(batch + left + right, larger, out, later)
    cost = _elements_of(whole + inner, size) * WITHIN_LOOP + _elements_of(whole, size)
    return Pair(a, b, "", whole, "", inner, False, cost)


def _place(dims: str, out: str) -> int:
    return min([out.index(d) for d in dims if d in out], default=len(out))


def _laid_out(dims: str, larger: str, out: str, later: str) -> str:
    """The order of dimensions of a product of elements, for a product of matrices to read."""
    stay = "".join(d for d in out if d in dims)
    others = "".join(d for d in later if d in dims and d not in out)
    return stay + others if larger[-1:] in others else others + stay


def _elements_of(dims: str, size: dict[str, int]) -> int:
    """How many elements an array of some dimensions has."""
    return prod([size[d] for d in dims])


# -- the records ---------------------------------------------------------------------------------


class _Writer(Builder):
    """Writes contractions, whose factors' dimensions have names."""

    def contract(self, position: int, plans: list[Plan]) -> None:
        """Write a sum as its plans say."""
        node = self.graph.nodes[position]
        parts = [self._written(plan, node.shape) for plan in plans]
        found = parts[0]
        for part in parts[1:]:
            found = self.add(Node(add, (found, part), {}, node.shape, node.dtype))
        self.where[position] = found

    def _written(self, plan: Plan, shape: Shape) -> int:
        """Write a term."""
        given = []
        for k, factor in enumerate(plan.factors):
            at = self.where[factor.at]
            at = self._reshaped(at, tuple([plan.size[x] for x in factor.dims]))
            rest = _rest(k, plan.factors, plan.pairs[-1].result)
            given.append(Factor(self._summed(at, factor.dims, rest), rest))
        for pair in plan.pairs:
            write = self._matrices if pair.matrices else self._elements
            made = write(given[pair.a], given[pair.b], pair, plan.term.strong)
            given = [f for k, f in enumerate(given) if k not in (pair.a, pair.b)]
            given.append(Factor(made, pair.result))
        (found,) = given
        return self._reshaped(self._permuted(found, "".join(sorted(found.dims))), shape)

    def _matrices(self, a: Factor, b: Factor, pair: Pair, strong: bool) -> int:
        """A product of matrices, or of batches of them."""
        x = self._permuted(a, pair.batch + pair.left + pair.inner)
        y = self._permuted(b, pair.batch + pair.inner + pair.right)
        batch, others = self._split(x, len(pair.batch))
        left, inner = others[: len(pair.left)], others[len(pair.left) :]
        right = self.nodes[y].shape[len(pair.batch) + len(pair.inner) :]
        x = self._reshaped(x, (*batch, prod(left), prod(inner)))
        y = self._reshaped(y, (*batch, prod(inner), prod(right)))
        shape = (*batch, prod(left), prod(right))
        found = self._add(product if strong else matmul, (x, y), shape)
        return self._reshaped(found, (*batch, *left, *right))

    def _elements(self, a: Factor, b: Factor, pair: Pair, strong: bool) -> int:
        """A product of elements, and its sum over dimensions that nobody needs any more."""
        larger = max(a, b, key=lambda f: self.nodes[f.at].size).dims
        rest = pair.left + pair.inner
        whole = larger if sorted(larger) == sorted(rest) else rest
        x, y = self._spread(a, whole), self._spread(b, whole)
        pairs = zip(self.nodes[x].shape, self.nodes[y].shape, strict=True)
        found = self._add(exact if strong else mul, (x, y), tuple([max(n) for n in pairs]))
        found = self._summed(found, whole, pair.left)
        left = "".join(d for d in whole if d in pair.left)
        return self._permuted(Factor(found, left), pair.left)

    def _split(self, at: int, count: int) -> tuple[Shape, Shape]:
        shape = self.nodes[at].shape
        return shape[:count], shape[count:]

    def _add(self, op: Op, args: tuple[int, ...], to: Shape, **params: object) -> int:
        return self.add(Node(op, args, params, to, self.nodes[args[0]].dtype))

    def _reshaped(self, at: int, shape: Shape) -> int:
        if self.nodes[at].shape == shape:
            return at
        return self._add(s.reshape, (at,), shape, shape=shape)

    def _permuted(self, factor: Factor, dims: str) -> int:
        order = tuple([factor.dims.index(d) for d in dims])
        if order == tuple(range(len(order))):
            return factor.at
        before = self.nodes[factor.at].shape
        return self._add(s.permute, (factor.at,), tuple([before[k] for k in order]), dims=order)

    def _spread(self, factor: Factor, whole: str) -> int:
        """A factor with dimensions of one element where it has none."""
        at = self._permuted(factor, "".join(d for d in whole if d in factor.dims))
        missing = tuple([k for k, d in enumerate(whole) if d not in factor.dims])
        if not missing:
            return at
        rest = iter(self.nodes[at].shape)
        shape = tuple([1 if k in missing else next(rest) for k in range(len(whole))])
        return self._add(s.unsqueeze, (at,), shape, dims=missing)

    def _summed(self, at: int, dims: str, rest: str) -> int:
        gone = tuple([k for k, d in enumerate(dims) if d not in rest])
        if not gone:
            return at
        shape = tuple([n for k, n in enumerate(self.nodes[at].shape) if k not in gone])
        return self._add(sum_along, (at,), shape, dim=gone, keepdim=False)
