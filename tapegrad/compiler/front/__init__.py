"""The front end: `tg.jit`, and calls of compiled programs from Python, Numba and C.

`jitted` is a function with its specializations (`specialization`), keyed by `signature`,
`static_args` and `captured_reads`.  `fastcall` and `fastcall_stub` are the call from Python,
`numba_interface` and `cfunc` those from machine code, over `dispatch_cache` and `foreign`; `jit_op`
and `jit_transforms` differentiate and batch a jitted function on the tape, under `jvp` and `vmap`;
`inspect` prints its stages.

This package imports every other one of the compiler; the package's top level imports it.
"""
