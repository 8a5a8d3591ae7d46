"""What `import tapegrad` loads, and how long it takes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.tapegrad_only("about this project")

ROOT = Path(__file__).parents[1]
HEAVY = "{'numba', 'llvmlite', 'scipy', 'torch', 'jax', 'autograd'}"
# Seconds over NumPy's own. It is less than half of that; a machine may be busy.
LIMIT = 0.05


def run(code, **variables):
    """What a fresh Python prints."""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=os.environ | variables, capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    return done.stdout.split()


LOADED = f"import sys; print(*{{m.split('.')[0] for m in sys.modules}} & {HEAVY})"


@pytest.mark.parametrize(
    "code",
    [
        "import tapegrad",
        "import tapegrad.optimize",
        "import tapegrad.compat.autograd.numpy as np, tapegrad.compat.autograd.extend",
        "import tapegrad.compat.autograd.scipy.special",
        "import tapegrad.compat.autograd.scipy.stats.norm, tapegrad.compat.autograd.misc",
    ],
)
def test_nothing_heavy_is_loaded(code):
    assert run(f"{code}; {LOADED}") == []


def test_compat_is_loaded_when_it_is_asked_for():
    loaded = "import sys; print(*[m for m in sys.modules if m.startswith('tapegrad.compat.')])"
    assert run(f"import tapegrad; {loaded}") == []
    assert run("import tapegrad as tg; print(tg.compat.autograd.grad(lambda x: x**2)(3.0))") == [
        "6.0"
    ]


def test_scipy_is_loaded_when_it_is_called():
    call = "import tapegrad as tg; tg.optimize.minimize(lambda x: x**2, 1.0)"
    assert "scipy" in run(f"{call}; {LOADED}")


def test_import_is_quick(tmp_path):
    """Of several runs the shortest; the first writes the bytecode that the others read."""
    code = (
        "import time, numpy; start = time.perf_counter(); import tapegrad\n"
        "print(time.perf_counter() - start)"
    )
    cached = {"PYTHONPYCACHEPREFIX": str(tmp_path), "PYTHONDONTWRITEBYTECODE": ""}
    times = [float(run(code, **cached)[0]) for _ in range(8)]
    assert min(times[1:]) < LIMIT
