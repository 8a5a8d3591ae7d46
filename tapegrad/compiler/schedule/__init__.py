"""Schedule a graph: fuse operations into loops, and assign every value a place in memory.

`fusion` fuses, `step_ir` is its output, and `buffer_liveness` lets buffers share memory.  Others
place one kind of operation: concatenations, virtual (`virtual_concat`, with `domain_split`) or
materialised (`concat_in_place`), `gather_scatter`, `scan_nests`, `matmul`, `lapack`,
`routines`, loops and branches (`control_steps`);
`speculative_products` multiplies without strong zeros until a result is NaN; `run_time` estimates
what steps take.

`lower` and `front` import from here; this package imports `codegen`, `ir` and `llvm`.
"""
