"""Call a compiled function from Numba's nopython code: `f.njit`, or `f` itself.

Numba types a call by ranks and dtypes alone, and `Face` gives its result type.  The code generated
for a call passes addresses: `dispatch_cache.find` finds the program for the actual shapes, the
results are allocated, `dispatch_cache.run` runs it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, errors, types
from numba.core.imputils import impl_ret_new_ref
from numba.core.typing.templates import Signature
from numba.extending import lower_builtin
from numba.np.arrayobj import _empty_nd_impl, make_array
from numba.np.numpy_support import as_dtype, from_dtype

from tapegrad.base.locks import lock
from tapegrad.compiler.front import dispatch_cache
from tapegrad.compiler.front.dispatch_cache import Table
from tapegrad.compiler.front.foreign import NUMBER, Form, Input, Source, leaves
from tapegrad.compiler.front.specialization import ARRAY, FLOAT, STATIC, Leaf
from tapegrad.kernels.numba_callable import CallableType, registered

WORD, BYTE = ir.IntType(64), ir.IntType(8)
ADDRESS = BYTE.as_pointer()


class Face:
    """`f.njit`: callable in nopython code and from Python, and passable as an argument.

    Arguments are numbers, which arrive as floats, and arrays in C order.  Nothing here takes the
    interpreter's lock once there is a program for the shapes (and branches) that occur.

    >>> import numba, numpy as np, tapegrad as tg
    >>> f = tg.jit(lambda x, a: (a * x * x).sum())
    >>> @numba.njit
    ... def total(x):
    ...     return f.njit(x, 2.0) + f.njit(x, 1)
    >>> total(np.ones(4))
    12.0
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self._lock = lock()
        self._calls: dict[tuple[Input, ...], _Call] = {}
        self._numba_type_ = FaceType(self)

    def __call__(self, *args: Any) -> Any:
        """The same in Python, for Numba code that runs uncompiled."""
        return self.source(*args)

    def __repr__(self) -> str:
        return f"<{self.source.name} for Numba>"

    def __reduce__(self) -> Any:
        return getattr, (self.source.jitted, "njit")

    def call(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> _Call:
        """The call with arguments of these types."""
        if kws:
            raise errors.TypingError(
                f"`{self.source.name}` was called with {', '.join(kws)} by name: in nopython code "
                "its arguments are positional"
            )
        inputs = tuple([self._input(k, types.unliteral(t)) for k, t in enumerate(args)])
        with self._lock:
            if inputs not in self._calls:
                self._calls[inputs] = _Call(self, inputs)
            return self._calls[inputs]

    def _input(self, k: int, t: types.Type) -> Input:
        if isinstance(t, types.Integer | types.Float | types.Boolean):
            return NUMBER
        if not isinstance(t, types.Array) or t.dtype not in _ELEMENTS:
            raise errors.TypingError(
                f"`{self.source.name}` got a {t} as argument {k}: in nopython code it takes real "
                "numbers and arrays of them"
            )
        if t.layout != "C" or not t.aligned:
            raise errors.TypingError(
                f"`{self.source.name}` got an {t} as argument {k}, whose elements may lie apart: "
                "pass `np.ascontiguousarray(...)` of it"
            )
        return Input(ARRAY, t.ndim, as_dtype(t.dtype))


_ELEMENTS = frozenset(types.integer_domain | types.real_domain | {types.boolean})


@registered
class FaceType(CallableType):
    """Numba's type of one compiled function."""

    def __init__(self, face: Face) -> None:
        self.face = face
        super().__init__(f"tapegrad({face.source.name}, {id(face):#x})")

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Signature:
        """The signature of a call."""
        call = self.face.call(args, kws)
        pairs = zip(args, call.inputs)
        given = [types.float64 if i.kind == FLOAT else types.unliteral(t) for t, i in pairs]
        return Signature(call.type(call.returned.form), tuple(given), None)

    def get_impl_key(self, signature: Signature) -> Any:
        """The key that the code of a call is registered under."""
        return self.face.call(signature.args, {}).lower


class _Call:
    """A call with inputs of given ranks and dtypes: its result type and its code."""

    def __init__(self, face: Face, inputs: tuple[Input, ...]) -> None:
        source = face.source
        try:
            returned = source.returned(source.example(inputs))
        except TypeError as error:
            raise errors.TypingError(str(error)) from error
        self.inputs, self.returned = inputs, returned
        self.source = source
        self.tables: dict[bool, Table] = {}
        # An array's type says more than its rank and dtype, whether it is read-only, say.
        general = [types.float64 if i.kind == FLOAT else types.Array for i in inputs]
        lower_builtin(self.lower, *general)(self.lower)

    def type(self, form: Form) -> types.Type:
        """Numba's type of a result."""
        if not isinstance(form, Leaf):
            return types.BaseTuple.from_types([self.type(part) for part in form.parts])
        if form.form == STATIC:
            return _STATIC[type(form.value)]
        rank, dtype = self.returned.outputs[form.output]
        if form.form == ARRAY:
            return _array(rank, dtype)
        return types.float64 if form.form == FLOAT else from_dtype(dtype)

    def table(self, parallel: bool) -> Table:
        """The table of programs for such calls, in the body of a parallel loop or elsewhere."""
        if parallel not in self.tables:
            table = Table(self.source, self.inputs, self.returned, keeps=not parallel)
            table.keep()  # Numba does not say when its machine code goes
            self.tables[parallel] = table
        return self.tables[parallel]

    def lower(self, context: Any, builder: Any, signature: Signature, args: Any) -> Any:
        """Write the code of a call."""
        return _Writer(self, context, builder).write(signature, args)


def _array(rank: int, dtype: np.dtype[Any]) -> types.Array:
    return types.Array(from_dtype(dtype), rank, "C")


_STATIC = {
    bool: types.boolean, int: types.int64, float: types.float64, type(None): types.none,
}  # fmt: skip


_PARALLEL = "__numba_parfor_gufunc"  # in the name of what the body of `prange` becomes


class _Writer:
    """Writes the code of one call."""

    def __init__(self, call: _Call, context: Any, builder: Any) -> None:
        self.call, self.context, self.builder = call, context, builder
        # An exception from the body of `prange` is lost, or breaks the interpreter: there the
        # failure is printed, and what is left of that thread's part of the loop is not run.
        self.parallel = _PARALLEL in builder.function.name
        self.table = call.table(self.parallel)
        self.types = [_array(rank, dtype) for rank, dtype in call.returned.outputs]
        self.arrays = {leaf.output for leaf in leaves(call.returned.form) if leaf.form == ARRAY}

    def write(self, signature: Signature, args: Any) -> Any:
        """Write the code from the arguments to the result."""
        builder, drive = self.builder, dispatch_cache.driver()
        table = self._address(self.table.address)
        inputs, dims = self._given(signature.args, args)
        find = self._function(drive.find, ADDRESS, 3)
        entry = builder.call(find, [table, dims, inputs])
        with builder.if_then(cgutils.is_null(builder, entry), likely=False):
            self._raise()
        made = self._made(entry)
        outputs = self._table([pointer for pointer, _ in made])
        run = self._function(drive.run, WORD, 4)
        status = builder.call(run, [table, entry, inputs, outputs])
        with builder.if_then(cgutils.is_not_null(builder, status), likely=False):
            for k in self.arrays:
                self.context.nrt.decref(builder, self.types[k], made[k][1])
            self._raise()
        result = self._result(self.call.returned.form, made)
        for k in self.arrays:  # each leaf has taken a reference of its own
            self.context.nrt.decref(builder, self.types[k], made[k][1])
        return impl_ret_new_ref(self.context, builder, signature.return_type, result)

    def _given(self, kinds: Any, args: Any) -> tuple[Any, Any]:
        """Pointers to the inputs; the lengths of all their dimensions."""
        pointers, lengths = [], []
        for kind, arg in zip(kinds, args):
            if isinstance(kind, types.Array):
                array = make_array(kind)(self.context, self.builder, arg)
                pointers.append(array.data)
                lengths += cgutils.unpack_tuple(self.builder, array.shape)
            else:
                pointers.append(cgutils.alloca_once_value(self.builder, arg))
        dims = cgutils.alloca_once(self.builder, WORD, size=max(len(lengths), 1))
        for k, length in enumerate(lengths):
            self.builder.store(length, self._at(dims, k))
        return self._table(pointers), self.builder.bitcast(dims, ADDRESS)

    def _made(self, entry: Any) -> list[tuple[Any, Any]]:
        """Allocate each output: its pointer, and the array if it is a result."""
        words = self.builder.bitcast(entry, WORD.as_pointer())
        place = dispatch_cache.EntryWords.SIZE + sum(i.rank for i in self.call.inputs)
        made = []
        for k, kind in enumerate(self.types):
            if k not in self.arrays:
                element = self.context.get_data_type(kind.dtype)
                made.append((cgutils.alloca_once(self.builder, element), None))
                continue
            dims = [self.builder.load(self._at(words, place + d)) for d in range(kind.ndim)]
            place += kind.ndim
            array = _empty_nd_impl(self.context, self.builder, kind, dims)
            made.append((array.data, array._getvalue()))
        return made

    def _result(self, form: Form, made: list[tuple[Any, Any]]) -> Any:
        context, builder = self.context, self.builder
        kind = self.call.type(form)
        if not isinstance(form, Leaf):
            parts = [self._result(part, made) for part in form.parts]
            return context.make_tuple(builder, kind, parts)
        if form.form == STATIC:
            return context.get_constant_generic(builder, kind, form.value)
        pointer, array = made[form.output]
        if form.form == ARRAY:
            context.nrt.incref(builder, kind, array)
            return array
        dtype = self.types[form.output].dtype
        value = context.unpack_value(builder, dtype, pointer)
        return context.cast(builder, value, dtype, kind)

    def _raise(self) -> None:
        convention = self.context.call_conv
        if self.parallel:
            convention.return_exc(self.builder)
        else:
            convention.return_user_exc(self.builder, dispatch_cache.Failed, (self.table.number,))

    def _address(self, value: int) -> Any:
        """An address of this process, which keeps Numba from storing the code on disk."""
        return self.context.add_dynamic_addr(self.builder, value, info=self.call.source.name)

    def _function(self, address: int, result: Any, arity: int) -> Any:
        kind = ir.FunctionType(result, [ADDRESS] * arity)
        return self.builder.bitcast(self._address(address), kind.as_pointer())

    def _table(self, pointers: list[Any]) -> Any:
        """Pointers, one after another, on the stack."""
        table = cgutils.alloca_once(self.builder, ADDRESS, size=max(len(pointers), 1))
        for k, pointer in enumerate(pointers):
            self.builder.store(self.builder.bitcast(pointer, ADDRESS), self._at(table, k))
        return self.builder.bitcast(table, ADDRESS)

    def _at(self, base: Any, k: int) -> Any:
        return self.builder.gep(base, [WORD(k)])
