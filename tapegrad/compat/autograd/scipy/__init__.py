"""The parts of SciPy that are differentiable."""
