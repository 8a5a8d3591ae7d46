"""What Numba code does with a `WordStruct`: `Line(address).key` is a word, to read or to write.

A field that is annotated with a number of words is a pointer to them, and `Line(address)[k]` the
structure `k` further on.
`Line.SIZE`, and `Pair.first` of a NamedTuple `Pair`, are constants: the number of words, and which
item it is.
"""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.imputils import (
    lower_builtin,
    lower_constant,
    lower_getattr_generic,
    lower_setattr_generic,
)
from numba.core.typing.templates import (
    AbstractTemplate,
    AttributeTemplate,
    infer_getattr,
    signature,
)
from numba.core.typing.templates import infer_global as infer
from numba.extending import models, register_model, typeof_impl

from tapegrad.base.word_struct import WordStruct

_WORDS = types.CPointer(types.int64)


class StructPointer(types.Type):
    """The type of a pointer to a structure."""

    mutable = True

    def __init__(self, struct: type[WordStruct]) -> None:
        self.struct, self.dtype = struct, types.int64
        super().__init__(f"{struct.__module__}.{struct.__qualname__}*")


class StructClass(types.Callable, types.Opaque):
    """The type of a structure's class, which makes a pointer of an address."""

    def __init__(self, struct: type[WordStruct]) -> None:
        self.struct = struct
        super().__init__(f"{struct.__module__}.{struct.__qualname__}")

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        return signature(StructPointer(self.struct), types.int64)

    def get_call_signatures(self) -> Any:
        return (), True

    def get_impl_key(self, sig: Any) -> Any:
        return type(self)


register_model(StructPointer)(models.PointerModel)
register_model(StructClass)(models.OpaqueModel)


@typeof_impl.register(type(WordStruct))
def _type_of_class(struct: type[WordStruct], context: Any) -> StructClass:
    return StructClass(struct)


@lower_constant(StructClass)
def _no_value(context: Any, builder: Any, kind: Any, struct: Any) -> Any:
    return context.get_dummy_value()


@lower_builtin(StructClass, types.int64)
def _pointer(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.inttoptr(args[0], ir.IntType(64).as_pointer())


@infer(operator.getitem)
class _Further(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        if isinstance(args[0], StructPointer):
            return signature(args[0], args[0], types.intp)
        return None


@lower_builtin(operator.getitem, StructPointer, types.intp)
def _further(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    size = ir.Constant(ir.IntType(64), sig.args[0].struct.SIZE)
    return builder.gep(args[0], [builder.mul(args[1], size)])


@infer_getattr
class _Field(AttributeTemplate):
    key = StructPointer

    def generic_resolve(self, kind: Any, field: str) -> Any:  # type: ignore[override]
        if field not in kind.struct.fields:
            return None
        return _WORDS if field in kind.struct.arrays else types.int64


def _at(builder: Any, kind: Any, pointer: Any, field: str) -> Any:
    return builder.gep(pointer, [ir.Constant(ir.IntType(64), getattr(kind.struct, field))])


@lower_getattr_generic(StructPointer)
def _read(context: Any, builder: Any, kind: Any, pointer: Any, field: str) -> Any:
    at = _at(builder, kind, pointer, field)
    return at if field in kind.struct.arrays else builder.load(at)


@lower_setattr_generic(StructPointer)
def _write(context: Any, builder: Any, sig: Any, args: Any, field: str) -> None:
    builder.store(args[1], _at(builder, sig.args[0], args[0], field))


def _constant(kind: Any, name: str) -> int | None:
    if isinstance(kind, StructClass):
        return kind.struct.SIZE if name == "SIZE" else None
    names = kind.instance_class._fields
    return names.index(name) if name in names else None


def _lower(context: Any, builder: Any, kind: Any, value: Any, name: str) -> Any:
    return context.get_constant(types.int64, _constant(kind, name))


for _kind in (StructClass, types.NamedTupleClass):

    @infer_getattr
    class _Constant(AttributeTemplate):
        key = _kind

        def generic_resolve(self, kind: Any, name: str) -> Any:  # type: ignore[override]
            number = _constant(kind, name)
            return None if number is None else types.literal(number)

    lower_getattr_generic(_kind)(_lower)
