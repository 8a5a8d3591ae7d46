"""Structures by which Python tells the loops of Fourier transforms how arrays lie."""

from typing import Annotated, Any

from tapegrad.base.word_struct import WordStruct


class Lines(WordStruct):
    """The lines of an array that are transformed; lengths are in its elements."""

    array: int  # OPERAND, RESULT or MIDDLE
    parts: int  # 2 of complex numbers, 1 of real ones
    step: int  # from element to element of a line
    run: int  # lines that begin equally far apart
    pace: int  # from line to line of a run
    jump: int  # from run to run
    # The loop that moves whole blocks, or 0; of tiles: from line to line, and elements of a tile.
    kernel: int
    tile: int


class FourierPass(WordStruct):
    """A factor of the size: see `codegen.fourier_codegen`."""

    kernel: int
    factors: int  # the address of the factors between this pass and the next
    rest: int  # of the size, to be combined
    vectors: int  # of what has been combined so far, of all lines of a block


class FourierStage(WordStruct):
    """The transforms of all lines of an array; those of a block lie side by side in registers."""

    source: Annotated[Any, Lines.SIZE]
    target: Annotated[Any, Lines.SIZE]
    size: int
    lines: int
    group: int  # lines of which the last ones may be less than a block
    blocks: int  # of a group
    units: int  # blocks of all lines
    width: int  # transforms of a block
    lanes: int  # of a vector
    paired: int  # whether real lines are the real parts, and those behind them the imaginary parts
    # The loops between such lines' frequencies and half those of each; or 0.
    joins: int
    parts: int
    inverse: int
    scale: int  # the address of the number that results are multiplied by
    passes: int
    passes_at: int
    # Of lines that are parts of a long one: the loop that multiplies them, the long one's size, and
    # the addresses of roots of unity of that size, see `fourier_codegen.roots`.
    roots: int
    whole: int
    places: int
    tables: int


class FourierForm(WordStruct):
    """Stages, one after the other, or some units of a single one; four planes take room."""

    stages: int
    stages_at: int
    gap: int  # bytes from plane to plane
    middle: int  # where in the room an array between stages begins, if it is not given


class FourierAdjoint(WordStruct):
    """The adjoint of a transform, for the compiled sweep: a transform back."""

    loop: int  # of the library, over a form, or NumPy's over the last dimension
    form: int  # the address of a `FourierForm`, or 0
    units: int
    room: int  # in bytes
    # of NumPy's loop
    data: int
    factor: int  # the address of the number that results are multiplied by
    lines: int
    length: int  # of a line, and of what is made of it
    made_length: int
    # the adjoint that is given, and what the transform makes of it, in bytes
    given: int
    made: int
    itemsize: int
    made_itemsize: int
    # addresses of weights for each number of the one and the other, or 0
    before: int
    after: int
    keeps_real: int  # real parts alone are handed on


OPERAND, RESULT, MIDDLE = range(3)
FINE_BITS = 10  # of a power, looked up in the fine table
