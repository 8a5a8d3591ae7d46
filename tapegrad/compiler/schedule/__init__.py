"""From a graph to steps: which operations share a loop, and where every value lies.

`fusion` decides, `step_ir` is what it decides on, and `buffer_liveness` lets buffers share memory.
The others place one kind of operation:
joins that are never written (`virtual_concat`, with `domain_split`) or are (`materialize`),
`gather_scatter`, `scan_nests`, `matmul`, `lapack`, loops and branches (`control_steps`);
`speculation` multiplies without strong zeros as long as nothing is NaN.

`lower` and `front` import from here; this package imports `codegen`, `ir` and `llvm`.
"""
