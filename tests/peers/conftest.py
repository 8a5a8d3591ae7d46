"""JAX compiles each program once and runs it once: let it not work on how fast it runs."""

import os

os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
