"""Loops over generators: the generator's code, with the body of the loop where it yields.

So its loops are loops of the function, as if they were written where it is called.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile
from typing import Any, NamedTuple

from numba.core import analysis

from tapegrad.njit.numba_front.exceptions import Exceptions
from tapegrad.njit.numba_front.objects import NumbaIR, NumbaType, ir, types
from tapegrad.njit.numba_front.typed_ir import GENERATOR, TypedFunction
from tapegrad.njit.numba_front.writer import Found, Operands
from tapegrad.njit.three_address_code import CodeBlock, Constant, Unsupported


class _Loop(NamedTuple):
    """A loop over a generator: what is run, and the block where that begins."""

    function: Any
    given: list[Found]
    start: CodeBlock


class Generators(Exceptions):
    """Writes loops over generators."""

    yielded: Callable[[Any, Found], None] | None = None  # takes what this function yields
    next_elements: dict[str, Callable[[], Found]]
    pending: dict[str, Callable[[], None]]

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.called: dict[str, tuple[Any, list[Found]]] = {}  # generators, by their names
        self.loops: dict[str, _Loop] = {}  # by the names of their iterators
        self.beginnings: dict[int, int] = {}  # by the block before a loop, where that begins

    def call(self, e: NumbaIR, t: NumbaType, target: NumbaIR) -> Found | None:
        """A call; that of a generator keeps the arguments."""
        if not isinstance(t, types.Generator):
            return super().call(e, t, target)
        f = self.type(e.func).dispatcher
        given = self.bound(f.py_func, *self.given_to(e))
        self.called[target.name] = f, [self._kept(x) for x in given]
        return None

    def _kept(self, found: Found) -> Found:
        """A value as it is now."""
        kept: Operands = []
        for x in found[0]:
            kept.append(self.code.name(self.code.type_of(x)))
            self.copy(x, str(kept[-1]))
        return kept, found[1]

    def _source(self, var: NumbaIR) -> str:
        """The variable that another one is a copy of."""
        while isinstance(made := self.definitions.get(var.name), ir.Var):
            var = made
        return str(var.name)

    def enter_generator(self, e: NumbaIR, target: NumbaIR) -> None:
        """The beginning of a loop over a generator: to there the block before it goes."""
        found, last = self.called.get(self._source(e.value)), self.typed.blocks[self.at].body[-1]
        if found is None or not isinstance(last, ir.Jump) or not self._is_header(last.target):
            raise Unsupported(GENERATOR)
        start = self.code.block()
        self.loops[target.name] = _Loop(*found, start)
        self.beginnings[self.at] = start.label

    def _is_header(self, label: int) -> bool:
        """Whether a block does nothing but ask an iterator, and only a loop comes back to it."""
        graph = analysis.compute_cfg_from_blocks(self.typed.blocks)
        loop = graph.loops().get(label)
        inside = {label} if loop is None else loop.body
        if any(k not in inside and k != self.at for k, _ in graph.predecessors(label)):
            return False
        *body, _ = (s for s in self.typed.blocks[label].body if not isinstance(s, ir.Del))
        rest = body[len(self._copies(label)) :]
        made = {s.target.name for s in rest if isinstance(s, ir.Assign)}
        return all(isinstance(s, ir.Assign) and _is_of_pair(s.value, made) for s in rest)

    def _copies(self, label: int) -> list[NumbaIR]:
        """The assignments of variables to others with which a block begins."""
        body = (s for s in self.typed.blocks[label].body if not isinstance(s, ir.Del))
        return list(takewhile(_is_copy, body))

    def run_generator(self, e: NumbaIR, target: NumbaIR) -> None:
        """The generator's code, which goes to the body of the loop and comes back from there."""
        loop, back, body = self.loops[self._source(e.value)], self.current, self.code.block()
        back.instructions.clear()  # copies, which are made on both ways from here
        self.current = over = self.code.block()
        self._copy_again()
        over.end("jump", (), self.labels[self.typed.blocks[self.at].body[-1].falsebr].label)
        found: list[Found] = []

        def done(inner: Generators, result: Found) -> None:
            inner.current.end("jump", (), over.label)

        def yielded(inner: Generators, value: Found) -> None:
            if found:
                raise Unsupported("a generator with more than one `yield`: yield in one place")
            found.append(inner._kept(value))
            inner.current.end("jump", (), body.label)
            inner.current = back

        kinds = tuple([t for _, t in loop.given])
        typed = TypedFunction(loop.function, kinds)
        start = self.translate(
            self.code, typed, loop.given, done, self.depth + 1, self.unwind, yielded
        )
        loop.start.end("jump", (), start.label)
        if not found:
            raise Unsupported("a generator that never yields")
        self.current = body
        self._copy_again()
        self.next_elements[target.name] = lambda: found[0]
        name = self.prefix + target.name + ".b"
        self.code.types[name] = "i1"
        self.copy(Constant(True, "i1"), name)

    def _copy_again(self) -> None:
        for s in self._copies(self.at):
            self.copy_variable(s.value, s.target)

    def is_yielded(self, condition: NumbaIR) -> bool:
        """Whether a condition says that a generator has yielded, which is known here."""
        pair = self.definitions.get(condition.name)
        if not isinstance(pair, ir.Expr) or pair.op != "pair_second":
            return False
        following = self.definitions[pair.value.name]
        return isinstance(self.type(following.value), types.Generator)


def _is_of_pair(value: NumbaIR, made: set[str]) -> bool:
    """Whether an expression is that of an iterator's next element, or a copy of such."""
    if isinstance(value, ir.Var):
        return value.name in made
    return getattr(value, "op", None) in ("iternext", "pair_first", "pair_second")


def _is_copy(s: NumbaIR) -> bool:
    return isinstance(s, ir.Assign) and isinstance(s.value, ir.Var)
