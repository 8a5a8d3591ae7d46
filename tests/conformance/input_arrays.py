"""The walk of `test_input_arrays.py`, for a process of its own: every row x every kind of array.

Run as a program it says what it is about to do, line by line, so that the last line names what
crashed, and ends with the cases that disagreed.
"""

from __future__ import annotations

import faulthandler
import functools
import os
import sys
import zlib
from typing import Any

import numpy as np

import tapegrad as tg
from tapegrad.kernels.sweep.sweep_abi import SMALL
from tapegrad.native import install
from tapegrad.ops.core import ELEMENTWISE, NotImplementedYet
from tapegrad.ops.families import table
from tapegrad.transforms.pytree import flatten
from tests.conformance import guarded
from tests.conformance.checks import Case, rules_only
from tests.conformance.samples import laid_out, of_shapes, row, samples_of

# -- arrays ----------------------------------------------------------------------------------------


class Subclass(np.ndarray):
    """An array of a class of the user's."""


def swapped(x: Any) -> Any:
    return x.astype(x.dtype.newbyteorder("S"))


def narrow(x: Any) -> Any:
    return x.astype(np.float32) if x.dtype.kind == "f" else x


def unaligned(x: Any) -> Any:
    room = np.empty(x.nbytes + 1, np.uint8)[1:].view(x.dtype).reshape(x.shape)
    room[...] = x
    return room


def last_of_steps(x: Any) -> Any:
    """The second of every two elements: the last of all is right before the end."""
    return np.repeat(x, 2, -1)[..., 1::2] if x.ndim else x.copy()


def of_one_row(x: Any) -> Any:
    """The first element along each dimension for all of them, by steps of zero."""
    return np.broadcast_to(x[(slice(0, 1),) * x.ndim].copy(), x.shape)


def read_only(x: Any) -> Any:
    x = x.copy()
    x.flags.writeable = False
    return x


def mapped(x: Any) -> Any:
    """What `np.memmap` makes, of memory that NumPy does not own."""
    found = np.ndarray(x.shape, x.dtype, bytearray(max(x.nbytes, 1))).view(np.memmap)
    found[...] = x
    return found


ARRAYS = {
    "plain": np.copy,
    "byte order": swapped,
    "float32": narrow,
    "big-endian float32": lambda x: swapped(narrow(x)),
    "unaligned": unaligned,
    "transposed": lambda x: laid_out(x, "transposed"),
    "steps": last_of_steps,
    "reversed": lambda x: laid_out(x, "reversed"),
    "no steps": of_one_row,
    "read-only": read_only,
    "subclass": lambda x: x.view(Subclass),
    "mapped": mapped,
}


OTHER_LAYOUTS = ("transposed", "steps", "reversed", "no steps")


def as_made(x: Any) -> Any:
    """The same values as a plain array of its own."""
    return np.array(np.asarray(x), x.dtype.newbyteorder("="), order="C")


# -- samples ---------------------------------------------------------------------------------------

