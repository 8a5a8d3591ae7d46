"""Intermediate representations of the compiler: graphs, buffers, loop nests.

`graph` is the tape of a trace, `control_ops` are the records that own graphs, `buffers` are memory
and strided windows into it, `loop_nest` is a fused loop, `piecewise` an index map of several boxes,
`copy_plans` are joins and paddings as copies.

Every phase imports from here; this package imports `llvm` and the rows of `ops`.
"""
