"""What a step of a random program may be: forms with operands, drawn to fit their shapes.

A form is text over `np` (NumPy, which Tensors answer to, or `jax.numpy`), over `C` (control flow
and rules of one's own) and, where PyTorch has the operation, text over `T`.  `{0}` and `{1}` stand
for the operands.  Values stay of moderate size and away from singular points; `kink` is an array
whose elements are not near zero where the form is smooth.
"""

import math
from typing import NamedTuple

import numpy as np

MOST = 600  # elements of one value, unless a program is about large ones
LOOPS = 64  # the most that a loop does


# These make float64 of float32, by NumPy's rules or those of Tensors.
WIDENING = ("float_power", "argmax", "interp", "i0")


class Form(NamedTuple):
    """A step over operands: for NumPy, for PyTorch or None, and where it is smooth."""

    name: str
    text: str
    torch: str | None = None
    kink: str = ""
    smooth: bool = True  # whether differences tell the derivative, as they do not of stop_gradient


def of(shape):
    """The number of elements."""
    return math.prod(shape)


def in_torch(text):
    """The text with the names that PyTorch and tapegrad's face of it share."""
    return text.replace("np.", "T.").replace("T.arc", "T.a")


def same(name, text, kink=""):
    """A form whose functions have one name in both libraries."""
    return Form(name, text, in_torch(text), kink)


UNARY = [
    same("sin", "np.sin({0})"),
    same("cos", "np.cos({0})"),
    same("tanh", "np.tanh({0})"),
    same("tan", "np.tan(0.5 * np.tanh({0}))"),
    same("exp", "np.exp(np.sin({0}))"),
    same("exp2", "np.exp2(np.sin({0}))"),
    same("expm1", "np.expm1(np.tanh({0}))"),
    same("log", "np.log(1.5 + np.cos({0}))"),
    same("log1p", "np.log1p({0} * {0})"),
    same("log2", "np.log2(1.0 + {0} ** 2)"),
    same("log10", "np.log10(2.0 + np.sin({0}))"),
    same("sqrt", "np.sqrt(0.5 + {0} ** 2)"),
    Form("cbrt", "np.cbrt(2.0 + np.sin({0}))"),
    same("square", "np.square(np.sin({0}))"),
    same("reciprocal", "np.reciprocal(1.5 + np.sin({0}))"),
    same("neg", "-{0}"),
    same("abs", "np.abs({0})", "{0}"),
    same("sign", "{0} * np.sign({0})", "{0}"),
    same("floor", "{0} - 0.5 * np.floor({0})", "{0} - np.round({0})"),
    same("round", "{0} * 0.5 + np.round({0})", "{0} - np.round({0} + 0.5) + 0.5"),
    same("sinh", "np.sinh(np.tanh({0}))"),
    same("cosh", "np.cosh(np.tanh({0}))"),
    same("arcsin", "np.arcsin(0.9 * np.sin({0}))"),
    same("arccos", "np.arccos(0.8 * np.cos({0}))"),
    same("arctan", "np.arctan({0})"),
    same("arcsinh", "np.arcsinh({0})"),
    same("arccosh", "np.arccosh(1.2 + {0} ** 2)"),
    same("arctanh", "np.arctanh(0.9 * np.tanh({0}))"),
    same("pow 3", "np.tanh({0}) ** 3"),
    same("pow -2", "(1.5 + np.cos({0})) ** -2"),
    same("pow 0.3", "(1.0 + {0} ** 2) ** 0.3"),
    same("base 2", "2.0 ** np.sin({0})"),
    same("relu", "np.maximum({0}, np.zeros_like({0}))", "{0}"),
    Form("clip", "np.clip({0}, -0.5, 0.75)", "T.clamp({0}, -0.5, 0.75)",
         "({0} + 0.5) * ({0} - 0.75)"),
    Form("where root", "np.where({0} > 0.25, np.sqrt(np.abs({0})), {0})",
         "T.where({0} > 0.25, T.sqrt(T.abs({0})), {0})", "({0} - 0.25) * {0}"),
    Form("where log", "np.where({0} > 0.0, np.log(np.where({0} > 0.0, {0}, 1.0)), 0.5 * {0})",
         "T.where({0} > 0.0, T.log(T.where({0} > 0.0, {0}, 1.0)), 0.5 * {0})", "{0}"),
    same("plus zero", "{0} * 1.0 + 0.0"),
    same("minus itself", "{0} - {0}"),
    same("by itself", "{0} / (1.0 + {0} * {0})"),
    Form("sinc", "np.sinc(1.5 + np.tanh({0}))", "T.sinc(1.5 + T.tanh({0}))"),
    Form("deg", "np.sin(np.deg2rad({0} * 90.0))"),
    Form("nan_to_num", "np.nan_to_num({0})", "T.nan_to_num({0})"),
    Form("copy", "np.copy({0})", "{0}.clone()"),
    Form("i0", "np.i0(1.0 + np.tanh({0}))", None),
]  # fmt: skip

