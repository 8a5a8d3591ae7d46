"""From a row of the table to a kernel: its formulas run on symbols, and the kernels loaded so far.

`parallel`, `native`, `autograd` and `compiler` import from here; this package imports `ops`.
"""
