"""Tensors that stand for several: a value with its tangent (`dual`), a batch (`batch`).

`lifted_tensor` is what both have in common, and how an operation goes down a level (`levels`);
`batching_rules` and `batched_index` say what an operation on one example is on all,
`function_jvp` and `function_vmap` what a user's `Function` is; `lifted_sweep` is `grad` on such
Tensors.

`transforms` and `compiler` import from here; this package imports `autograd` and what that imports.
"""
