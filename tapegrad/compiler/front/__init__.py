"""What users call: `tg.jit`, and the ways into a compiled program from Python, Numba and C.

`jitted` is a function with its specializations (`specialization`), told apart by `signature`,
`static_args` and `captured_reads`.  `fastcall` and `fastcall_stub` are the call from Python,
`numba_interface` and `cfunc` those from machine code, over `dispatch_cache` and `foreign`; `jit_op`
and `jit_transforms` are what a jitted function is to the tape, to `jvp` and to `vmap`; `inspect`
prints its stages.

This package imports every other one of the compiler; the package's top level imports it.
"""
