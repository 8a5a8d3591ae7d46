"""Structures of 64-bit words that Python writes and compiled code reads, declared once.

    class Line(WordStruct):
        KEY: int
        LENGTHS: Annotated[Any, 3]  # words

`Line.LENGTHS` is 1, where the field begins, and `Line.SIZE` 4, for Python and for Numba, which
reads both as constants (`tapegrad.kernels.flags`).
"""

import struct
from collections.abc import Callable, Sequence
from inspect import get_annotations
from typing import TYPE_CHECKING, Any, Self


class _Declared(type):
    """Numbers the annotated fields of a class in their order."""

    fields: dict[str, int]  # how many words each takes
    arrays: set[str]  # those that are annotated with this number
    SIZE: int

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> None:
        super().__init__(name, bases, namespace)
        cls.fields, cls.arrays, cls.SIZE = {}, set(), 0
        for field, kind in get_annotations(cls, eval_str=True).items():
            cls.fields[field] = 1
            if kind is not int:
                cls.arrays.add(field)
                (cls.fields[field],) = kind.__metadata__
            setattr(cls, field, cls.SIZE)
            cls.SIZE += cls.fields[field]


class WordStruct(metaclass=_Declared):
    """A structure of words; a subclass annotates its fields."""

    if TYPE_CHECKING:  # what Numba makes of it

        def __init__(self, address: Any) -> None: ...
        def __getitem__(self, k: Any) -> Self: ...

    @classmethod
    def words(cls, **values: int | Sequence[int]) -> list[int]:
        """The words of one structure, of which every field is given."""
        if values.keys() != cls.fields.keys():
            raise TypeError(f"{cls.__name__}: {sorted(values.keys() ^ cls.fields.keys())}")
        found: list[int] = []
        for field, count in cls.fields.items():
            value = values[field]
            found += [int(value)] if isinstance(value, int) else value
            if len(found) != getattr(cls, field) + count:
                raise ValueError(f"{cls.__name__}.{field} takes {count} words")
        return found

    @classmethod
    def writer(cls, *fields: str) -> Callable[..., None]:
        """`struct.pack_into` of the fields that the structure begins with."""
        if fields != tuple(cls.fields)[: len(fields)]:
            raise TypeError(f"{cls.__name__} does not begin with {fields}")
        return struct.Struct(f"{sum(cls.fields[field] for field in fields)}q").pack_into
