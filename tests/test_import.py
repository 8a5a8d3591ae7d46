"""What `import tapegrad` loads, and how long it takes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.tapegrad_only("about this project")

ROOT = Path(__file__).parents[1]
HEAVY = "{'numba', 'llvmlite', 'scipy', 'torch', 'jax', 'autograd'}"
# Of the time that NumPy's own import takes: the same is asked of a machine that is slower, or busy
# with other tests.  It was 0.35 to 0.58 (0.03 to 0.06 s) from machine to machine, for NumPy's
# depends on how fast libraries are loaded.  From Python 3.14 on NumPy's takes two thirds of that.
LIMIT = 0.7 if sys.version_info < (3, 14) else 1.0


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


def test_lift_is_loaded_for_batched_gradients():
    code = (
        "import sys, tapegrad as tg; assert 'tapegrad.lift' not in sys.modules\n"
        "x = tg.ones(2, requires_grad=True)\n"
        "print(tg.autograd.grad(x * 2, x, tg.eye(2), is_grads_batched=True)[0].tolist())"
    )
    assert run(code) == ["[[2.0,", "0.0],", "[0.0,", "2.0]]"]


def test_scipy_is_loaded_when_it_is_called():
    call = "import tapegrad as tg; tg.optimize.minimize(lambda x: x**2, 1.0)"
    assert "scipy" in run(f"{call}; {LOADED}")


def test_import_is_quick(tmp_path):
    """The best of several runs of each; the first writes the bytecode that the others read."""
    code = (
        "from time import process_time as now; start = now(); import numpy; middle = now()\n"
        "import tapegrad; print(now() - middle, middle - start)"
    )
    cached = {"PYTHONPYCACHEPREFIX": str(tmp_path), "PYTHONDONTWRITEBYTECODE": ""}
    times = [[float(word) for word in run(code, **cached)] for _ in range(8)]
    ours, numpys = (min(column) for column in zip(*times[1:], strict=True))
    assert ours < LIMIT * numpys
