"""Structures by which Python tells the loops of a direct convolution how arrays lie."""

from typing import Annotated, Any

from tapegrad.base.word_struct import WordStruct


class Run(WordStruct):
    """Elements of an image that lie side by side where they are packed."""

    start: int  # the first one's position
    place: int  # its place in the image
    count: int


class Packing(WordStruct):
    """How channels of images are packed; lengths are in elements."""

    itemsize: int
    runs: int  # of one image: their number
    runs_at: int
    step: int  # from element to element of a run, in the image
    plane: int  # of one channel of an image
    whole: int  # of all channels of an image
    image: int  # from image to image, packed
    channel: int  # from channel to channel, packed


class Pass(WordStruct):
    """Outputs that read the same taps of the filters."""

    results: Annotated[Any, Packing.SIZE]  # how outputs lie among the positions
    depth: int  # input channels times taps
    offsets: int  # the address of so many: bytes from a position to what a tap reads
    weights: int  # the address of so many: a tap's place in the filter of an output


class Convolution(WordStruct):
    """Images, taken group by group, and what becomes of each group."""

    images: int
    together: int  # images of a group
    channel_groups: int
    inputs: int  # channels of such a group
    outputs: int
    packing: Annotated[Any, Packing.SIZE]
    passes: int
    passes_at: int
    filter: int  # elements from the filter of an output to the next
    filter_group: int  # and from group to group of channels
    parts: int  # into which the outputs are divided
    # the kernel that keeps a block of outputs in registers
    kernel: int
    rows: int  # outputs of a block
    tile: int  # positions of a block


class Correlation(WordStruct):
    """Images and what their convolution is weighted with, taken group by group."""

    images: int
    together: int
    channel_groups: int
    inputs: int
    outputs: int
    packing: Annotated[Any, Packing.SIZE]  # of the images
    results: Annotated[Any, Packing.SIZE]  # of the weights
    end: int  # of the positions of one image
    depth: int  # input channels times taps
    offsets: int  # the address of one for each column of a block
    # the kernel that keeps a block of sums in registers
    kernel: int
    rows: int  # outputs of a block
    row_blocks: int
    columns: int  # taps of a block
    column_blocks: int
    lanes: int  # positions of a step


class Form(WordStruct):
    """A convolution, its transpose or the gradient of its filters, of two arrays."""

    loop: int  # CONVOLVE or CORRELATE
    work: int  # the address of a `Convolution` or of a `Correlation`
    units: int  # into which the work is divided
    itemsize: int
    size: int  # elements of the result
    # Room that is zero at first, in elements: of that where packed images begin, and the sums, of a
    # correlation.
    room: int
    packed: int
    sums: int


CONVOLVE, CORRELATE = range(2)


class AdjointForm(WordStruct):
    """The form that the adjoint of an operand is."""

    form: int  # the address of a `Form`
    # its operands: values that the record has saved, or ADJOINT
    first: int
    second: int


ADJOINT = -1
