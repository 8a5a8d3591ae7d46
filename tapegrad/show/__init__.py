"""What a program does, shown: pictures, pages, and tables that print and that notebooks draw.

Users import it; it imports everything below.
"""

from tapegrad.base.public_names import dir_of
from tapegrad.show.graph_picture import GraphPicture, graph
from tapegrad.show.logged_sweep import sweep
from tapegrad.show.sweep_steps import Contribution, SweepStep, SweepSteps
from tapegrad.show.tape_memory import Buffer, MemoryUse, memory

__all__ = [
    "Buffer", "Contribution", "GraphPicture", "MemoryUse", "SweepStep", "SweepSteps", "graph",
    "memory", "sweep",
]  # fmt: skip
__dir__ = dir_of(globals())
