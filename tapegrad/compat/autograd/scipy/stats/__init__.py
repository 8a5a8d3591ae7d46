"""The distributions that are differentiable: `norm`."""
