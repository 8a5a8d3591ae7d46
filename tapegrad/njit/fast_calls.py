"""Call a derivative from Python by a builtin function: `compiler/front/fastcall` over words.

The builtin checks the arguments, makes the arrays of the gradients, and runs `adapter`, which is
compiled once per machine: by a plan it packs the words of a call, runs the program, and takes the
numbers out.  Where the function raises, memory runs out or a gradient is NaN, the call goes the way
of all others.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from tapegrad.base.word_struct import WordStruct
from tapegrad.compiler.front.fastcall import Float, Place, Result, builtin
from tapegrad.compiler.llvm.function_builder import FunctionBuilder
from tapegrad.kernels import build
from tapegrad.kernels.sweep import sweep_abi
from tapegrad.njit.derivative_program import DerivativeProgram
from tapegrad.njit.marshalling import has_components
from tapegrad.njit.numba_front.objects import types

KINDS = (float, int, bool, np.ndarray)


class Plan(WordStruct):
    """What is called, and how the words of a call are packed."""

    program: int
    limit: int  # of its memory
    arguments: int  # of the function, whose places the inputs begin with
    word_count: int  # one more than the program reads
    result_count: int
    template: int  # the address of those words that are the same in every call
    steps: int  # their address
    step_count: int


class Step(WordStruct):
    """What is put into a word of the arguments, or where a word of the results is put."""

    kind: int
    word: int
    argument: int
    number: int  # of a dimension, or of an output
    ndim: int  # of an output that is an array
    itemsize: int


NUMBER, ADDRESS, LENGTH, ADJOINT, GRADIENT, VALUE, SINGLE = range(7)  # kinds of steps


def fast_call(
    program: DerivativeProgram, limit: int, args: Sequence[Any], constants: Sequence[Any],
    argnums: Sequence[int], single: bool, directions: Sequence[Any], otherwise: Callable[..., Any],
    name: str,
) -> Callable[..., Any] | None:  # fmt: skip
    """A function that returns gradients in some arguments quickly, or None if it cannot be had.

    After the `args`, which are numbers, arrays and tuples of these, come `constants`, which are the
    same in each call.  With `directions`, tangents of the first arguments, which follow in a call,
    it returns the tangents of the gradients; if the program finds the value, a pair of that and the
    gradients.
    """
    # What has no components, as None, is not read; it takes a place for all that.
    constants = [x if has_components(x) else 0.0 for x in _leaves(constants)]
    forms = [*map(_form, (*args, *directions))]
    plain = not constants and not any(forms)
    every = (*args, *constants)
    leaves, along = _leaves(every), _leaves(directions)
    simple = all(map(_is_simple, (*leaves, *along))) and not program.draws
    if not simple or program.written or program.result not in (types.float64, types.float32):
        return None
    if len(along) != len(_leaves(args[: len(directions)])) or not sweep_abi.as_listed():
        return None
    packing = _Packing(program, leaves, len(along))
    result = packing.result(every, argnums, single)
    plan, kept = packing.plan(limit)
    places = [_place(x, k) for k, x in enumerate(leaves)]
    places += [_place(x, k) for k, x in enumerate(along)]
    made = builtin(
        adapter(), places, packing.outputs, result, otherwise if plain else _missed, _failed, name,
        release=True, context=plan, kept=kept,
    )  # fmt: skip
    if plain:
        return made
    makes = [getattr(args[k], "_make", None) for k in argnums]
    named = _Named(makes, single, program.request.value) if any(makes) else None
    return _of_leaves(made, forms, len(args), constants, otherwise, named)


def _is_simple(x: Any) -> bool:
    """Whether an argument is a number or an array of numbers."""
    return type(x) in KINDS and not (type(x) is np.ndarray and x.dtype.kind not in "fiub")


def _leaves(args: Sequence[Any]) -> list[Any]:
    """The parts of arguments that are tuples; a number in the place of None."""
    return [
        leaf for x in args for leaf in (x if isinstance(x, tuple) else (0.0 if x is None else x,))
    ]


def _form(x: Any) -> Any:
    """What a builtin function does not check: the length of a tuple, and what is None."""
    return (type(x), len(x)) if isinstance(x, tuple) else type(x) if x is None else None


class _Named(NamedTuple):
    """How gradients that come as plain tuples are brought into the form of named ones."""

    forms: list[Any]
    single: bool
    with_value: bool

    def formed(self, result: Any) -> Any:
        """A result in the form of the arguments."""
        value, found = result if self.with_value else (None, result)
        parts = (found,) if self.single else found
        parts = tuple([p if make is None else make(p) for make, p in zip(self.forms, parts)])
        found = parts[0] if self.single else parts
        return (value, found) if self.with_value else found


def _of_leaves(
    made: Callable[..., Any], forms: list[Any], before: int, constants: Sequence[Any],
    otherwise: Callable[..., Any], named: _Named | None,
) -> Callable[..., Any]:  # fmt: skip
    """A function that takes tuples apart for another one, if arguments have the same forms."""
    between = _leaves(constants)

    def call(*given: Any, **kwargs: Any) -> Any:
        if kwargs or [*map(_form, given)] != forms:
            return otherwise(*given, **kwargs)
        result = made(*_leaves(given[:before]), *between, *_leaves(given[before:]))
        if result is NotImplemented:
            return otherwise(*given)
        return result if named is None else named.formed(result)

    return call


def _missed(*leaves: Any) -> Any:
    return NotImplemented


def _place(x: Any, like: int) -> Place:
    """The place of an argument, or of its tangent, which has its shape."""
    if not isinstance(x, np.ndarray):
        return Place(type(x))
    return Place(np.ndarray, x.dtype, x.ndim, None, like)


def _failed() -> None:
    raise SystemError("a derivative failed without setting an exception")


class _Packing:
    """The steps of a call, and its outputs; `moved` leaves, the first ones, have tangents."""

    def __init__(self, program: DerivativeProgram, leaves: Sequence[Any], moved: int) -> None:
        self.program, self.leaves, self.moved = program, leaves, moved
        self.outputs: list[Place] = []
        self.steps: list[int] = []
        self.gradients: dict[int, Float | int] = {}  # the outputs, by leaves
        words, self.copies = program.words, 1 + bool(moved)
        # The program counts the leaves that have components.
        places = [k for k, known in enumerate(program.followed) if known]
        leaf_of = {p: places[k] for p, k in program.leaf_of.items()}
        self.count = self.copies * len(words.inputs)
        for copy in range(self.copies):
            leaf = 0
            for word, (kind, p) in enumerate(words.inputs, copy * len(words.inputs)):
                leaf = leaf_of.get(p, leaf)
                if kind == "shadow":
                    self._adjoint(word, leaf)
                elif kind == "value" and (not copy or leaf < moved):
                    self._argument(word, p, leaf, copy)
            for (kind, p), at in words.output.items():
                if kind == "gradient":
                    word = at + copy * len(words.outputs)
                    self.gradients[leaf_of[p]] = self._number(GRADIENT, word)

    def _step(
        self, kind: int, word: int, argument: int = 0, number: int = 0, ndim: int = 0,
        itemsize: int = 8,
    ) -> None:  # fmt: skip
        self.steps += Step.words(
            kind=kind, word=word, argument=argument, number=number, ndim=ndim, itemsize=itemsize
        )

    def _argument(self, word: int, p: Any, leaf: int, copy: int) -> None:
        """A component of an argument, or of its tangent."""
        at = leaf + copy * len(self.leaves)
        if p.type == "ptr":
            self._step(ADDRESS, word, at)
        elif not p.attribute.is_length:
            self._step(NUMBER, word, at)
        elif not copy:
            self._step(LENGTH, word, at, int(p.attribute.suffix.rpartition(".n")[2]))

    def _adjoint(self, word: int, k: int) -> None:
        """An array for the adjoint of a leaf."""
        x = self.leaves[k]
        self.gradients[k] = len(self.outputs)
        self._step(ADJOINT, word, k, len(self.outputs), x.ndim, x.itemsize)
        self.outputs.append(_place(x, k))

    def _number(self, kind: int, word: int) -> Float:
        """A number among the outputs."""
        self._step(kind, word, number=len(self.outputs))
        self.outputs.append(Place(float))
        return Float(len(self.outputs) - 1)

    def result(self, args: Sequence[Any], argnums: Sequence[int], single: bool) -> Result:
        """What is returned; the gradient in an array on which nothing depends is zero."""
        found = []
        for k in argnums:
            first, size = len(_leaves(args[:k])), len(_leaves(args[k : k + 1]))
            for leaf in range(first, first + size):
                if leaf not in self.gradients:
                    self._adjoint(self.count, leaf)
            parts = tuple([self.gradients[leaf] for leaf in range(first, first + size)])
            found.append(parts if isinstance(args[k], tuple) else parts[0])
        gradients: Result = found[0] if single else tuple(found)
        if not self.program.request.value:
            return gradients
        kind = VALUE if self.program.result == types.float64 else SINGLE
        return self._number(kind, self.program.words.output["result", 0]), gradients

    def plan(self, limit: int) -> tuple[int, tuple[Any, ...]]:
        """The address of the plan, and what has to live as long."""
        program, words = self.program, self.program.words
        template = (ctypes.c_double * (self.count + 1))()
        for at, (kind, _) in enumerate(words.inputs):
            if kind == "seed":
                struct.pack_into(
                    "d" if program.result == types.float64 else "f", template, 8 * at, 1
                )
        steps = (ctypes.c_int64 * len(self.steps))(*self.steps)
        plan = (ctypes.c_int64 * Plan.SIZE)(*Plan.words(
            program=program.address, limit=limit, arguments=len(self.leaves) + self.moved,
            word_count=self.count + 1, result_count=self.copies * len(words.outputs) + 1,
            template=ctypes.addressof(template),
            steps=ctypes.addressof(steps), step_count=len(self.steps) // Step.SIZE,
        ))  # fmt: skip
        return ctypes.addressof(plan), (program, template, steps, plan)


@cache
def adapter() -> int:
    """The address of the function that packs, calls and unpacks: the program of a fast call."""
    return build.assemble(_text())


def _text() -> str:
    """The function, over the places of inputs, of outputs, and of a plan."""
    code = FunctionBuilder(np.dtype(np.float64))
    words, results = (
        _room(code, name, field)
        for name, field in (("words", Plan.word_count), ("results", Plan.result_count))
    )
    size = code.emit(f"shl i64 {_word(code, '%a2', Plan.word_count)}, 3")
    template = _word(code, "%a2", Plan.template, "ptr")
    code.lines.append(
        f"call void @llvm.memcpy.p0.p0.i64(ptr {words}, ptr {template}, i64 {size}, i1 false)"
    )
    with _each_step(code) as step:
        _pack(code, step, words)
    program, limit = _word(code, "%a2", Plan.program, "ptr"), _word(code, "%a2", Plan.limit)
    status = code.emit(f"call i64 {program}(ptr {words}, ptr {results}, i64 {limit})")
    code.fail(code.emit(f"icmp ne i64 {status}, 0"))
    bad = code.room("i1", "false")
    with _each_step(code) as step:
        _unpack(code, step, results, bad)
    code.fail(code.load(bad, "i1"))
    text = code.routine([""] * 3).text.replace("{name}", build.SYMBOL)
    return (
        _DECLARED + text.replace("define internal", "define", 1) + "\nattributes #0 = { nounwind }"
    )


_DECLARED = """
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""


