"""Structures by which Python tells loops over windows of volumes where these lie."""

from typing import Annotated, Any

from tapegrad.base.word_struct import WordStruct


class WindowTable(WordStruct):
    """Windows of which the largest elements are looked for: of each dimension the bounds."""

    size: Annotated[Any, 3]  # of a volume
    count: Annotated[Any, 3]  # of windows
    step: Annotated[Any, 3]  # within a window
    fours: int  # whether all are of 2 x 2
    bounds: Annotated[Any, 3]  # addresses of beginnings and ends, in pairs


class SumTable(WordStruct):
    """Weighted sums: of each dimension a sparse matrix, row after row."""

    size: Annotated[Any, 3]  # of a volume that is read
    count: Annotated[Any, 3]  # of a volume that is written
    # addresses: where the entries of each row begin, of each entry the column and the weight
    starts: Annotated[Any, 3]
    places: Annotated[Any, 3]
    weights: Annotated[Any, 3]
    taps: int  # how many entries each row of the last dimension has; 0: not equally many


class WindowAdjoint(WordStruct):
    """The adjoint of weighted sums, for the compiled sweep."""

    loop: int
    table: int
    volumes: int
    itemsize: int
    size: int  # elements of the result
    room: int  # in bytes
