"""Compile a module of LLVM text to a callable program.

`link` makes machine code, or finds it in the disk cache, and `program` is its interface for
callers.  `front` imports from here; this package imports `lower`.
"""
