"""Compare with PyTorch on the samples with which it tests its own operators.

    make torch-samples

Values, dtypes and gradients of each sample have to agree, in float64 and in complex128.
`torch_samples.txt` says where they do not, each with its reason; the run fails when another
operator differs, and when one of the list does not.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lists import entries
from torch.testing._internal.common_methods_invocations import op_db

import tapegrad as tg

LIST = Path(__file__).with_suffix(".txt")
MOST = 60  # samples of an operator
TOLERANCE = 1e-7
KINDS = "raises", "values", "gradients", "missing"
DTYPES = torch.float64, torch.complex128


def named(library: Any, name: str) -> Any:
    """A function of a library, or a method; None where there is none."""
    found = library
    for part in name.split("."):
        found = getattr(found, part, None)
    return getattr(library.Tensor, name, None) if found is None else found


def array(t: torch.Tensor) -> np.ndarray:
    """The elements of a Tensor of PyTorch."""
    return (
        (t.detach() + 0 if t._is_zerotensor() else t.detach()).resolve_conj().resolve_neg().numpy()
    )


def ours(given: Any) -> Any:
    """An argument of ours that is like one of PyTorch's."""
    if isinstance(given, torch.Tensor):
        return tg.tensor(array(given).copy("K"), requires_grad=given.requires_grad)
    if isinstance(given, torch.dtype):
        return getattr(tg, str(given).removeprefix("torch."))
    if isinstance(given, torch.device):
        return "cpu"
    if isinstance(given, dict):
        return {name: ours(value) for name, value in given.items()}
    if isinstance(given, (list, tuple)):
        return (list if isinstance(given, list) else tuple)(map(ours, given))
    return given


def tensors(found: Any) -> list[Any]:
    """The Tensors in arguments or results, in order."""
    if isinstance(found, (torch.Tensor, tg.Tensor)):
        return [found]
    if isinstance(found, dict):
        found = list(found.values())
    return [t for x in found for t in tensors(x)] if isinstance(found, (list, tuple)) else []


def alike(mine: Any, theirs: torch.Tensor) -> bool:
    """Whether values agree."""
    a, b = mine.detach().numpy(), array(theirs)
    return a.shape == b.shape and np.allclose(a, b, TOLERANCE, TOLERANCE, equal_nan=True)


def gradients(library: Any, results: list[Any], leaves: list[Any]) -> list[Any]:
    """Those of weighted results; None of what they do not depend on."""
    rng = np.random.default_rng(3)
    moving = [y for y in results if y.requires_grad]
    weights = [rng.normal(size=tuple(y.shape)) * (1 + 1j * y.is_complex()) for y in moving]
    adjoints = [library.tensor(w, dtype=y.dtype) for w, y in zip(weights, moving, strict=True)]
    return list(library.autograd.grad(moving, leaves, adjoints, allow_unused=True))


def difference(sample: Any, theirs: Any, mine: Any) -> str:
    """In what a sample differs, one of `KINDS`; "" if in nothing, "-" if PyTorch refuses it."""
    given = sample.input, sample.args, sample.kwargs
    leaves = [t for t in tensors(given) if t.requires_grad]
    try:
        expected = tensors(theirs(sample.input, *sample.args, **sample.kwargs))
        slopes = None
        if leaves and any(y.requires_grad for y in expected):
            slopes = gradients(torch, expected, leaves)
    except (RuntimeError, TypeError, NotImplementedError):
        return "-"
    try:
        first, args, kwargs = own = ours(given)
        found = tensors(mine(first, *args, **kwargs))
        if len(found) != len(expected) or not all(map(alike, found, expected)):
            return "values"
        if any(str(a.dtype)[9:] != str(b.dtype)[6:] for a, b in zip(found, expected, strict=True)):
            return "values"
        if slopes is None:
            return ""
        paired = zip(gradients(tg, found, [t for t in tensors(own) if t.requires_grad]), slopes)
        right = all(
            alike(a, b) if a is not None and b is not None
            else all(t is None or not array_of(t).any() for t in (a, b))
            for a, b in paired
        )  # fmt: skip
    except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError):
        return "raises"
    return "" if right else "gradients"


def array_of(t: Any) -> np.ndarray:
    """The elements of a gradient of either library."""
    return array(t) if isinstance(t, torch.Tensor) else t.numpy()


def operators() -> Iterator[tuple[str, Any, Any, Any]]:
    """Each operator that is a public function: its name, its samples' source, and the functions."""
    for info in op_db:
        theirs = named(torch, info.name)
        if theirs is not None and info.op is theirs:  # else the samples wrap something
            yield info.name, info, theirs, named(tg, info.name)


def main() -> int:
    """Compare all samples; returns the exit code."""
    warnings.filterwarnings("ignore")
    counts: Counter[str] = Counter()
    found: dict[str, set[str]] = {}
    for name, info, theirs, mine in operators():
        for dtype in DTYPES:
            if dtype not in info.supported_dtypes("cpu"):
                continue
            if mine is None:
                found.setdefault(name, set()).add("missing")
                continue
            samples = list(info.sample_inputs("cpu", dtype, requires_grad=info.supports_autograd))
            for sample in samples[:MOST]:
                kind = difference(sample, theirs, mine)
                counts[kind or "agree"] += 1
                if kind in KINDS:
                    found.setdefault(name, set()).add(kind)
    listed = {(kind, name) for kind, names, _ in entries(LIST, KINDS) for name in names.split()}
    differ = {(kind, name) for name, kinds in found.items() for kind in kinds}
    print(f"{counts.pop('-', 0)} samples that PyTorch refuses; of the others " + ", ".join(
        f"{n} {kind}" for kind, n in counts.most_common()
    ))  # fmt: skip
    for title, those in (("not in the list", differ - listed), ("no longer", listed - differ)):
        for kind, name in sorted(those):
            print(f"{title}: {kind} {name}")
    return differ != listed


if __name__ == "__main__":
    sys.exit(main())
