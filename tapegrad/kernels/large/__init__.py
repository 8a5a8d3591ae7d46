"""Large arrays: compiled loops beside the NumPy forwards of operations that are not elementwise.

Each function of the modules here computes what the forward of a row of the table computes, for the
layouts that it knows, and gives None for all others.  Rows name them (`ops/large.py`) and import
them when they are first needed; so do `dispatch` and `autograd`.  They import `parallel`.
"""