# What is complex within; a step makes real numbers.
_Z, _W = "({0} + 1j * np.sin({0}))", "({1} - 1j * np.cos({1}))"
_RING = "(3.0 + np.exp(1j * {0}))"  # away from zero and from the cut of the logarithm
UNARY += [
    same("complex exp", f"np.real(np.exp(1j * {{0}}) * {_Z})"),
    same("complex square", f"np.imag({_Z} ** 2)"),
    same("complex abs", f"np.abs({_RING}) * {{0}}"),
    same("complex angle", f"np.angle({_RING})"),
    same("complex log", f"np.imag(np.log({_RING}) * {_Z})"),
    same("complex quotient", f"np.real({_Z} / {_RING})"),
    same("complex sqrt", f"np.real(np.sqrt({_RING}))"),
    same("complex tanh", "np.imag(np.tanh(0.5 * np.tanh({0}) + 0.5j))"),
    same("complex power", f"np.real({_RING} ** 1.5) * 0.2"),
    same("conj", f"np.real(np.conj({_Z}) * np.exp(1j * {{0}}))"),
    same("complex where", f"np.real(np.where({{0}} > 0.25, {_Z}, 2.0 * np.conj({_Z})))",
         "{0} - 0.25"),
]  # fmt: skip

BINARY = [
    same("add", "{0} + {1}"),
    same("sub", "{0} - {1}"),
    same("rsub", "1.0 - {0} * np.tanh({1})"),
    same("mul", "np.tanh({0}) * {1}"),
    same("div", "{0} / (1.0 + {1} * {1})"),
    same("maximum", "np.maximum({0}, {1})", "{0} - {1}"),
    same("minimum", "np.minimum({0}, {1})", "{0} - {1}"),
    Form("fmax", "np.fmax({0}, {1})", None, "{0} - {1}"),
    same("where", "np.where({0} > {1}, np.sin({0}), {1})", "{0} - {1}"),
    same("pow", "(1.0 + {0} ** 2) ** np.tanh({1})"),
    same("arctan2", "np.arctan2({0}, 1.0 + {1} * {1})"),
    same("hypot", "np.hypot({0}, 1.0 + {1} * {1})"),
    same("logaddexp", "np.logaddexp({0}, {1})"),
    Form("copysign", "np.copysign(np.cos({0}), {1})", None, "np.cos({0}) * {1}"),
    Form("fmod", "np.fmod({0}, 1.5 + np.sin({1}))", "T.fmod({0}, 1.5 + T.sin({1}))",
         "({0} / (1.5 + np.sin({1}))) - np.round({0} / (1.5 + np.sin({1})))"),
    Form("remainder", "np.remainder({0}, 1.5 + np.sin({1}))", "T.remainder({0}, 1.5 + T.sin({1}))",
         "({0} / (1.5 + np.sin({1}))) - np.round({0} / (1.5 + np.sin({1})))"),
    Form("by mask", "({0} < {1}) * {0} + ({0} >= {1}) * {1}", None, "{0} - {1}"),
    Form("heaviside", "{0} * np.heaviside({1}, 0.5)", None, "{1}"),
    Form("broadcast", "np.broadcast_arrays({0}, {1})[0] + {1}"),
    Form("add.outer", "np.sin(np.add.outer(np.ravel({0})[:3], np.ravel({1})[:4]))", None),
    Form("float_power", "np.float_power(1.5 + np.sin({0}), {1})"),
    Form("ldexp", "np.ldexp({0}, 1) + {1}"),
    same("complex product", f"np.real({_Z} * np.exp(1j * {{1}}))"),
    same("complex by real", f"np.imag({_Z} * {{1}}) * 0.5"),
    same("complex and complex", f"np.imag({_Z} / (3.0 + np.exp(1j * {{1}})) - {_W})"),
]  # fmt: skip


