"""Derivatives of functions that Numba compiles: loops, branches, arrays written in place.

`numba_front/` takes Numba's typed IR of a function apart into three-address code; `ssa_form` and
`value_numbering` make values of it, `activity` and `reverse_plan` decide what is differentiated and
what the reverse sweep reads, `forward_sweep` and `reverse_sweep` write both sweeps as one function
in LLVM's language, by the table of rules and the scalar code of `compiler/llvm/`.  `evaluation`
calls it from Python, `fast_calls` in less than a microsecond.  The transforms (`tapegrad.grad` and
its kin) import this folder when they are given such a function.  Numba does, when one is called
with Tensors: `tensor_calls` finds these calls, `call_records` makes records of them, and
`compiled_calls` has compiled programs call the sweeps.
"""