def _room(code: FunctionBuilder, name: str, field: int) -> str:
    """Memory for as many words as the plan says."""
    code.head += [
        f"%{name}.at = getelementptr i64, ptr %a2, i64 {field}",
        f"%{name}.count = load i64, ptr %{name}.at",
        f"%{name} = alloca i64, i64 %{name}.count",
    ]
    return f"%{name}"


def _word(code: FunctionBuilder, structure: str, field: int | str, kind: str = "i64") -> str:
    """A word of a structure."""
    return code.load(code.at(structure, field, "i64"), kind)


@contextmanager
def _each_step(code: FunctionBuilder) -> Iterator[str]:
    """The lines that are written inside are done for each step of the plan."""
    steps = _word(code, "%a2", Plan.steps, "ptr")
    with code.loop(_word(code, "%a2", Plan.step_count)) as k:
        yield code.at(steps, code.mad(k, Step.SIZE, 0), "i64")


def _is(code: FunctionBuilder, step: str, kind: int) -> Any:
    """The lines that are written inside are done for a kind of steps."""
    found = _word(code, step, Step.kind)
    return code.where(code.emit(f"icmp eq i64 {found}, {kind}"))


def _pack(code: FunctionBuilder, step: str, words: str) -> None:
    """Put a word in."""
    argument, number = _word(code, step, Step.argument), _word(code, step, Step.number)
    to = code.at(words, _word(code, step, Step.word), "i64")
    with _is(code, step, NUMBER):
        code.store(code.load(_word(code, "%a0", argument, "ptr"), "i64"), to, "i64")
    with _is(code, step, ADDRESS):
        code.store(_word(code, "%a0", argument, "ptr"), to, "ptr")
    with _is(code, step, LENGTH):
        code.store(_word(code, _shape(code, argument), number), to, "i64")
    with _is(code, step, ADJOINT):
        array = _word(code, "%a1", number, "ptr")
        size = code.emit(f"mul i64 {_size(code, step)}, {_word(code, step, Step.itemsize)}")
        code.lines.append(f"call void @llvm.memset.p0.i64(ptr {array}, i8 0, i64 {size}, i1 false)")
        code.store(array, to, "ptr")