def axes(rng, n):
    """An axis, several, or None."""
    if n == 0 or rng.random() < 0.2:
        return None
    if n > 1 and rng.random() < 0.25:
        return tuple(sorted(rng.sample(range(n), 2)))
    return rng.randrange(-n, n)


# A name, texts for NumPy and PyTorch, and the kink; AXIS (for PyTorch DIM) and KEEP are drawn.
_GAP = "np.diff(np.sort(np.ravel({0})))"
REDUCE = [
    ("sum", "np.sum({0}, axis=AXIS, keepdims=KEEP)", "T.sum({0}, DIM, keepdim=KEEP)", ""),
    ("x.sum", "{0}.sum(axis=AXIS, keepdims=KEEP)", None, ""),
    ("mean", "np.mean({0}, axis=AXIS, keepdims=KEEP)", "T.mean({0}, DIM, keepdim=KEEP)", ""),
    ("x.mean", "{0}.mean(AXIS)", None, ""),
    ("max", "np.max({0}, axis=AXIS, keepdims=KEEP)", "T.amax({0}, DIM, keepdim=KEEP)", _GAP),
    ("min", "np.min({0}, axis=AXIS, keepdims=KEEP)", "T.amin({0}, DIM, keepdim=KEEP)", _GAP),
    ("prod", "np.prod(np.cos({0}), axis=AXIS, keepdims=KEEP)", None, ""),
    ("var", "np.var({0}, axis=AXIS, keepdims=KEEP)",
     "T.var({0}, DIM, correction=0, keepdim=KEEP)", ""),
    ("std", "np.std(np.sin({0}), axis=AXIS, keepdims=KEEP)", None, _GAP),
    ("norm", "np.sqrt(0.1 + np.sum({0} * {0}, axis=AXIS, keepdims=KEEP))",
     "T.sqrt(0.1 + T.sum({0} * {0}, DIM, keepdim=KEEP))", ""),
    ("nansum", "np.nansum({0}, axis=AXIS, keepdims=KEEP)", None, ""),
    ("ptp", "np.ptp({0}, axis=AXIS)", None, _GAP),
    ("median", "np.median({0}, axis=AXIS)", None, _GAP),
    ("quantile", "np.quantile({0}, 0.3, axis=AXIS)", None, _GAP),
    ("average", "np.average({0}, axis=AXIS)", None, ""),
    ("softmax", "np.exp({0} - np.max({0}, axis=AXIS, keepdims=True))"
     " / np.sum(np.exp({0} - np.max({0}, axis=AXIS, keepdims=True)), axis=AXIS, keepdims=True)",
     None, ""),
    ("argmax", "{0} * (1.0 + np.argmax({0}))", None, _GAP),
    ("add.reduce", "np.add.reduce({0}, axis=AXIS)", None, ""),
    ("complex sum", f"np.real(np.sum({_Z} * np.exp(1j * {{0}}), axis=AXIS, keepdims=KEEP))",
     None, ""),
    ("complex mean", f"np.imag(np.mean({_Z} ** 2, axis=AXIS, keepdims=KEEP))", None, ""),
    ("complex prod", "np.imag(np.prod(np.exp(1j * {0}), axis=AXIS, keepdims=KEEP))", None, ""),
]  # fmt: skip
ALONG = [
    ("cumsum", "np.cumsum({0}, axis=AXIS) * 0.3", "T.cumsum({0}, AXIS) * 0.3", ""),
    ("cumprod", "np.cumprod(np.cos({0}), axis=AXIS)", "T.cumprod(T.cos({0}), AXIS)", ""),
    ("sort", "np.sort({0}, axis=AXIS)", "T.sort({0}, AXIS)[0]", _GAP),
    ("by argsort", "np.take_along_axis({0}, np.argsort({0}, axis=AXIS), axis=AXIS)",
     "T.take_along_dim({0}, T.argsort({0}, AXIS), AXIS)", _GAP),
    ("flip", "np.flip({0}, axis=AXIS)", "T.flip({0}, (AXIS,))", ""),
    ("roll", "np.roll({0}, 2, axis=AXIS)", "T.roll({0}, 2, AXIS)", ""),
    ("diff", "np.diff({0}, axis=AXIS)", "T.diff({0}, dim=AXIS)", ""),
    ("concatenate", "np.concatenate([{0}, np.sin({0})], axis=AXIS)",
     "T.cat([{0}, T.sin({0})], AXIS)", ""),
    ("stack", "np.stack([{0}, np.cos({0})], axis=AXIS)", "T.stack([{0}, T.cos({0})], AXIS)", ""),
    ("repeat", "np.repeat({0}, 2, axis=AXIS)", "T.repeat_interleave({0}, 2, AXIS)", ""),
    ("take", "np.take({0}, np.array([0, -1, 0]), axis=AXIS)", None, ""),
    ("split", "np.array_split({0}, 2, axis=AXIS)[0]", "T.tensor_split({0}, 2, AXIS)[0]", ""),
    ("trapezoid", "np.trapezoid({0}, axis=AXIS)", None, ""),
    ("unstack", "np.unstack({0}, axis=AXIS)[-1]", "T.unbind({0}, AXIS)[-1]", ""),
    ("log softmax", "{0} - np.log(np.sum(np.exp({0}), axis=AXIS, keepdims=True))",
     "T.log_softmax({0}, AXIS)", ""),
    ("delete", "np.delete({0}, 0, axis=AXIS)", None, ""),
    ("append", "np.append({0}, {0}, axis=AXIS)", None, ""),
    ("gradient", "np.gradient({0}, axis=AXIS)", None, ""),
    ("fft", "np.real(np.fft.fft(np.sin({0}), axis=AXIS) * (0.3 - 0.1j))",
     "T.real(T.fft.fft(T.sin({0}), dim=AXIS) * (0.3 - 0.1j))", ""),
    ("ifft", f"np.imag(np.fft.ifft({_Z}, axis=AXIS))",
     in_torch(f"np.imag(np.fft.ifft({_Z}, dim=AXIS))"), ""),
    ("rfft", "np.imag(np.fft.rfft(np.tanh({0}), axis=AXIS) * (0.3 + 0.2j))",
     "T.imag(T.fft.rfft(T.tanh({0}), dim=AXIS) * (0.3 + 0.2j))", ""),
    ("irfft", "np.fft.irfft(np.fft.rfft({0}, axis=AXIS) * (0.3 + 0.2j), 6, axis=AXIS)",
     "T.fft.irfft(T.fft.rfft({0}, dim=AXIS) * (0.3 + 0.2j), 6, dim=AXIS)", ""),
    ("complex cumsum", f"np.imag(np.cumsum({_Z} ** 2, axis=AXIS)) * 0.2", None, ""),
    ("complex concatenate", f"np.imag(np.concatenate([{_Z}, 1j * np.conj({_Z})], axis=AXIS))",
     in_torch(f"np.imag(np.cat([{_Z}, 1j * np.conj({_Z})], AXIS))"), ""),
    ("complex flip", f"np.real(np.flip({_Z} ** 2, axis=AXIS) * {_Z})", None, ""),
]  # fmt: skip


