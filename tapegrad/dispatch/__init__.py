"""From the call of an operation to its result and its record on the tape.

`dispatch` runs any operation on any operands; `op_functions` makes the functions that call it, or
native code.  The other modules are short cuts for what is met most: `axis_plans` (operations
along dimensions), `index_plans` (chosen places), `convolution_plans` and `window_plans` (pooling,
`interpolate`), whose plans `call_plans` keeps, `views`, `inplace`, `inplace_views` and
`layout_history` (a Tensor that is turned in place, and its views).  `record_layout` says how the
operands of a record lie; `truncate` takes off the tape what a transform has left there.

`functions` and all that is built on it may import from here; this package imports the Tensor, the
tape, the table of operations, and the loops that compute.
"""
