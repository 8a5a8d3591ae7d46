"""The names of `autograd.misc`."""

from tapegrad.compat.autograd.misc.flatten import flatten

__all__ = ["flatten"]
