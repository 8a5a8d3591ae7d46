"""LLVM text of straight-line code: values, functions, and the elementary functions they call.

`ssa` writes values with Python's operators, `function_builder` whole functions with loops and
memory, `scalar_ops` one elementwise operation, `elementary` the functions of `kernels.vmath`,
`scipy_calls` those that are called by pointer; `widen` makes vectors of the text of one element.

Every later phase may import from here; this package imports `kernels`.
"""
