"""The parts of SciPy that are differentiable: `special` and `stats.norm`."""
