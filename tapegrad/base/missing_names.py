"""Errors for misspelt names, and for those that PyTorch has and this library does not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

_LAYERS = (
    "layers are not here: write the model as a function of its parameters, and train these with "
    "`tapegrad.optim` or `tapegrad.optimize`"
)
_DEVICES = "it computes on the CPU alone: leave it out, or pass `device='cpu'`"
_SPARSE = "there are no sparse Tensors and no layouts: use dense ones"
_COMPILED = "`tapegrad.jit` compiles functions"
_CONSTRUCTORS = "use `tapegrad.tensor(data, dtype=...)`"
_MIXED = "there is no mixed precision: give float32 Tensors"
_SOLVERS = "`tapegrad.scipy.integrate` solves differential equations, and is differentiable"
_RATES = "`LambdaLR(optimizer, f)` takes any rule: the rate is the first one times `f(epoch)`"
_MEMORY = "memory is NumPy's, which neither resizes nor exchanges it: make a new Tensor"

# By names, or by what they begin with (those that end in `*`).
INSTEAD: dict[str, str] = {
    **dict.fromkeys(("Module", "Linear", "Sequential", "Parameter", "ReLU", "Tanh"), _LAYERS),
    **dict.fromkeys(
        ("Conv*", "BatchNorm*", "LayerNorm", "Embedding", "Dropout*", "LSTM", "GRU", "*Loss"),
        _LAYERS,
    ),
    **dict.fromkeys(("cuda", "xpu", "mps", "to_mkldnn"), _DEVICES),
    **dict.fromkeys(("set_default_device", "pin_memory"), _DEVICES),
    **dict.fromkeys(("sparse*", "to_sparse*", "to_dense", "strided", "memory_format"), _SPARSE),
    **dict.fromkeys(("channels_last*", "contiguous_format", "preserve_format", "layout"), _SPARSE),
    **dict.fromkeys(("compile", "jit_script", "fx", "script"), _COMPILED),
    **dict.fromkeys(("FloatTensor", "DoubleTensor", "LongTensor", "IntTensor"), _CONSTRUCTORS),
    **dict.fromkeys(("BoolTensor", "ByteTensor", "HalfTensor"), _CONSTRUCTORS),
    **dict.fromkeys(("resize_", "resize_as_", "set_", "storage", "share_memory_"), _MEMORY),
    **dict.fromkeys(("bfloat16", "chalf"), "NumPy has no such type: use float32, or float16"),
    **dict.fromkeys(("MultiStepLR", "MultiplicativeLR", "LinearLR", "ConstantLR"), _RATES),
    **dict.fromkeys(("PolynomialLR", "OneCycleLR", "CyclicLR", "SequentialLR"), _RATES),
    **dict.fromkeys(("CosineAnnealingWarmRestarts", "ChainedScheduler"), _RATES),
    **dict.fromkeys(("odeint", "solve_ivp", "integrate"), _SOLVERS),
    "numpy": "NumPy's own functions take Tensors: `import numpy as np`",
    "lax": "`tapegrad.cond`, `switch`, `scan`, `fori_loop` and `while_loop` are loops and branches",
    "map": "`tapegrad.vmap(f)(xs)`, or `tapegrad.scan(lambda c, x: (c, f(x)), None, xs)[1]`",
    "associative_scan": "`tapegrad.scan`, or `np.cumsum`, `np.maximum.accumulate` and the like",
    "pmap": "`tapegrad.vmap`: it computes on one machine",
    "linear_transpose": "`tapegrad.vjp(f, x)[1]`",
    "at": "write into a copy: `y = x.copy(); y[i] = v` is `y = x.at[i].set(v)`, and `y[i] += v` or "
    "`np.add.at(y, i, v)`, where `i` has an element several times, is `.add(v)`",
    "block_until_ready": "a call returns when it is done: leave it out",
    "make_jaxpr": "`print(tapegrad.jit(f).lower(x))` shows the program",
    "grad_and_value": "`tapegrad.value_and_grad`",
    "elementwise_grad": "`tapegrad.vmap(tapegrad.grad(f))`",
    "Variable": "a Tensor with `requires_grad=True`",
    "random": "`tapegrad.randn`, `rand` and others draw numbers, and `manual_seed` seeds them",
    "amp": _MIXED,
    "distributions": "`tapegrad.scipy.stats` has densities that are differentiable, and "
    "`tapegrad.randn`, `rand` and others draw numbers",
    "utils": "`tapegrad.checkpoint(f)(x)` is `checkpoint(f, x)`, and batches are slices of Tensors",
    "profiler": "`tapegrad.profile` times operations and sweeps",
    "tree": "`tapegrad.tree_map`, `tree_leaves`, `tree_flatten`, `tree_unflatten`, `tree_reduce`",
    "autocast": _MIXED,
    "init": "fill a Tensor in place (`w.normal_(0, 0.02)`, `w.uniform_(-a, a)`, `w.zero_()`)",
    "set_default_tensor_type": "`tapegrad.set_default_dtype(tapegrad.float64)`",
    "symeig": "`tapegrad.linalg.eigh`",
    "solve": "`tapegrad.linalg.solve`",
    **dict.fromkeys(("lstsq", "gels"), "`tapegrad.linalg.lstsq`"),
    "matrix_rank": "`tapegrad.linalg.matrix_rank`",
    **dict.fromkeys(("rfft", "irfft"), "`tapegrad.fft.rfft`, `irfft`"),
    **dict.fromkeys(("apply_", "map_"), "`tapegrad.vmap(f)(t)`, or `t.copy_(f(t))`"),
    **dict.fromkeys(("backends", "get_device", "use_deterministic_algorithms"), _DEVICES),
    **dict.fromkeys(("set_float32_matmul_precision", "set_num_interop_threads"), _DEVICES),
    "save": "use `pickle`, or `numpy.save` of `t.numpy()`",
    "load": "use `pickle`, or `numpy.load`",
}


def missing(where: str, name: str, known: Iterable[str] = (), obj: Any = None) -> AttributeError:
    """The error for a name that something has not: what there is instead.

    Of a Tensor many programs ask what it has, and Python itself names what is near in a traceback:
    it finds that by `obj` when it prints one.
    """
    text = f"{where} has no attribute {name!r}"
    if name.startswith("__"):
        return AttributeError(text, name=name, obj=obj)
    for key, instead in INSTEAD.items():
        begins, ends = key.endswith("*"), key.startswith("*")
        part = key.strip("*")
        if name == key or (begins and name.startswith(part)) or (ends and name.endswith(part)):
            return AttributeError(f"{text}: {instead}", name=name, obj=obj)
    if obj is not None:
        return AttributeError(text, name=name, obj=obj)
    import difflib  # which takes its time

    near = difflib.get_close_matches(name, known, 3, 0.75)
    if near:
        return AttributeError(f"{text}: did you mean {' or '.join(f'`{n}`' for n in near)}?")
    return AttributeError(f"{text}: the page Limits of the documentation says what is not here")
