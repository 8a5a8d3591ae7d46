"""From Numba's typed IR to three-address code: blocks, statements, expressions."""

from __future__ import annotations

import linecache
import operator
import weakref
from collections.abc import Callable
from typing import Any

from numba.core.dispatcher import Dispatcher

from tapegrad.njit.numba_front import array_library
from tapegrad.njit.numba_front.calls import Calls, is_prange
from tapegrad.njit.numba_front.components import (
    COMPLEX,
    array_of,
    components,
    constants,
    element_of,
    in_words,
    is_number,
    is_opaque,
    parts_in,
    scalar,
    tuple_like,
)
from tapegrad.njit.numba_front.generators import Generators
from tapegrad.njit.numba_front.iteration import INDEXED_ITERATORS
from tapegrad.njit.numba_front.objects import Kinds, NumbaIR, NumbaType, ir, types
from tapegrad.njit.numba_front.subscripts import Chosen, is_index
from tapegrad.njit.numba_front.typed_ir import GENERATED, GENERATOR, TypedFunction
from tapegrad.njit.numba_front.writer import ONE, ZERO, Found, Operands, plain
from tapegrad.njit.three_address_code import (
    FLOATS,
    PARALLEL,
    Code,
    CodeBlock,
    Constant,
    Operand,
    Parameter,
    SourceLine,
    Unsupported,
)

ITERATORS = (types.EnumerateType, types.ZipType, types.Generator, *INDEXED_ITERATORS)
_codes: weakref.WeakKeyDictionary[Dispatcher, dict[Kinds, Code]] = weakref.WeakKeyDictionary()
_STATEMENTS = {
    "Print": "`print`",
    "SetAttr": "an assignment to an attribute: write into an array",
    "DelItem": "`del` of an element",
}
_READING = (ir.Assign, ir.SetItem, ir.StaticSetItem)
_PASSING = ("cast", "build_tuple", "phi", "undef", "null")
_REASONS = {"build_map": "a dictionary: use arrays", "build_set": "a set: use arrays"}


