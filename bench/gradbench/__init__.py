"""The evals of GradBench, the public benchmark of autodiff tools, that this library takes part in.

The problems are those of https://github.com/gradbench/gradbench, written from its descriptions.
``python -m bench.gradbench`` is a tool that its harness can call.
"""

from __future__ import annotations

import importlib

from bench.gradbench.evaluation import Eval

NAMES = ("gmm", "ba", "kmeans", "llsq", "det", "ode", "lstm", "ht")


def find(name: str) -> Eval:
    """Return an eval by GradBench's name of its module; a `KeyError` if there is none here."""
    if name not in NAMES:
        raise KeyError(name)
    found: Eval = importlib.import_module(f"bench.gradbench.{name}").EVAL
    return found