LARGE = (181, 183)  # more than 32,768 elements, and no multiple of what is computed side by side
LARGE_SHAPES = {
    1: [LARGE], 2: [LARGE, LARGE], 3: [LARGE, (), LARGE], 4: [LARGE, LARGE, LARGE, ()],
}  # fmt: skip
BY_DIM = {
    "sum mean amax amin logsumexp": {"dim": (1,), "keepdim": False},
    "var std": {"dim": (0,), "correction": 1, "keepdim": False},
    "norm": {"p": 2.0, "dim": (1,), "keepdim": False},
    "cumsum rcumsum cumprod logcumsumexp": {"dim": 1},
    "softmax log_softmax": {"dim": (1,)},
    "argmax argmin": {"dim": 1, "keepdim": False},
    "all any count_nonzero": {"dim": (0,), "keepdim": False},
    "argsort": {"dim": 1, "descending": False},
    "clone contiguous alias isnan isfinite signbit": {},
    "tril triu": {"diagonal": 0},
    "permute": {"dims": (1, 0)},
    "flip": {"dims": (1,)},
    "roll": {"shifts": (5,), "dims": (1,)},
    "repeat": {"reps": (1, 2)},
    "reshape": {"shape": LARGE[::-1]},
    "getitem": {"index": (slice(1, None, 2), ...)},
}
ALONE = {name: params for names, params in BY_DIM.items() for name in names.split()}
AT = np.arange(3 * LARGE[0]).reshape(3, -1).T % LARGE[1]
OTHERS = {
    "matmul": [(LARGE, (LARGE[1], 5)), {}],
    "cat": [(LARGE, LARGE), {"dim": 0}],
    "stack": [(LARGE, LARGE), {"dim": 1}],
    "gather": [(LARGE, AT), {"dim": 1}],
    "index_select": [(LARGE, AT[:, 0]), {"dim": 0}],
    "masked_fill": [(LARGE, np.arange(LARGE[0] * LARGE[1]).reshape(LARGE) % 3 == 0, ()), {}],
    "mse_loss": [(LARGE, LARGE), {"mean": True}],
    "einsum": [(LARGE, (LARGE[1], 5)), {"terms": ("ij", "jk"), "out": "ik"}],
}


def large_sample(op: Any) -> Any:
    """A sample of more elements than the fast paths take, where the row has one."""
    if op.kind is ELEMENTWISE:
        return of_shapes(op, LARGE_SHAPES[len(op.inputs)])
    if op.name in ALONE:
        shapes, params = (LARGE,), ALONE[op.name]
    elif op.name in OTHERS:
        shapes, params = OTHERS[op.name]
    else:
        return None
    row(op.name, *shapes, **params)
    return samples_of(op)[-1]


# -- modes -----------------------------------------------------------------------------------------


def function_of(case: Case, arrays: Any) -> tuple[Any, list[int]]:
    """The row as a function of its floating-point operands; the others are constants.

    So are those in which the row refuses a derivative.
    """
    op, params = case.op, case.sample.params
    formulas = [op.formulas[min(i, len(op.formulas) - 1)] for i in range(len(arrays))]
    floats = [
        i
        for i, x in enumerate(arrays)
        if x.dtype.kind == "f" and type(formulas[i]) is not NotImplementedYet
    ]

    def f(*given: Any) -> Any:
        operands = [None if i in floats else tg.as_tensor(x) for i, x in enumerate(arrays)]
        for i, x in zip(floats, given, strict=True):
            operands[i] = x
        return op(*operands, **params)

    return f, floats


@functools.cache  # to say that there is none takes long: similar names are looked for
def public_function(name: str) -> Any:
    return getattr(tg, name, None)


def eager(case: Case, arrays: Any) -> Any:
    """The value, and the gradients by the sweep.

    The operands beside a differentiated one are arrays where the row has a public function.
    """
    tensors = [tg.as_tensor(x) for x in arrays]
    for i in case.moving:
        tensors[i].requires_grad_()
    public = public_function(case.op.name) if case.op.kind is ELEMENTWISE else None
    if public is not None and case.moving == [0, 1] and len(arrays) == 2:
        y = public(tensors[0], arrays[1])
        tensors, moving = tensors[:1], [0]
    else:
        y, moving = case.op(*tensors, **case.sample.params), case.moving
    if not y.requires_grad:
        return [y]
    leaves = [tensors[i] for i in moving]
    return [y, *tg.autograd.grad(y, leaves, tg.as_tensor(case.weight.astype(y.dtype.numpy)))]


def native_off(case: Case, arrays: Any) -> Any:
    with rules_only():
        return eager(case, arrays)


_jitted: dict[Any, Any] = {}


def jit(case: Case, arrays: Any) -> Any:
    f, floats = function_of(case, arrays)
    key = case.op.name, case.sample.name
    if key not in _jitted:  # the constants are the same in all kinds of arrays
        weight = case.weight

        def weighted(*given: Any) -> Any:
            return (f(*given) * weight).sum()

        moving = tuple(k for k, i in enumerate(floats) if i in case.moving)
        if moving and case.floating:
            _jitted[key] = tg.jit(tg.value_and_grad(weighted, moving))
        else:
            _jitted[key] = tg.jit(f)
    return flatten(_jitted[key](*[arrays[i] for i in floats]))[0]


