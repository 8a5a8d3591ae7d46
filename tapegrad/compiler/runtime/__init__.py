"""From a module of text to a program that can be called.

`link` makes machine code, or finds it in the disk cache, and `program` is what a caller has to know
of it.  `front` imports from here; this package imports `lower`.
"""
