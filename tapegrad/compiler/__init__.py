"""Behind `tapegrad.jit`, a pipeline: `trace`, `passes`, `schedule`, `lower`, `runtime`, `front`.

`ir` is what the phases hand to one another, `llvm` and `codegen` write the text of functions.  The
package's top level alone imports the compiler, when something is compiled.
"""