def _shape(code: FunctionBuilder, argument: str) -> str:
    """The shape of an argument."""
    count = _word(code, "%a2", Plan.arguments)
    return _word(code, "%a0", code.emit(f"add i64 {count}, {argument}"), "ptr")


def _size(code: FunctionBuilder, step: str) -> str:
    """The number of elements of a step's output, which has the shape of its argument."""
    total = code.room("i64")
    code.store("1", total, "i64")
    shape = _shape(code, _word(code, step, Step.argument))
    with code.loop(_word(code, step, Step.ndim)) as d:
        n = _word(code, shape, d)
        code.store(code.emit(f"mul i64 {code.load(total, 'i64')}, {n}"), total, "i64")
    return code.load(total, "i64")


def _unpack(code: FunctionBuilder, step: str, results: str, bad: str) -> None:
    """Put a result out, and note whether a gradient is NaN."""
    output = _word(code, "%a1", _word(code, step, Step.number), "ptr")
    with _is(code, step, ADJOINT):
        itemsize, size = _word(code, step, Step.itemsize), _size(code, step)
        for kind, bytes in (("double", 8), ("float", 4)):
            with code.where(code.emit(f"icmp eq i64 {itemsize}, {bytes}")), code.loop(size) as i:
                _note(code, code.load(code.at(output, i, kind), kind), kind, bad)
    for which in (GRADIENT, VALUE):
        with _is(code, step, which):
            x = _word(code, results, _word(code, step, Step.word), "double")
            code.store(x, output)
            if which == GRADIENT:
                _note(code, x, "double", bad)
    with _is(code, step, SINGLE):
        x = code.load(code.at(results, _word(code, step, Step.word), "i64"), "float")
        code.store(code.emit(f"fpext float {x} to double"), output)


def _note(code: FunctionBuilder, x: str, kind: str, bad: str) -> None:
    """Note whether a number is NaN."""
    is_nan = code.emit(f"fcmp uno {kind} {x}, {x}")
    code.store(code.emit(f"or i1 {code.load(bad, 'i1')}, {is_nan}"), bad, "i1")
