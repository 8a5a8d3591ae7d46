"""Tensors that stand for several: a value with its tangent (`dual`), a batch (`batch`).

`lifted_tensor` is what both have in common, levels and how an operation goes down one;
`batching_rules` and `batched_index` say what an operation on one example is on all; `lifted_sweep`
and `lifted_functions` tell `autograd` what `grad` and a `Function` are on such Tensors, which
importing this package does.

`transforms` and `compiler` import from here; this package imports `autograd` and what that imports.
"""

from tapegrad.lift import lifted_functions, lifted_sweep

__all__ = ["lifted_functions", "lifted_sweep"]
