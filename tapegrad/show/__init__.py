"""What a program does, shown: tables that print, and that notebooks draw.

Users import it; it imports everything below.
"""

from tapegrad.show.tape_memory import Buffer, MemoryUse, memory

__all__ = ["Buffer", "MemoryUse", "memory"]
