"""Benchmarks: every figure that the README states, measured side by side in one run."""
