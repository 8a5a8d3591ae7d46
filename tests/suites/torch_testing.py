"""What PyTorch's tests take from `torch.testing`: comparisons, parameters, one device.

A message is each library's own: `assertRaisesRegex` and `assertWarnsRegex` hold the type alone.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import inspect
import itertools
import sys
import unittest
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

import tapegrad
from tapegrad import Tensor

IS_WINDOWS, IS_MACOS = sys.platform == "win32", sys.platform == "darwin"
IS_FBCODE = TEST_CUDA = TEST_WITH_TORCHDYNAMO = IS_CI = IS_S390X = False

TOLERANCES = {"float16": (1e-3, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7)}
TOLERANCES |= {"complex64": TOLERANCES["float32"], "complex128": TOLERANCES["float64"]}


# -- comparisons -------------------------------------------------------------------------------


def _array(value: Any) -> np.ndarray:
    return value.detach().numpy() if isinstance(value, Tensor) else np.asarray(value)


def _close(actual: Any, expected: Any, rtol: Any, atol: Any, equal_nan: bool, dtypes: bool) -> str:
    """Why two Tensors, arrays or numbers differ; nothing if they agree."""
    a, b = _array(actual), _array(expected)
    tensors = isinstance(actual, Tensor) and isinstance(expected, Tensor)
    if a.shape != b.shape:
        return f"shapes {a.shape} and {b.shape}"
    if tensors and dtypes and a.dtype != b.dtype:
        return f"dtypes {a.dtype} and {b.dtype}"
    if rtol is None:
        kinds = [x for x in (a.dtype, b.dtype) if x.name in TOLERANCES]
        pairs = [TOLERANCES[kind.name] for kind in kinds] or [(0.0, 0.0)]
        rtol, atol = max(r for r, _ in pairs), max(t for _, t in pairs)
    if a.dtype == object or b.dtype == object or (a.dtype.kind in "iub" and b.dtype.kind in "iub"):
        return "" if np.array_equal(a, b) else f"values {a!r} and {b!r}"
    with np.errstate(all="ignore"):
        same = np.isclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)
    return "" if same.all() else f"values {a!r} and {b!r}"


def compare(
    actual: Any, expected: Any, *, rtol: Any = None, atol: Any = None, equal_nan: bool = True,
    exact_dtype: bool = True,
) -> str:  # fmt: skip
    """Why two things differ; nothing if they agree."""
    again = functools.partial(
        compare, rtol=rtol, atol=atol, equal_nan=equal_nan, exact_dtype=exact_dtype
    )
    if isinstance(actual, str) or isinstance(expected, str):
        return "" if actual == expected else f"{actual!r} and {expected!r}"
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        if actual.keys() != expected.keys():
            return f"keys {list(actual)} and {list(expected)}"
        return next(filter(None, (again(actual[k], expected[k]) for k in expected)), "")
    if isinstance(actual, Sequence) and isinstance(expected, Sequence):
        if len(actual) != len(expected):
            return f"lengths {len(actual)} and {len(expected)}"
        return next(filter(None, map(again, actual, expected)), "")
    numeric = (Tensor, np.ndarray, np.generic, int, float, complex)
    if isinstance(actual, numeric) and isinstance(expected, numeric):
        mixed = isinstance(actual, Tensor) != isinstance(expected, Tensor)
        loose = mixed and (_array(actual).ndim == 0) != (_array(expected).ndim == 0)
        if loose:
            return f"{actual!r} and {expected!r}"
        return _close(actual, expected, rtol, atol, equal_nan, exact_dtype)
    if isinstance(expected, Tensor) and isinstance(actual, Sequence):
        return _close(np.asarray(actual), expected, rtol, atol, equal_nan, exact_dtype)
    if isinstance(actual, Tensor) and isinstance(expected, Sequence):
        return _close(actual, np.asarray(expected), rtol, atol, equal_nan, exact_dtype)
    return "" if actual == expected else f"{actual!r} and {expected!r}"


def assert_close(actual: Any, expected: Any, *, msg: Any = None, **kwargs: Any) -> None:
    """As `torch.testing.assert_close`."""
    for unused in ("check_device", "check_stride", "check_layout", "allow_subclasses"):
        kwargs.pop(unused, None)
    kwargs["exact_dtype"] = kwargs.pop("check_dtype", True)
    difference = compare(actual, expected, **({"equal_nan": False} | kwargs))
    assert not difference, difference


class TestCase(unittest.TestCase):
    """The part of PyTorch's own TestCase that its tests of autograd use."""

    precision = 0.0
    rel_tol = 0.0
    maxDiff = None

    def assertEqual(  # type: ignore[override]
        self, first: Any, second: Any, msg: Any = None, *, atol: Any = None, rtol: Any = None,
        equal_nan: bool = True, exact_dtype: bool = True, exact_device: bool = False,
        exact_layout: bool = False, exact_stride: bool = False, exact_is_coalesced: bool = False,
    ) -> None:  # fmt: skip
        if atol is not None and rtol is None:
            rtol = 0.0
        difference = compare(
            first, second, atol=atol, rtol=rtol, equal_nan=equal_nan, exact_dtype=exact_dtype
        )
        if not difference and exact_stride:
            difference = "" if first.stride() == second.stride() else "strides"
        if difference:
            self.fail(f"not equal: {difference}")

    def assertNotEqual(self, first: Any, second: Any, msg: Any = None, **kwargs: Any) -> None:  # type: ignore[override]
        with self.assertRaises(AssertionError):
            self.assertEqual(first, second, msg, **kwargs)

    def assertEqualIgnoreType(self, *args: Any, **kwargs: Any) -> None:
        self.assertEqual(*args, exact_dtype=False, **kwargs)

    def assertEqualTypeString(self, x: Any, y: Any) -> None:
        self.assertEqual(x.dtype, y.dtype)

    def assertRaisesRegex(self, expected: Any, regex: Any, *args: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        return self.assertRaises(expected, *args, **kwargs)

    def assertWarnsRegex(self, expected: Any, regex: Any, *args: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        return self.assertWarns(expected, *args, **kwargs)

    def assertWarnsOnceRegex(self, expected: Any, regex: Any = "") -> Any:
        return self.assertWarns(expected)

    def assertNotWarn(self, function: Callable[..., Any], msg: str = "") -> None:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            function()
        self.assertEqual(len(caught), 0, msg)

    def assertExpectedInline(self, actual: Any, expected: str, skip: int = 0) -> None:
        self.assertEqual(str(actual), expected)

    def compare_with_numpy(self, torch_fn: Any, np_fn: Any, x: Any, **kwargs: Any) -> None:
        kwargs.pop("device", None), kwargs.pop("dtype", None)
        given = tapegrad.tensor(x) if not isinstance(x, Tensor) else x
        self.assertEqual(np_fn(_array(given)), torch_fn(given), exact_dtype=False)


# -- data --------------------------------------------------------------------------------------


def make_tensor(
    *shape: Any, dtype: Any, device: Any = "cpu", low: Any = None, high: Any = None,
    requires_grad: bool = False, noncontiguous: bool = False, exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """As `torch.testing.make_tensor`."""
    if len(shape) == 1 and not isinstance(shape[0], int):
        (shape,) = shape
    kind = tapegrad.zeros((), dtype=dtype).numpy().dtype
    if noncontiguous and shape:
        shape = (*shape[:-1], 2 * shape[-1])
    if kind.kind == "b":
        array = np.random.randint(0, 2, shape).astype(kind)
    elif kind.kind in "iu":
        low, high = (0 if kind.kind == "u" else -9) if low is None else low, high or 10
        array = np.random.randint(int(low), int(high), shape).astype(kind)
    else:
        low, high = -9 if low is None else low, 9 if high is None else high
        array = np.random.uniform(low, high, shape)
        if kind.kind == "c":
            array = array + 1j * np.random.uniform(low, high, shape)
        array = np.asarray(array, kind)
    if exclude_zero:
        array = np.where(array == 0, np.ones((), kind), array)
    if noncontiguous and shape:
        array = array[..., ::2]
    made = tapegrad.from_numpy(np.asarray(array))
    return made.requires_grad_() if requires_grad else made


def mask_not_all_zeros(shape: Any) -> Tensor:
    """A random mask that holds somewhere."""
    mask = np.random.rand(*shape) < 0.5
    mask.flat[0] |= not mask.any()
    return tapegrad.from_numpy(mask)


# -- parameters --------------------------------------------------------------------------------


class subtest:
    """One choice of arguments, with a name and decorators."""

    def __init__(self, arg_values: Any, name: Any = None, decorators: Any = None) -> None:
        self.arg_values, self.name, self.decorators = arg_values, name, decorators or []


def _short(value: Any) -> str:
    if isinstance(value, (bool, int, str)) or value is None:
        return str(value)
    return str(getattr(value, "__name__", value)).removeprefix("tapegrad.").replace(" ", "")


class parametrize:
    """Run a test once for every choice of arguments."""

    def __init__(self, arg_str: str, arg_values: Iterable[Any], name_fn: Any = None) -> None:
        self.names = [name.strip() for name in arg_str.split(",")]
        self.values, self.name_fn = list(arg_values), name_fn

    def choices(self) -> Iterable[tuple[str, dict[str, Any], list[Any]]]:
        for index, value in enumerate(self.values):
            name, decorators = None, []
            if isinstance(value, subtest):
                name, decorators, value = value.name, value.decorators, value.arg_values
            args = (value,) if len(self.names) == 1 else tuple(value)
            if name is None and self.name_fn is not None:
                name = self.name_fn(*args)
            if name is None:
                plain = all(isinstance(a, (bool, int, str, float)) or a is None or
                            hasattr(a, "__name__") or "dtype" in type(a).__name__
                            for a in args)  # fmt: skip
                pairs = zip(self.names, args, strict=True)
                name = "_".join(f"{n}_{_short(a)}" for n, a in pairs) if plain else (
                    f"{'_'.join(self.names)}{index}"
                )  # fmt: skip
            yield name, dict(zip(self.names, args, strict=True)), list(decorators)

    def __call__(self, function: Any) -> Any:
        function.parameters = [*getattr(function, "parameters", ()), self]
        return function


class ops:
    """Tests over PyTorch's database of operators: each stands as one test, not applicable."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __call__(self, function: Any) -> Any:
        return unittest.skip("walks PyTorch's own database of operators")(function)


def dtypes(*given: Any) -> Any:
    """Run a test once for every dtype."""

    def decorated(function: Any) -> Any:
        function.dtypes = vars(function).get("dtypes_here") or given
        return function

    return decorated


def dtypesIfCPU(*given: Any) -> Any:
    """The dtypes on this device."""

    def decorated(function: Any) -> Any:
        function.dtypes = function.dtypes_here = given
        return function

    return decorated


def _ignored(*args: Any, **kwargs: Any) -> Any:
    """A decorator about other devices or compilers, bare or called."""
    if len(args) == 1 and not kwargs and (callable(args[0]) or isinstance(args[0], type)):
        return args[0]
    return lambda function: function


dtypesIfCUDA = dtypesIfMPS = toleranceOverride = skipIfTorchDynamo = _ignored
xfailIfTorchDynamo = markDynamoStrictTest = unMarkDynamoStrictTest = skipIfMPS = _ignored
skipIfNoLapack = skipIfRocm = skipIfWindows = slowTest = serialTest = xfailIfS390X = _ignored
skipMeta = skipXLA = skipLazy = onlyCPU = onlyNativeDeviceTypes = onlyNativeDeviceTypesAnd = (
    _ignored
)


class OpDTypes:
    """Which dtypes of an operator are asked for."""

    none = any_one = supported = None


def tol(atol: float, rtol: float) -> tuple[float, float]:
    """A tolerance."""
    return atol, rtol


def onlyCUDA(function: Any) -> Any:
    """Not for this device."""
    return unittest.skip("needs CUDA")(function)


def deviceCountAtLeast(count: int) -> Any:
    """Not for this device."""
    return onlyCUDA


def _instances(cls: type, name: str, test: Any, device: bool) -> Iterable[tuple[str, Any]]:
    parts = [list(p.choices()) for p in reversed(vars(test).get("parameters", ()))]
    kinds = vars(test).get("dtypes", (None,)) if device else (None,)
    named = list(inspect.signature(test).parameters) if inspect.isfunction(test) else []
    lead = ["cpu"] if device and named[1:2] in (["device"], ["_"]) else []
    for chosen in itertools.product(*parts):
        for kind in kinds:
            full = "_".join([name, *(label for label, _, _ in chosen)])
            given: dict[str, Any] = {}
            for _, args, _ in chosen:
                given |= args
            if device:
                full += "_cpu"
            if kind is not None:
                full += "_" + "_".join(map(_short, kind if isinstance(kind, tuple) else (kind,)))
                given["dtypes" if isinstance(kind, tuple) else "dtype"] = kind

            def one(self: Any, given: dict[str, Any] = given, test: Any = test) -> Any:
                for value in given.values():
                    if hasattr(type(value), "_end"):  # a dtype, say, that is outside
                        value._end()
                return test(self, *lead, **given)

            one.__dict__.update({k: v for k, v in vars(test).items() if k.startswith("__unittest")})
            for decorate in itertools.chain.from_iterable(d for _, _, d in chosen):
                one = decorate(one)
            yield full, one


def _tests(cls: type) -> list[tuple[str, Any]]:
    found = [(name, getattr(cls, name)) for name in dir(cls) if name.startswith("test")]
    return [(name, test) for name, test in found if callable(test)]


def instantiate_parametrized_tests(cls: Any) -> Any:
    """Replace each test that has parameters by its instances."""
    for name, test in _tests(cls):
        if vars(test).get("parameters"):
            for full, one in _instances(cls, name, test, device=False):
                setattr(cls, full, one)
            setattr(cls, name, None)
    return cls


def instantiate_device_type_tests(cls: Any, scope: dict[str, Any], **kwargs: Any) -> None:
    """Put the class for the CPU in place of the one for all devices."""
    body: dict[str, Any] = {"device_type": "cpu", "__module__": cls.__module__}
    for name, test in _tests(cls):
        body[name] = None
        for full, one in _instances(cls, name, test, device=True):
            body[full] = one
    scope[cls.__name__ + "CPU"] = type(cls.__name__ + "CPU", (cls,), body)
    del scope[cls.__name__]


# -- odds and ends -----------------------------------------------------------------------------


def suppress_warnings(function: Any) -> Any:
    """Run without warnings."""

    @functools.wraps(function)
    def quiet(*args: Any, **kwargs: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(*args, **kwargs)

    return quiet


@contextlib.contextmanager
def disable_gc() -> Any:
    """Without the garbage collector."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@contextlib.contextmanager
def set_warn_always_context(new: bool) -> Any:
    """Warnings of this library come each time."""
    with warnings.catch_warnings():
        warnings.simplefilter("always" if new else "default")
        yield
