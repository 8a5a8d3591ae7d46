"""From a schedule to one module of LLVM text.

`lower` writes the module, `emit_function` some steps in a row as one function, `module_functions`
those of nests and routines, `lower_control` loops and branches, `gemm_calls` calls of BLAS;
`vector_code` encodes nests for the interpreter, and `first_tier` counts what a program takes until
it is compiled.

`runtime` and `front` import from here; this package imports `schedule` and what that imports.
"""
