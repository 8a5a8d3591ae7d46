"""Operations on Tensors in compiled code that CPython calls: operands, loops, record, result.

`install` puts it in the place of functions in Python; `bindings` fills the tables that it reads;
`stubs` makes a C function for each way of calling an operation; `view_cache` is the inline cache of
views.  All else is source of compiled functions: `abi` declares the tables, `pyobjects` has the
rules for counting references.  `entry` takes a call through `operands` (what it was given), `plans`
(what follows), `loops` (the work; of places `index_loops`, along dimensions of large arrays
`row_passes`) and `execute` (the result and its record; in place `changes`).  `append` writes the
record, `reclaim` frees what abandoned records saved, `accumulate` adds a sweep's adjoints to
leaves, `sweep_call` does a small sweep as a whole.

Compiled functions import `kernels` and the tape's constants alone.  The four modules first named
import whatever runs operations in Python; of those, only `functions` and `autograd` import them.
"""
