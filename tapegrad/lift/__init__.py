"""Tensors that stand for several: a value with its tangent (`dual`), a batch (`batch`)."""

from tapegrad.lift import functions, sweep  # they tell `autograd` what to do with such Tensors

__all__ = ["functions", "sweep"]
