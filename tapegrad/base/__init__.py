"""What knows no tape and no operation: dtypes, devices, shapes' type, printing, locks, CPython.

`native_arrays` says which arrays native code may read, `abstract_array` is an array that has a
shape and a dtype and no elements; `missing_names` writes the errors for names that do not exist.

Everything may import from here; this package imports NumPy and itself.
"""
