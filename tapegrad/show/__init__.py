"""What a program does, shown: pictures, pages, and tables that print and that notebooks draw.

Users import it; it imports everything below.
"""

from tapegrad.show.graph_picture import GraphPicture, graph
from tapegrad.show.tape_memory import Buffer, MemoryUse, memory

__all__ = ["Buffer", "GraphPicture", "MemoryUse", "graph", "memory"]
