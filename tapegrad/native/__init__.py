"""Operations on Tensors in compiled code that CPython calls: operands, loops, record, result.

`install` puts it in the place of functions in Python; `bindings` fills the tables that it reads;
`stubs` makes a C function for each way of calling an operation; `view_cache` is the inline cache of
views.  All else is source of compiled functions: `abi` declares the tables, `pyobjects`
reads CPython's objects and counts their references, `entry` and `entry_large` choose what a call
needs, the `execute_` modules compute it, `append` writes the record, `reclaim` frees what abandoned
records saved, `accumulate` adds a sweep's adjoints to leaves.

Compiled functions import `kernels` and the tape's constants alone.  The four modules first named
import whatever runs operations in Python; of those, only `functions` and `autograd` import them.
"""
