"""The structure by which Python tells loops over windows where these lie."""

from typing import Annotated, Any

from tapegrad.base.word_struct import WordStruct


class WindowTable(WordStruct):
    """Windows of volumes: of each of three dimensions the bounds, in pairs."""

    size: Annotated[Any, 3]  # of a volume
    count: Annotated[Any, 3]  # of windows
    step: Annotated[Any, 3]  # within a window
    fours: int  # whether all are of 2 x 2
    bounds: Annotated[Any, 3]  # addresses of beginnings and ends
