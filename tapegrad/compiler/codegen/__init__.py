"""From a loop nest or a small matrix routine to LLVM text.

`nest_writer` writes a nest, with vectors or for LLVM to make some (`vector_lines` has the lines,
`loop_order` orders the loops, `transpose` does 8 x 8 blocks), `nest_function` the function around
it, `vector_module` holds those with vectors; `loop_tiling` and `math_runtime` compute elementary
functions over many elements, `threading` splits a nest among threads.  `small_matmul` and
`small_factor` are straight-line linear algebra, `lapack_routines` calls LAPACK, `stockham` is the
Fourier transform, `sorting` sorts.  `gemm_fallback` repeats a product where a strong zero makes a
difference, `callbacks` calls Python.  `vector_interpreter` runs nests that are not compiled, by
calls of `vector_blocks`.

`schedule` and `lower` import from here; this package imports `ir` and `llvm`.
"""
