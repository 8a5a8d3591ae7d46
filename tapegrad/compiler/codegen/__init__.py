"""From a loop nest or a small matrix routine to LLVM text.

`scalar_nest` writes a nest on scalars, `vector_nest` with vectors (`loop_order` orders its
loops, `transpose` does 8 x 8 blocks, `vector_module` holds the functions); `loop_tiling`
and `math_runtime` compute elementary functions over many elements, `threading` splits a nest among
threads.  `small_matmul` and `small_factor` are straight-line linear algebra, `gemm_fallback`
repeats a product where a strong zero makes a difference, `callbacks` calls Python.
`vector_interpreter` runs nests that are not compiled, by calls of `vector_blocks`.

`schedule` and `lower` import from here; this package imports `ir` and `llvm`.
"""
