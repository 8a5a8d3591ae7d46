"""Compile a module of LLVM text to a callable program.

`link` makes machine code, or finds it in the disk cache, and `program` is its interface for
callers.  `tiers` begins with a form of a long program that is there soon and compiles it when
that pays.  `front` imports from here; this package imports `lower`.
"""