def _filled(row, **words):
    def fill(text):
        for word, value in words.items():
            text = text.replace(word, value)
        return text

    name, text, torch, kink = row
    return Form(name, fill(text), torch and fill(torch), kink)


def reduced(rng, shape):
    row = rng.choice(REDUCE)
    if not of(shape) and row[0] not in ("sum", "x.sum", "prod", "nansum", "norm", "add.reduce"):
        return None
    a = axes(rng, len(shape))
    if row[0] == "quantile" and isinstance(a, tuple):
        a = a[0]
    every = "()" if row[0] in ("max", "min") else "None"
    dim = every if a is None else repr(a)
    return _filled(row, AXIS=repr(a), DIM=dim, KEEP=repr(rng.random() < 0.4))


def along(rng, shape):
    if not shape:
        return None
    a = rng.randrange(-len(shape), len(shape))
    row = rng.choice(ALONG)
    least = {
        "fft": 1,
        "ifft": 1,
        "rfft": 1,
        "irfft": 2,
        "gradient": 2,
        "trapezoid": 1,
        "take": 1,
        "delete": 1,
        "unstack": 1,
    }
    if shape[a] < least.get(row[0], 0):
        return None
    return _filled(row, AXIS=repr(a))


def moved(rng, shape):
    """Elements in other places, of one operand."""
    n, some = len(shape), []
    add = lambda name, text, torch=None: some.append(Form(name, text, torch))
    add("ravel", "np.ravel({0}) * 1.0", "T.ravel({0}) * 1.0")
    add("reshape", f"np.reshape({{0}}, {(*shape[::-1],)}) * 1.0",
        f"T.reshape({{0}}, {(*shape[::-1],)}) * 1.0")  # fmt: skip
    add("transposed", "np.sin(np.transpose({0}))")
    add("broadcast", f"np.broadcast_to({{0}}, {(2, *shape)}) * 1.0",
        f"T.broadcast_to({{0}}, {(2, *shape)}) * 1.0")  # fmt: skip
    add("atleast_2d", "np.atleast_2d({0}) * 1.0")
    add("atleast_3d", "np.atleast_3d({0}) * 1.0")
    add("tile", "np.tile({0}, (2, 1))", "T.tile({0}, (2, 1))")
    add("flip all", "np.flip({0})", f"T.flip({{0}}, {tuple(range(n))})")
    pads = [(rng.randrange(3), rng.randrange(2)) for _ in shape]
    add("pad", f"np.pad({{0}}, {pads}, constant_values=0.5)" if n else "np.copy({0})")
    if n and min(shape) > 1:
        add("pad edge", f"np.pad({{0}}, {pads}, mode={rng.choice(['edge', 'reflect', 'wrap'])!r})")
    part = rng.choice(["::2", "1:", "::-1", "..., ::2", "..., :1", "..., None", "None, 1:"])
    if n:
        add("complex slice", f"np.real(({_Z} ** 2)[{part}] * (1.0 - 0.5j))",
            in_torch(f"np.real(({_Z} ** 2)[{part}] * (1.0 - 0.5j))")
            if "-1" not in part else None)  # fmt: skip
        add("complex transposed", f"np.imag(np.transpose({_Z}) * (0.5 + 1j))")
    if n >= 2:
        p = rng.sample(range(n), n)
        if of(shape):
            add("fft2", "np.real(np.fft.fft2(np.sin({0})) * (0.2 - 0.1j))",
                "T.real(T.fft.fft2(T.sin({0})) * (0.2 - 0.1j))")  # fmt: skip
        add("permuted", f"np.tanh(np.transpose({{0}}, {p}))", f"T.tanh(T.permute({{0}}, {p}))")
        k = rng.randrange(-1, 2)
        add("tril", f"np.tril({{0}}, {k})", f"T.tril({{0}}, {k})")
        add("triu", f"np.triu({{0}}, {k})", f"T.triu({{0}}, {k})")
        add("rot90", f"np.rot90({{0}}, {k})", f"T.rot90({{0}}, {k})")
        add("trace", "np.trace({0})", "T.trace({0})" if n == 2 else None)
        add("moveaxis", "np.cos(np.moveaxis({0}, 0, -1))", "T.cos(T.movedim({0}, 0, -1))")
    if n == 1:
        add("diag", "np.diag({0})", "T.diag({0})")
        add("vander", "np.vander(np.sin({0}), 3)", "T.vander(T.sin({0}), 3)")
        add(
            "convolve",
            "np.convolve({0}, np.array([0.5, -1.0], dtype={0}.dtype))"
            if of(shape)
            else "np.copy({0})",
        )
        add("window", "np.lib.stride_tricks.sliding_window_view({0}, 2) * 1.0"
            if shape[0] > 1 else "np.copy({0})")  # fmt: skip
    if n and of(shape):
        i = [rng.randrange(-s, s) for s in (shape[0],) * 4]
        add("index array", f"{{0}}[np.array({i})]", f"{{0}}[T.tensor({i})]")
        add("index list", f"{{0}}[{i[:2]}]", f"{{0}}[{i[:2]}]")
        add(
            "index of two",
            f"{{0}}[np.array({[i[:2], i[2:]]})]",
            f"{{0}}[T.tensor({[i[:2], i[2:]]})]",
        )
        m = [rng.random() < 0.6 for _ in range(shape[0])]
        add("mask", f"{{0}}[np.array({m})]", f"{{0}}[T.tensor({m})]")
        if n >= 2:
            j = [rng.randrange(-shape[-1], shape[-1]) for _ in range(4)]
            add("two index arrays", f"{{0}}[np.array({i}), ..., np.array({j})]")
            add("index last", f"{{0}}[..., np.array({j})]", f"{{0}}[..., T.tensor({j})]")
        if n == 2:  # where more dimensions are left, NumPy and PyTorch put them in different places
            add("number and array", f"{{0}}[{i[0]}, np.array({j[:3]})]")
            add("array, None", f"{{0}}[np.array({i[:3]}), None]", f"{{0}}[T.tensor({i[:3]}), None]")
        g = [[rng.randrange(s) for s in shape] for _ in range(3)]
        picked = tuple(np.array(g).T.tolist())
        add("points", f"{{0}}[{', '.join(f'np.array({q})' for q in picked)}]",
            f"{{0}}[{', '.join(f'T.tensor({q})' for q in picked)}]")  # fmt: skip
        add(
            "take flat", f"np.take({{0}}, np.array({[rng.randrange(of(shape)) for _ in range(3)]}))"
        )
        add("compress", f"np.compress(np.array({m}), {{0}}, axis=0)")
        add("choose", "np.choose(np.array([0, 1, 0]), [{0}.ravel()[:1], np.cos({0}).ravel()[-1:]])")
    return rng.choice(some)


