"""What the compiler's phases hand to one another: graphs, buffers, loop nests.

`graph` is the tape of a trace, `control_ops` are the records that own graphs, `buffers` says where
values lie and what a strided window sees, `loop_nest` is a fused loop, `piecewise` an index map of
several boxes, `copy_plans` what is written of a join or a padding.

Every phase imports from here; this package imports `llvm` and the rows of `ops`.
"""
