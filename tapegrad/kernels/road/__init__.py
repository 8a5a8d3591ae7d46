"""The compiled road: an operation on small Tensors, from the call to its record."""
