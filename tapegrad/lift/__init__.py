"""Tensors that stand for several: a value with its tangent (`dual`), a batch (`batch`)."""