def joined(rng, a, b):
    """Two operands made one: joins, products of matrices, systems of equations."""
    some = []
    add = lambda name, text, torch=None, kink="": some.append(Form(name, text, torch, kink))
    if a and b and len(a) == len(b):
        for d in range(len(a)):
            if a[:d] + a[d + 1 :] == b[:d] + b[d + 1 :]:
                add("concatenate", f"np.concatenate([{{0}}, {{1}}], axis={d})",
                    f"T.cat([{{0}}, {{1}}], {d})")  # fmt: skip
    if a == b:
        add("stack", "np.stack([{0}, {1}, {0}], axis=-1)", "T.stack([{0}, {1}, {0}], -1)")
        add("hstack", "np.hstack([{0}, {1}])", "T.hstack([{0}, {1}])")
        add("vstack", "np.vstack([{0}, {1}])", "T.vstack([{0}, {1}])")
        add("dstack", "np.dstack([{0}, {1}])", "T.dstack([{0}, {1}])")
        add("inner of tanh", "np.vdot(np.tanh({0}), {1})")
        add("select", "np.select([{0} > 5.0, {1} < 9.0], [{0}, np.sin({1})], {0})")
        if len(a) == 1:
            add("column_stack", "np.column_stack([{0}, {1}])", "T.column_stack([{0}, {1}])")
            add("dot", "np.dot({0}, {1})", "T.dot({0}, {1})")
            add("vecdot", "np.vecdot({0}, {1})")
            if a[0] >= 3:
                add("interp", "np.interp(np.tanh({0}), np.array([-2.0, 0.3, 2.0]), {1}[:3])",
                    kink="np.tanh({0}) - 0.3")  # fmt: skip
    if len(a) == len(b) == 1:
        add("outer", "np.outer({0}, {1})", "T.outer({0}, {1})")
        add("einsum outer", "np.einsum('i,j->ji', {0}, {1})", "T.einsum('i,j->ji', {0}, {1})")
        if of(a) and of(b):
            add("kron", "np.kron({0}, {1})", "T.kron({0}, {1})")
            add("convolve", "np.convolve({0}, {1})")
    if a and b and 1 <= len(a) <= 3 and 1 <= len(b) <= 2 and a[-1] == b[0]:
        add("matmul", "np.tanh({0} @ {1})", "T.tanh({0} @ {1})")
        add("np.matmul", "np.tanh(np.matmul({0}, {1}))", "T.tanh(T.matmul({0}, {1}))")
        add("dot", "np.tanh(np.dot({0}, {1}))")
        add("tensordot", "np.tanh(np.tensordot({0}, {1}, 1))")
        add(
            "complex matmul",
            f"np.tanh(np.real({_Z} @ {_W}))",
            in_torch(f"np.tanh(np.real({_Z} @ {_W}))"),
        )
    if len(a) == len(b) == 2 and a[1] == b[1]:
        add("einsum", "np.tanh(np.einsum('ij,kj->ik', {0}, {1}))",
            "T.tanh(T.einsum('ij,kj->ik', {0}, {1}))")  # fmt: skip
        add("inner", "np.tanh(np.inner({0}, {1}))")
        add("transposed product", "np.tanh({0} @ {1}.T)", "T.tanh({0} @ {1}.T)")
    if len(a) == 2 and a[0] == a[1] and of(a):
        well = f"({{0}} @ {{0}}.T + 2.0 * np.eye({a[0]}, dtype={{0}}.dtype))"
        also = well.replace("np.", "T.")
        add("det", f"np.tanh(np.linalg.det({well}) * 0.1)", f"T.tanh(T.linalg.det({also}) * 0.1)")
        add("slogdet", f"np.linalg.slogdet({well})[1]", f"T.linalg.slogdet({also})[1]")
        add("complex inv", f"np.real(np.linalg.inv({well} + 1j * np.tanh({{0}})))")
        add("inv", f"np.linalg.inv({well})", f"T.linalg.inv({also})")
        add("eigvalsh", f"np.sum(np.linalg.eigvalsh({well}) ** 2) * 0.01",
            f"T.sum(T.linalg.eigvalsh({also}) ** 2) * 0.01")  # fmt: skip
        add("cholesky", f"np.linalg.cholesky({well})", f"T.linalg.cholesky({also})")
        add("matrix_power", "np.linalg.matrix_power(np.tanh({0}), 3)",
            "T.linalg.matrix_power(T.tanh({0}), 3)")  # fmt: skip
        if b and a[0] == b[0] and len(b) <= 2:
            add("solve", f"np.linalg.solve({well}, {{1}})", f"T.linalg.solve({also}, {{1}})")
    return rng.choice(some) if some else None


