"""From Numba's typed IR to three-address code: all that depends on the inside of Numba.

`derivative_program` imports it.
"""
