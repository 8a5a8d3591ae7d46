"""From a loop nest or a small matrix routine to LLVM text.

`scalar_nest` writes a nest on scalars, `vector_nest` with vectors (`loop_order` chooses how it is
run through, `transpose` turns results in registers, `vector_module` holds such functions); `tiling`
and `math_runtime` compute elementary functions over many elements, `threading` splits a nest among
threads.  `small_matmul` and `small_factor` are straight-line linear algebra, `gemm_fallback`
repeats a product where a strong zero makes a difference, `callbacks` calls Python.

`schedule` and `lower` import from here; this package imports `ir` and `llvm`.
"""
