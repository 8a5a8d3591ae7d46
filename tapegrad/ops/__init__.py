"""What can be recorded: the table of operations, one module per family.

`core` is the language of rows; `grad_fn` shows a record under its row's name to PyTorch's users.
A family is loaded by what uses it; `families` loads all, for what reads the whole table.

Whatever runs, differentiates or compiles operations imports from here; this package imports `base`
and `tape`.
"""
