"""The reverse sweep in compiled code: one call walks the tape until a record needs Python.

`compiled_sweep` goes down the tape, `reachability` marks the records that it will meet, `arena`
lends memory for adjoints, `sweep_abi` numbers the frame that Python and compiled code share.  The
`_adjoints` modules hand adjoints on through the operations that are not elementwise.

`native` and `autograd` import from here; these modules import `kernels` and the constants of
`tape`.
"""
