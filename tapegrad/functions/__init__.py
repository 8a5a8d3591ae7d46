"""The functions and methods of Tensors, under PyTorch's names: a module for each family.

`arguments` reads what callers pass, `methods` puts functions on the Tensor; the modules called
`_fast` are short cuts for small operands.

`numpy_face`, `autograd` and what stands above import from here; this package imports `ops` and what
runs operations, `dispatch` and `native`.
"""
