"""Compile a module of LLVM text to a callable program.

`link` makes machine code, or finds it in the disk cache, and `program` is its interface for
callers.  `tiers` begins with an interpreted form of a long program and compiles it when that
pays.  `front` imports from here; this package imports `lower`.
"""