def vmap(case: Case, arrays: Any) -> Any:
    """Over a new first dimension, which keeps the kind: of two examples that are alike."""
    f, floats = function_of(case, arrays)
    kind = case.make
    return [tg.vmap(f, axis_size=2)(*[kind(np.stack([case.arrays[i]] * 2)) for i in floats])]


def jvp(case: Case, arrays: Any) -> Any:
    if not case.floating:
        return eager(case, arrays)
    f, floats = function_of(case, arrays)
    tangents = [case.make(case.direction[i].astype(case.arrays[i].dtype)) for i in floats]
    return list(tg.jvp(f, tuple(arrays[i] for i in floats), tuple(tangents)))


MODES = {
    "eager": eager, "large": eager, "native off": native_off, "jit": jit, "vmap": vmap, "jvp": jvp,
}  # fmt: skip


# -- the walk --------------------------------------------------------------------------------------


def outcome(mode: str, case: Case, make: Any) -> Any:
    case.make = make
    try:
        found = MODES[mode](case, [make(x) for x in case.arrays])
    except Exception as problem:
        return type(problem), str(problem)
    return [x.detach()._a if isinstance(x, tg.Tensor) else np.asarray(x) for x in found]


def differs(found: Any, expected: Any) -> str:
    """How two outcomes differ; nothing if they do not, but for rounding."""
    if isinstance(found, tuple) or isinstance(expected, tuple):
        same = isinstance(found, tuple) and isinstance(expected, tuple) and found[0] is expected[0]
        return "" if same else f"{found!r:.300} in place of {expected!r:.300}"
    for a, b in zip(found, expected, strict=True):
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"{a.dtype}{a.shape} in place of {b.dtype}{b.shape}"
        eps = np.finfo(b.dtype).eps if b.dtype.kind in "fc" else 0.0
        scale = np.abs(b[np.isfinite(b)]).max(initial=1e-3) if b.dtype.kind == "f" else 0.0
        if not np.allclose(a, b, rtol=256 * eps, atol=256 * eps * scale, equal_nan=True):
            return f"{a.ravel()[:4]} in place of {b.ravel()[:4]}"
    return ""


def walk(mode: str, every: bool) -> None:
    """All rows; of the kinds a part, so that all modes together have every row with every kind."""
    modes = list(MODES)
    wrong, raised, count = [], 0, 0
    for op in [*table.values()]:
        if op.name in ("function", "output"):
            continue
        samples = [s for s in samples_of(op) if s.movable] or samples_of(op)
        movable = samples[0].movable
        samples = [s for s in samples if any(map(np.size, s.operands))]
        large = large_sample(op) if mode == "large" else None
        for k, (kind, make) in enumerate(ARRAYS.items()):
            turn = zlib.crc32(op.name.encode()) + k
            if not every and turn % len(modes) != modes.index(mode):
                continue
            if not movable and kind in OTHER_LAYOUTS:
                continue
            if (op.name, kind) == ("std", "no steps"):  # of equal numbers: rounding over rounding
                continue
            sample = large or samples[turn % len(samples)]
            print(op.name, sample.name, kind, mode, file=sys.stderr, flush=True)
            case = Case(op, sample, np.float64)
            found = outcome(mode, case, make)
            expected = outcome(mode, case, lambda x, make=make: as_made(make(x)))
            count += 1
            raised += isinstance(expected, tuple)
            how = differs(found, expected)
            if how:
                wrong.append(f"{op.name} {sample.name} {kind}: {how}")
    print(f"{count} cases, {raised} of them refused", *wrong, sep="\n")


if __name__ == "__main__":
    faulthandler.enable()
    guarded.install()
    assert LARGE[0] * LARGE[1] > SMALL
    install.install()
    walk(sys.argv[1], sys.argv[2:] == ["every"])
    sys.stdout.flush()
    os._exit(0)  # before the allocator goes, and arrays after it
