"""Compiled code of one operation: how it is built and kept, and the kernels themselves.

`build` goes from Numba source or LLVM text to an address, `disk_cache` keeps machine code,
`compile_ahead` has another process compile; `flags` is the one home of `njit`, `memory` reads raw
memory, `simd` and `simd_tables` are what `vmath`, the elementary functions, is made of.  `codegen`
makes the kernels of a row, elementwise or along a dimension, from its scalar form or decomposition
and its derivative formulas; `scan_loops` has the four loops that are not so made; `sweep` is the
compiled reverse sweep, and `large` computes the forward of large arrays.

`codegen` reads the rows of `ops`, and `large` replaces their forwards; all else here knows no
operation and imports `base` and the constants of `tape`.
"""
