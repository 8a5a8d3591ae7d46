"""Behind `tapegrad.jit`: trace, optimise, lower to LLVM, link, call."""