class Translation(Generators):
    """The code of one typed function."""

    def write(self) -> CodeBlock:
        """Write all blocks; returns the first."""
        start, blocks = self.current, self.typed.blocks
        if self.typed.is_library:
            self.prefix = f"${self.prefix}"  # its names are not the user's
        self.find_growing()
        self.find_tries()
        self.optional = {
            name: t for name, t in self.typed.types.items()
            if isinstance(t, types.Optional) and not is_opaque(t)
        }  # fmt: skip
        self.labels = {k: self.code.block() for k in blocks}
        self.started: set[str] = set()  # iterators that a loop runs over
        self.made_in: dict[str, int] = {}
        start.end("jump", (), self.labels[min(blocks)].label)
        for k in sorted(blocks):
            self.current, self.at = self.labels[k], k
            self.pending = {}
            self.trying = self.in_try.get(k, False)
            for n, s in enumerate(blocks[k].body):
                if not (self.typed.is_library or self._is_generated(s)):
                    self.code.line = SourceLine(self.typed.name, s.loc.filename, s.loc.line)
                if self.in_try:
                    self.guard(blocks[k].body, n)
                if not self.in_try or not self.serves_try(s):
                    self._written_or_outlined(s)
        return start

    def _is_generated(self, s: NumbaIR) -> bool:
        """Whether a statement is one that Numba has written around a stencil."""
        return self.typed.is_stencil and bool(s.loc.filename == GENERATED)

    def _written_or_outlined(self, s: NumbaIR) -> None:
        """A statement; what is not known here is left to Numba."""
        block, count = self.current, len(self.current.instructions)
        blocks = len(self.code.blocks)
        try:
            self.statement(s)
        except Unsupported as error:
            if self.typed.is_library or (error.located and not self.calls_function(s)):
                raise
            refusal = error if error.located else self.located(error, s)
            self.current = block
            del block.instructions[count:]
            for label in range(blocks, len(self.code.blocks)):
                del self.code.blocks[label]
            self.present = {}
            try:
                self.outline(s, str(refusal))
            except Unsupported as other:
                raise (self.located(other, s) if other.explains else refusal) from None

    def located(self, error: Unsupported, s: NumbaIR) -> Unsupported:
        """The error with the function, the line and what stands there."""
        text = linecache.getline(s.loc.filename, s.loc.line).strip()
        found = Unsupported(
            f"`{self.typed.name}`, line {s.loc.line} of {s.loc.filename}"
            + (f" (`{text}`)" if text else "")
            + f", is not differentiated: {error}"
        )
        found.located = True
        return found

    def statement(self, s: NumbaIR) -> None:
        """One statement."""
        self.present = {}  # of the statement before
        self.present = self._values_read(s)
        if isinstance(s, ir.Assign):
            self.assignment(s)
        elif isinstance(s, ir.SetItem | ir.StaticSetItem):
            self.set_item(s)
        elif isinstance(s, ir.Jump):
            target = self.beginnings.get(self.at, self.labels[s.target].label)
            self.current.end("jump", (), target)
        elif isinstance(s, ir.Branch):
            self.branch(s)
        elif isinstance(s, ir.Return):
            self.done(self, (self.get(s.value), self.type(s.value)))
        elif isinstance(s, ir.StaticRaise | ir.Raise | ir.DynamicRaise):
            self.raise_exception()
        elif not isinstance(s, ir.Del):
            name = type(s).__name__
            raise Unsupported(_STATEMENTS.get(name, f"a statement `{name}`"))

    def _values_read(self, s: NumbaIR) -> dict[str, NumbaType]:
        """The types of values that a statement reads of variables which may be None.

        Without a value it raises, as in Numba.
        """
        found: dict[str, NumbaType] = {}
        if not self.optional or not isinstance(s, _READING) or self._passes_none(s):
            return found
        target = s.target.name if isinstance(s, ir.Assign) else ""
        for v in s.list_vars():
            if v.name in self.optional and v.name not in (target, *found):
                self.require(self.names(v)[0])
                found[v.name] = self.optional[v.name].type
        return found

    def _passes_none(self, s: NumbaIR) -> bool:
        """Whether an assignment takes None for what it is."""
        e = s.value
        if not isinstance(s, ir.Assign) or not isinstance(e, ir.Expr):
            return isinstance(s, ir.Assign)
        if e.op == "call":
            return isinstance(self.type(e.func), types.Dispatcher | types.NamedTupleClass)
        return e.op in _PASSING or (e.op == "binop" and e.fn in (operator.is_, operator.is_not))

    def branch(self, s: NumbaIR) -> None:
        """A branch; an iterator's element is computed where there is one."""
        if self.is_yielded(s.cond):
            for write in self.pending.values():
                write()
            self.current.end("jump", (), self.labels[s.truebr].label)
            return
        condition = self.number(s.cond, "i1")
        yes, no = self.labels[s.truebr].label, self.labels[s.falsebr].label
        if self.pending:
            edge = self.code.block()
            self.current.end("branch", (condition,), edge.label, no)
            self.current = edge
            for write in self.pending.values():
                write()
            self.current.end("jump", (), yes)
            return
        self.current.end("branch", (condition,), yes, no)

    def assignment(self, s: NumbaIR) -> None:
        """One assignment."""
        value, target = s.value, s.target
        self.definitions[target.name] = value
        self.made_in[target.name] = self.at
        if isinstance(value, ir.Arg):
            self.assign(target, self.given[value.index])
        elif isinstance(value, ir.Var):
            self.copy_variable(value, target)
        elif isinstance(value, ir.Const | ir.Global | ir.FreeVar):
            self.constant(target, value.value)
        elif isinstance(value, ir.Expr):
            handler = getattr(self, f"expr_{value.op}", None)
            if handler is None:
                raise Unsupported(_REASONS.get(value.op, f"an expression `{value.op}`"))
            found = handler(value, self.type(target), target)
            if found is not None:
                self.assign(target, found)
        elif isinstance(value, ir.Yield):
            if self.yielded is None:
                raise Unsupported(GENERATOR)
            self.yielded(self, (self.get(value.value), self.type(value.value)))
        else:
            raise Unsupported(f"`{type(value).__name__}`")

    def copy_variable(self, value: NumbaIR, target: NumbaIR) -> None:
        """An assignment of one variable to another."""
        if value.name in self.pending:
            self.pending[target.name] = lambda: self.assign(
                target, (self.get(value), self.type(value))
            )
            return
        if value.name in self.slices:
            self.slices[target.name] = self.slices[value.name]
        self.assign(target, (self.get(value), self.type(value)))

    def constant(self, target: NumbaIR, value: Any) -> None:
        """An assignment of what is known from the source, or from outside."""
        t = self.type(target)
        if components(t):
            self.assign(target, (constants(value, t), t))

    def set_item(self, s: Any) -> None:
        """`a[...] = b`."""
        base = self.type(s.target)
        if isinstance(base, types.List):
            self.set_list_item(s.target, s.index, s.value)
            return
        if isinstance(base, types.NumpyFlatType):
            ops, array = self.get(s.target), base.array_type
            self.store(ops, array, self.place_in_flat(ops, array, s.index), self.known(s.value))
            return
        if not isinstance(base, types.Array):
            raise Unsupported(f"an assignment to an element of {in_words(base)}")
        ops, value = self.get(s.target), (self.get(s.value), types.unliteral(self.type(s.value)))
        at = s.index_var if isinstance(s, ir.StaticSetItem) else s.index
        if isinstance(self.type(at), types.Array):
            f = array_library.put(base, [self.type(at)], value[1])
            self.inline(f, [(ops, base), self.known(at), value])
            return
        entries = self.entries(s.index, base.ndim)
        if len(entries) == base.ndim and all(map(is_index, entries)):
            if not is_number(value[1]):
                raise Unsupported(f"{value[1]} as an element")
            self.store(ops, base, self.element_offset(ops, base, entries), value)
            return
        if any(isinstance(entry, Chosen) for entry in entries):
            self.put_chosen(ops, base, entries, value)
            return
        view = self.subscript(ops, base, entries)
        args = [view, value]
        if isinstance(value[1], types.Array):
            args.append(([self.overlap(view, value)], types.boolean))
        elif not is_number(value[1]):
            raise Unsupported(f"{value[1]} in a slice of an array")
        self.inline(array_library.assigned(view[1], value[1]), args)

    # -- expressions -------------------------------------------------------------------------

    def expr_cast(self, e: NumbaIR, t: NumbaType, target: NumbaIR) -> Found:
        """A conversion, which the assignment does."""
        return self.get(e.value), self.type(e.value)

    def expr_undef(self, e: NumbaIR, t: NumbaType, target: NumbaIR) -> None:
        """A variable without a value."""

    expr_null = expr_undef

    def expr_build_tuple(self, e: NumbaIR, t: NumbaType, target: NumbaIR) -> Found:
        """`(a, b)`."""
        ops: Operands = []
        for item, part in zip(e.items, t):
            ops += self.get(item, part)
        self.slices[target.name] = [self.slices.get(item.name) for item in e.items]
        return ops, t

    def expr_exhaust_iter(self, e: NumbaIR, t: NumbaType, target: NumbaIR) -> Found:
        """`a, b = c`."""
        base = self.type(e.value)
        if isinstance(base, types.BaseTuple):
            return self.get(e.value), base
        if isinstance(base, types.List):
            base = array_of(base)
        if not isinstance(base, types.Array):
            raise Unsupported(f"{base} on the right of `a, b = ...`")
        ops, found = self.names(e.value), list[Operand]()
        count = self.shape(ops, base)[0]
        self.require(self.emit("eq", [count, Constant(e.count, "i64")], "i1"))
        for k, part in enumerate(t):
            entry: list[Any] = [Constant(k, "i64")]
            found += self.view_as(self.subscript(ops, base, entry), part)[0]
        return found, t

    def expr_getiter(self, e: NumbaIR, t: NumbaType, target: NumbaIR) -> Found | None:
        """The beginning of a loop."""
        base = self.type(e.value)
        self.require_unchanged(e.value)
        if isinstance(base, ITERATORS):
            name = e.value.name
            if name in self.started or self.made_in.get(name) != self.at:
                raise Unsupported("an iterator that several loops share")
            self.started.add(name)
        if isinstance(base, types.Generator):
            self.enter_generator(e, target)
            return None
        return [*self.held_by(t, e.value), ZERO], t

    def expr_iternext(self, e: NumbaIR, t: NumbaType, target: NumbaIR) -> None:
        """The next element, if there is one."""
        if isinstance(self.type(e.value), types.Generator):
            self.run_generator(e, target)
            return
        kind, ops = self.type(e.value), self.names(e.value)
        *_, count, k = ops
        assert isinstance(k, str)
        more = self.emit("lt", [k, count], "i1", PARALLEL if self.is_prange(e.value) else None)
        held = self.code.name("i64")
        self.copy(k, held)
        self.copy(self.emit("iadd", [k, ONE], "i64", "nsw"), k)
        self.code.types[self.prefix + target.name + ".b"] = "i1"
        self.copy(more, self.prefix + target.name + ".b")
        self.next_elements[target.name] = lambda: self.element(ops[:-2], kind, held)

    def is_prange(self, var: NumbaIR) -> bool:
        """Whether an iterator is that of a `prange` which Numba would run on threads."""
        d: Any = var
        while isinstance(d, ir.Var):
            d = self.definitions.get(d.name)
            if isinstance(d, ir.Expr) and d.op in ("getiter", "cast"):
                d = d.value
        f = self.type(d.func) if isinstance(d, ir.Expr) and d.op == "call" else None
        return bool(self.typed.options.get("parallel")) and is_prange(getattr(f, "typing_key", 0))

    def expr_pair_first(self, e: NumbaIR, t: NumbaType, target: NumbaIR) -> None:
        """The element, which is there only if the loop goes on."""
        element = self.next_elements[e.value.name]
        self.pending[target.name] = lambda: self.assign(target, element())

    def expr_pair_second(self, e: NumbaIR, t: NumbaType, target: NumbaIR) -> Found:
        """Whether the loop goes on."""
        return [self.prefix + e.value.name + ".b"], types.boolean

    def expr_getattr(self, e: NumbaIR, t: NumbaType, target: NumbaIR) -> Found | None:
        """An attribute."""
        base = self.type(e.value)
        if isinstance(t, types.BoundFunction):
            return self.get(e.value), t
        if not components(t):
            return None
        if isinstance(base, types.Module):
            self.constant(target, getattr(base.pymod, e.attr))
            return None
        if isinstance(base, types.BaseNamedTuple):
            return self.tuple_item(e.value, base, base.fields.index(e.attr), t)
        if e.attr in ("real", "imag"):
            return self.part_of(e.attr, self.get(e.value), base)
        if isinstance(base, types.Array):
            return self.array_attribute(e.attr, self.get(e.value), base, t)
        raise Unsupported(f"the attribute `{e.attr}` of {in_words(base)}")

    def array_attribute(self, name: str, ops: Operands, base: NumbaType, t: NumbaType) -> Found:
        """An attribute of an array."""
        if name == "shape":
            return self.shape(ops, base), t
        if name == "ndim":
            return [Constant(base.ndim, "i64")], t
        if name == "size":
            return [self.product(self.shape(ops, base))], t
        if name == "T":
            shape, strides = self.shape(ops, base)[::-1], self.strides(ops, base)[::-1]
            return ([ops[0], *shape] if t.layout == "C" else [ops[0], *shape, *strides]), t
        size = Constant(base.dtype.bitwidth // 8 if base.dtype != types.boolean else 1, "i64")
        if name == "itemsize":
            return [size], t
        if name == "nbytes":
            return [self.index("imul", self.product(self.shape(ops, base)), size)], t
        if name == "strides":
            return [self.index("imul", x, size) for x in self.strides(ops, base)], t
        if name == "flat":
            return [*ops, self.product(self.shape(ops, base)), ZERO], t
        raise Unsupported(f"the attribute `{name}` of an array")

    def expr_unary(self, e: NumbaIR, t: NumbaType, target: NumbaIR) -> Found:
        """`-x`, `+x`, `not x`, `~x`."""
        f = {"-": operator.neg, "+": operator.pos, "not": operator.not_, "~": operator.invert}.get(
            e.fn, e.fn
        )
        if isinstance(self.type(e.value), types.Array):
            return self.elementwise((f, [e.value]), t)
        if t in COMPLEX and f in (operator.neg, operator.pos):
            ops = self.get(e.value, t)
            return ops if f is operator.pos else self.negatives(ops), t
        x, kind = self.get(e.value)[0], scalar(t)
        if kind is None or not is_number(self.type(e.value)):
            raise Unsupported(f"the operator `{f.__name__}` that gives {t}")
        if f is operator.not_:
            return [self.emit("not", [self.to(x, "i1")], "i1")], t
        x = self.to(x, kind)
        if f is operator.pos:
            return [x], t
        if f is operator.neg and kind in FLOATS:
            return [self.negative(x)], t
        if f in (operator.neg, operator.invert) and kind == "i64":
            first = ZERO if f is operator.neg else Constant(-1, "i64")
            found = self.emit("isub", [first, x], "i64")  # `~x` is `-1 - x`
            return [self.truncated(found, self.typed.calls[e].args[0])], t
        if f is operator.invert and kind == "i1":
            return [self.emit("not", [x], "i1")], t
        raise Unsupported(f"the operator `{f.__name__}` on {self.type(e.value)}")

    def expr_binop(self, e: NumbaIR, t: NumbaType, target: NumbaIR) -> Found:
        """`a + b`."""
        return self.binary(e.fn, e.lhs, e.rhs, self.typed.calls[e], t)

    def expr_inplace_binop(self, e: NumbaIR, t: NumbaType, target: NumbaIR) -> Found:
        """`a += b`."""
        if isinstance(self.type(e.lhs), types.List):
            if plain(e.immutable_fn) is not operator.add:
                raise Unsupported(f"`{e.fn.__name__}` of a list, in its place")
            return self.extend(e.lhs, self.known(e.rhs))
        if isinstance(self.type(e.lhs), types.Array):
            if plain(e.immutable_fn) is operator.matmul:
                raise Unsupported("`@=`")
            return self.update(e.immutable_fn, e.lhs, e.rhs)
        return self.binary(e.immutable_fn, e.lhs, e.rhs, self.typed.calls[e], t)

    def expr_call(self, e: NumbaIR, t: NumbaType, target: NumbaIR) -> Found | None:
        """`f(x)`."""
        return self.call(e, t, target)

    def expr_getitem(self, e: NumbaIR, t: NumbaType, target: NumbaIR) -> Found:
        """`a[i]`."""
        return self.item(e.value, e.index, t)

    def expr_static_getitem(self, e: NumbaIR, t: NumbaType, target: NumbaIR) -> Found:
        """`a[0]`; Numba leaves the index away where a variable turns out not to be constant."""
        kind = None if e.index_var is None else self.type(e.index_var)  # None in `a, b = pair`
        known = e.index is not None or isinstance(kind, types.NoneType)
        known = known and not isinstance(kind, types.Array)  # from outside the function
        return self.item(e.value, e.index if known else e.index_var, t)

    def expr_typed_getitem(self, e: NumbaIR, t: NumbaType, target: NumbaIR) -> Found:
        """A part of a tuple in a loop over `literal_unroll`; parts of this type alone come here."""
        wanted = types.unliteral(e.dtype)
        parts = self.parts(self.get(e.value), self.type(e.value))
        alike = next(part for part in parts if types.unliteral(part[1]) == wanted)
        parts = [part if types.unliteral(part[1]) == wanted else alike for part in parts]
        return self.part_at(self.get(e.index)[0], parts)

    def expr_arrayexpr(self, e: NumbaIR, t: NumbaType, target: NumbaIR) -> Found:
        """An expression of arrays."""
        return self.elementwise(e.expr, t)


def translated(
    code: Code, typed: TypedFunction, given: list[Found], done: Callable[[Any, Found], None],
    depth: int = 0, unwind: int | None = None, yielded: Callable[[Any, Found], None] | None = None,
) -> CodeBlock:  # fmt: skip
    """Write the code of a function; returns its first block."""
    one = Translation(code, typed, given, done)
    one.depth, one.unwind, one.yielded = depth, unwind, yielded
    one.next_elements = {}
    line = code.line
    start = one.write()
    code.line = line
    return start


Translation.translate = staticmethod(translated)


def code_of(f: Dispatcher, kinds: Kinds) -> Code:
    """The code of a function for arguments of given types, and what was inlined into it.

    Arrays that it returns are new, and in C order.  Blocks are copied before they are changed.
    """
    known = _codes.setdefault(f, {})
    if kinds not in known:
        known[kinds] = _new_code(f, kinds)
    return known[kinds]


def _new_code(f: Dispatcher, kinds: Kinds) -> Code:
    code = Code()
    entry = code.block()
    given: list[Found] = []
    for k, t in enumerate(kinds):
        ops: Operands = []
        for suffix, kind in components(t):
            name = f"arg{k}{suffix}"
            code.types[name] = kind
            at = _part_at(t, suffix)
            followed = kind == "ptr" and not is_opaque(at)
            element, parts = (element_of(at), parts_in(at)) if followed else ("", 1)
            code.parameters.append(Parameter(name, kind, k, suffix, element, parts))
            ops.append(name)
        given.append((ops, t))
    last = code.block()
    names: list[str] = []

    def done(inner: Calls, found: Found) -> None:
        ops, t = _owned(inner, found)
        if code.result is None:
            code.result = t
            names.extend(code.name(kind, "result") for _, kind in components(t))
        for name, value in zip(names, inner.cast(ops, t, code.result), strict=True):
            inner.copy(value, name)
        inner.current.end("jump", (), last.label)

    start = translated(code, TypedFunction(f, kinds), given, done)
    entry.end("jump", (), start.label)
    if code.result is None:
        raise Unsupported(f"`{f.py_func.__name__}`, which never returns")
    last.end("ret", tuple(names))
    return code


def _part_at(t: NumbaType, suffix: str) -> NumbaType:
    """The part of an argument that a component belongs to."""
    for part in suffix.split(".")[1:]:
        t = list(t)[int(part)] if isinstance(t, types.BaseTuple) else t
    return t


def _owned(writer: Calls, found: Found) -> Found:
    """A result whose arrays are copies: nothing writes into them any more."""
    ops, t = found
    if isinstance(t, types.List):
        raise Unsupported("a list as a result: return an array")
    if is_opaque(t):
        raise Unsupported(f"a result of type {t}")
    if isinstance(t, types.Optional):
        writer.require(ops[0])
        return _owned(writer, (ops[1:], t.type))
    if isinstance(t, types.Array):
        return writer.inline(array_library.copied(t), [found])
    if isinstance(t, types.BaseTuple):
        parts = [_owned(writer, part) for part in writer.parts(ops, t)]
        all_ops = [x for part, _ in parts for x in part]
        return all_ops, tuple_like(t, [kind for _, kind in parts])
    return found