def viewed(rng, shape):
    """Text of a view, the same in both libraries where that has one; and for PyTorch."""
    n, some = len(shape), [("{0}[...]", "{0}[...]"), ("{0}[None]", "{0}[None]")]
    if n:
        d = rng.randrange(n)
        before = ":, " * d
        a, b = sorted((rng.randint(0, shape[d]), rng.randint(0, shape[d])))
        some += [(f"{{0}}[{before}{s}]",) * 2 for s in (f"{a}:{b}", "::2", "1:", f"{a}::3", ":-1")]
        some.append((f"{{0}}[{before}::-1]", None))
        some.append((f"{{0}}[{before}None]",) * 2)
        some.append((f"{{0}}[..., {a}:, None]",) * 2 if d == n - 1 else ("{0}.T", None))
        if shape[d]:
            k = rng.randrange(-shape[d], shape[d])
            some += [(f"{{0}}[{before}{k}]",) * 2] * 2
        if n >= 2:
            some += [("np.swapaxes({0}, 0, -1)", "T.swapaxes({0}, 0, -1)")]
            some += [("np.transpose({0})", f"T.permute({{0}}, {tuple(range(n))[::-1]})")]
            some += [(f"np.moveaxis({{0}}, {d}, 0)", f"T.movedim({{0}}, {d}, 0)")]
            if shape[0] and shape[-1]:
                some.append((f"{{0}}[{shape[0] - 1}, ..., 0]",) * 2)
        if 1 in shape:
            e = shape.index(1)
            some.append((f"np.squeeze({{0}}, {e})", f"T.squeeze({{0}}, {e})"))
        some.append((f"np.expand_dims({{0}}, {d})", f"T.unsqueeze({{0}}, {d})"))
    return rng.choice(some)


