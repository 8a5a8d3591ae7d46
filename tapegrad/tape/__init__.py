"""The Wengert tape, and the tables that its records refer to.

`tape` is the buffer of records with the values that they keep; `shape_table` numbers shapes
and strides; `versions` counts what has been changed in place.

Everything that records, sweeps, rewrites or shows a tape may import from here; this package imports
`base`.
"""
