"""What neural networks are made of; only `functional` so far."""

from tapegrad.nn import functional

__all__ = ["functional"]
