"""Compiled code: how it is built and kept, the walk over a tape, and the kernels themselves."""