# Smooth functions of `d` with their derivative, for bodies of control flow and of transforms.
BODIES = [
    ("np.sin(d)", "np.cos(d)"),
    ("np.tanh(d) * d", "np.tanh(d) + d * (1.0 - np.tanh(d) ** 2)"),
    ("0.5 * d + np.cos(d)", "0.5 - np.sin(d)"),
    ("np.exp(np.sin(d))", "np.cos(d) * np.exp(np.sin(d))"),
    ("d * d * 0.3", "0.6 * d"),
    ("d / (1.0 + d ** 2)", "(1.0 - d ** 2) / (1.0 + d ** 2) ** 2"),
]


def controlled(rng, a, b):
    """Control flow, rules of the user's own and transforms inside of the program."""
    (f, df), (g, _) = rng.choice(BODIES), rng.choice(BODIES)
    some = []
    add = lambda name, text, *more: some.append(Form(name, text, None, *more))
    add("cond", f"C.cond(np.sum({{0}}) > 0.1, lambda d: {f}, lambda d: {g}, {{0}})",
        "np.sum({0}) - 0.1")  # fmt: skip
    add("if", f"(lambda d: {f} if np.sum(d) > 0.1 else {g})({{0}})", "np.sum({0}) - 0.1")
    if of(a):
        add("if of an element", f"(lambda d: {f} if np.ravel(d)[-1] > 0.1 else {g})({{0}})",
            "np.ravel({0})[-1] - 0.1")  # fmt: skip
    add("fori_loop", f"C.fori_loop(0, {rng.randrange(4)}, lambda i, d: {f} + 0.1 * i, {{0}} * 1.0)")
    add("while_loop", "C.while_loop(lambda c: c[0] < 3, "
        f"lambda c: (c[0] + 1, (lambda d: {f})(c[1])), (0, {{0}} * 1.0))[1]")  # fmt: skip
    add("stop_gradient", "C.stop_gradient({0}) * {0}", "", False)
    add("checkpoint", f"C.checkpoint(lambda d: {f})({{0}})")
    add("custom_vjp", f"C.custom_vjp(lambda d: {f}, lambda d: {df})({{0}})")
    add("custom_jvp", f"C.custom_jvp(lambda d: {f}, lambda d: {df})({{0}})")
    add("slope", f"C.slope(lambda d: {f}, lambda d: {df})({{0}})")
    add("pushed", f"C.pushed(lambda d: {f}, lambda d: {df}, {{0}}, np.sin({{0}}))")
    if a == b:
        arms = f"lambda d, e: {f} * e, lambda d, e: d - e"
        add("cond of two", f"C.cond(np.sum({{1}}) > 0.0, {arms}, {{0}}, {{1}})", "np.sum({1})")
        body = f"lambda i, d: np.tanh({f} * {{1}})"
        add("fori_loop of two", f"C.fori_loop(0, 3, {body}, {{0}} * 1.0)")
    if a and 0 < a[0] <= LOOPS:
        add("scan", f"C.scan(lambda d, r: ({f} + 0.2 * np.sum(r), np.tanh(d * np.sum(r))), "
            f"{{1}} * 1.0, {{0}}){rng.choice(['[0]', '[1]'])}")  # fmt: skip
        body = f"lambda d, r: ({f} * 0.5 + np.sum(r), r * np.sum(np.tanh(d)))"
        add("scan reversed", f"C.scan({body}, "
            f"{{1}} * 1.0, {{0}}, reverse=True){rng.choice(['[0]', '[1]'])}")  # fmt: skip
        add("vmap", f"C.vmap(lambda d: {f} * np.sum(d))({{0}})")
        add("vmap of slope", f"C.vmap(C.slope(lambda d: {f}, lambda d: {df}))({{0}})")
    return rng.choice(some)
