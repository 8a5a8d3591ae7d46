"""Which values and which memory have a derivative: those that depend on an argument that is
differentiated in and that a result depends on.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from tapegrad.njit.partials import is_row, partials
from tapegrad.njit.three_address_code import FLOATS, Unsupported
from tapegrad.njit.values import Function, Value


class Activity:
    """Marks active values, finds active memory, and gives its pointers shadows."""

    def __init__(
        self, function: Function, arguments: Collection[int], results: Collection[int]
    ) -> None:
        self.function = function
        self.arguments = frozenset(arguments)
        self.results = [v for k, v in enumerate(function.results) if k in results]
        varied, varied_memory = depending(function, self.arguments)
        useful, useful_memory = needed(function, self.results)
        self.memory = varied_memory & useful_memory  # alias classes
        for v in varied & useful:
            v.active = v.op != "const"
        # The components of the result that the reverse sweep begins with.
        self.seeded = [
            k for k, v in enumerate(function.results)
            if k in results and (v.type in FLOATS or self.is_active(v))
        ]  # fmt: skip
        self._make_shadows()
        function.number_positions()

    def is_active(self, pointer: Value) -> bool:
        """Whether memory that a pointer may lead to has a derivative."""
        return pointer.type == "ptr" and self.function.alias_class(pointer) in self.memory

    def stores_active(self, v: Value) -> bool:
        """Whether an instruction stores what has a derivative, or overwrites it."""
        return v.op == "store" and v.args[2].type in FLOATS and self.is_active(v.args[0])

    # -- pointers ----------------------------------------------------------------------------

    def _make_shadows(self) -> None:
        """Give each pointer into active memory a pointer to the adjoints."""
        function = self.function
        for v in list(function.all_values()):
            if v.op in ("load", "store") and self.is_active(v.args[0]):
                self._shadow(v.args[0])
        for v in (*function.parameters, *self.results):
            if self.is_active(v):
                self._shadow(v)

    def _shadow(self, v: Value) -> Value:
        if v.shadow is not None:
            return v.shadow
        value = self.function.value
        if v.op == "undef":
            v.shadow = v
        elif v.op == "const":  # a table where there may be something else: nobody reads these
            element, content = v.attribute
            size = self.function.const(len(content), "i64")
            v.shadow = value("alloc", [size], "ptr", (element, True, -v.id), self.function.entry)
            self.function.entry.instructions.insert(0, v.shadow)
        elif v.op == "arg":
            v.shadow = value("argshadow", [], "ptr", v.attribute, v.block)
        elif v.op == "phi":
            v.shadow = value("phi", [], "ptr", None, v.block)
            v.home.phis.append(v.shadow)
            v.shadow.args = [self._shadow(a) for a in v.args]
        else:
            attribute, args = v.attribute, list(v.args)
            if v.op == "alloc":
                attribute = (v.attribute[0], True, -v.id)
            elif v.op == "gep":
                args[0] = self._shadow(v.args[0])
            else:
                raise _refused(v.args[0] if v.op == "word" else v)
            v.shadow = value(v.op, args, "ptr", attribute, v.block)
            v.shadow.varying = v.varying
            at = v.home.instructions.index(v)
            v.home.instructions.insert(at + 1, v.shadow)
        return v.shadow


def depending(function: Function, arguments: Collection[int]) -> tuple[set[Value], set[Value]]:
    """The values, and the classes of memory, that depend on some arguments smoothly."""
    memory_of = function.alias_class
    varied, memory = set[Value](), set[Value]()
    for p in function.parameters:
        if p.attribute.argument in arguments:
            if p.type in FLOATS:
                varied.add(p)
            elif p.type == "ptr" and p.attribute.element in FLOATS:
                memory.add(memory_of(p))
    size = None
    while size != (size := (len(varied), len(memory))):
        for v in function.all_values():
            if v.op == "store":
                if v.args[2] in varied:
                    memory.add(memory_of(v.args[0]))
            elif v.op == "call":
                if _touches(function, v, varied, memory):
                    memory |= _led_to(function, v)
                    varied |= {v} if v.type in FLOATS else set()
            elif v.type in FLOATS and v not in varied:
                if v.op in ("load", "word"):
                    if memory_of(v.args[0]) in memory:
                        varied.add(v)
                elif any(a in varied for a in _differentiable(v)):
                    varied.add(v)
    return varied, memory


def needed(function: Function, results: Collection[Value]) -> tuple[set[Value], set[Value]]:
    """The values, and the classes of memory, that results depend on smoothly."""
    memory_of = function.alias_class
    useful, memory = set[Value](), set[Value]()
    for v in results:
        if v.type in FLOATS:
            useful.add(v)
        elif v.type == "ptr":
            memory.add(memory_of(v))
    size = None
    while size != (size := (len(useful), len(memory))):
        for block in reversed(function.blocks):
            for v in (*reversed(block.instructions), *block.phis):
                if v.op == "store":
                    if v.args[2].type in FLOATS and memory_of(v.args[0]) in memory:
                        useful.add(v.args[2])
                elif v.op == "call":
                    if v.attribute.detached:
                        continue
                    if v in useful or _led_to(function, v) & memory:
                        useful |= {a for a in v.args if a.type in FLOATS}
                        memory |= {memory_of(a) for a in v.args if a.type == "ptr"}
                elif v in useful:
                    if v.op in ("load", "word"):
                        memory.add(memory_of(v.args[0]))
                    else:
                        useful.update(_differentiable(v))
    return useful, memory


def _touches(function: Function, call: Value, values: set[Value], memory: set[Value]) -> bool:
    """Whether a call is given some values, or leads to some memory, and passes them on."""
    if call.attribute.detached:
        return False
    return any(a in values or function.alias_class(a) in memory for a in call.args)


def _led_to(function: Function, call: Value) -> set[Value]:
    """The classes of memory that a call may write into or that its result leads to."""
    found = function.written_classes(call)
    return found | {function.alias_class(call)} if call.type == "ptr" else found


def refuse_active_calls(
    function: Function, arguments: Collection[int], results: Collection[Value]
) -> None:
    """Refuse calls through which results depend on some arguments smoothly, as far as one knows.

    The first into which what depends on them goes as a number is named, or else the first.
    """
    varied, memory = depending(function, arguments)
    useful, useful_memory = needed(function, results)
    active = [
        v for v in function.instructions()
        if v.op == "call" and _touches(function, v, varied, memory)
        and (v in useful or _led_to(function, v) & useful_memory)
    ]  # fmt: skip
    if active:
        given = (v for v in active if varied.intersection(v.args))
        raise _refused(next(given, active[0]))


def _refused(call: Value) -> Unsupported:
    """Why nothing is known of a call."""
    error = Unsupported(call.attribute.refusal)
    error.located = True
    return error


def _differentiable(v: Value) -> Iterator[Value]:
    """The operands that a float depends on smoothly."""
    if v.op in ("phi", "lane_sum") or (v.op == "cast" and v.args[0].type in FLOATS):
        yield from v.args
    elif v.op == "select":
        yield from v.args[1:]
    elif is_row(v.op):
        for a, p in zip(v.args, partials(v.op)):
            if p is not None and a.type in FLOATS:
                yield a
