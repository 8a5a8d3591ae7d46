"""`import torch` as tapegrad: the modules that PyTorch's own test files import.

What tapegrad has is tapegrad's. What the list declares to be outside (CUDA, sparse layouts, layers,
...) is an `Outside`: it can be imported and passed around, and the test that uses it ends as not
applicable, with the list's reason. Any other name is missing, and the test fails.
"""

from __future__ import annotations

import functools
import importlib
import importlib.abc
import importlib.machinery
import sys
import types
import unittest
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from suites import torch_testing

import tapegrad
import tapegrad.func
from tapegrad.tape.tape import current
from tapegrad.transforms.pytree import flatten, unflatten

HERE = Path(__file__).parent


class NotApplicable(unittest.SkipTest):
    """The test needs something that the list declares to be outside."""


class Outside:
    """A name of PyTorch's that is outside; using it ends the test as not applicable."""

    loading = True  # while a file is imported nothing ends

    def __init__(self, name: str, reason: str) -> None:
        self._name, self._reason = name, reason
        self.__name__ = name.rpartition(".")[2]

    def _end(self, *args: Any, **kwargs: Any) -> Any:
        if Outside.loading:
            return Outside(self._name, self._reason)
        raise NotApplicable(f"{self._name}: {self._reason}")

    __call__ = __enter__ = __getitem__ = __add__ = __or__ = __and__ = _end

    def __exit__(self, *exception: object) -> None:
        pass

    def __mro_entries__(self, bases: Any) -> tuple[type, ...]:
        self._end()
        return (Base,)

    def __instancecheck__(self, instance: Any) -> bool:
        return False

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Outside(f"{self._name}.{name}", self._reason)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("_name", "_reason", "__name__"):
            object.__setattr__(self, name, value)
        else:
            self._end()

    def __iter__(self) -> Any:
        self._end()
        return iter(())

    def __repr__(self) -> str:
        return self._name.removeprefix("torch.")


class Base:
    """In the place of a base class that is outside, while a file is imported."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Outside(name, "it belongs to a class of PyTorch's internals")


class Missing(Outside):
    """A name that a file asks for while it is imported, and that neither is ours nor outside."""

    def _end(self, *args: Any, **kwargs: Any) -> Any:
        if Outside.loading:
            return Missing(self._name, "")
        raise AttributeError(f"`{self._name}` is missing")

    __call__ = __enter__ = __getitem__ = __add__ = __or__ = __and__ = _end


class Face(types.ModuleType):
    """A module under PyTorch's name: some names of its own, what is outside, and one of ours."""

    __path__: ClassVar[list[str]] = []

    def __init__(self, name: str, ours: Any, outside: dict[str, str], **own: Any) -> None:
        super().__init__(name)
        self.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=True)
        self.__dict__.update(own)
        self.__dict__["_ours"], self.__dict__["_outside"] = ours, outside

    def __getattr__(self, name: str) -> Any:
        full = f"{self.__name__}.{name}"
        if full in self._outside:
            return Outside(full, self._outside[full])
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return getattr(self._ours, name)
        except AttributeError:
            pass
        reason = outside_reason(full, self._outside)
        if not reason and name.startswith("_"):
            reason = "a private name of PyTorch's"
        if reason:
            return Outside(full, reason)
        if Outside.loading:
            return Missing(full, "")
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")


def outside_reason(full: str, outside: dict[str, str]) -> str:
    """Why a name is outside: the reason of itself, or of a module that it is in."""
    while full:
        if full in outside:
            return outside[full]
        if f"{full}.*" in outside:
            return outside[f"{full}.*"]
        full = full.rpartition(".")[0]
    return ""


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Modules that have no face of their own: everything in them is outside."""

    def __init__(self, outside: dict[str, str]) -> None:
        self.outside = outside

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name.partition(".")[0] in ("torch", "functorch", "functorch_additional_op_db"):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: Any) -> Any:
        name = spec.name
        reason = outside_reason(name, self.outside)
        if not reason and "._" in name:
            reason = "a private module of PyTorch's"
        if not reason:
            raise ImportError(f"no face for the module {name}: the list does not know it")
        return Face(name, None, {f"{name}.*": reason})

    def exec_module(self, module: Any) -> None:
        pass


class WeakTensorRef:
    """A weak reference under the name that PyTorch's tests use."""

    def __init__(self, tensor: Any) -> None:
        self._held = weakref.ref(tensor)

    def expired(self) -> bool:
        """Whether the Tensor is gone."""
        return self._held() is None


def hooks_are_enabled() -> bool:
    """Whether hooks on saved values may be entered."""
    try:
        with tapegrad.autograd.graph.save_on_cpu():
            return True
    except RuntimeError:
        return False


def delayed_error(message: str, count: int) -> Any:
    """The function that returns its argument, and whose derivative raises."""

    class Error(tapegrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            raise RuntimeError(message)

    return Error.apply


def _tree_map(function: Callable[..., Any], tree: Any) -> Any:
    return tapegrad.tree_map(function, tree)


class _Nothing:
    """In the place of None, which is a leaf of PyTorch's pytrees."""


def _tree_flatten(tree: Any) -> tuple[list[Any], Any]:
    leaves, spec = flatten(_without_none(tree))
    return [None if leaf is _Nothing else leaf for leaf in leaves], spec


def _without_none(tree: Any) -> Any:
    if type(tree) in (list, tuple):
        return type(tree)(map(_without_none, tree))
    if type(tree) is dict:
        return {key: _without_none(value) for key, value in tree.items()}
    return _Nothing if tree is None else tree


def _freeze(module: Any) -> Any:
    class frozen:
        def __enter__(self) -> None:
            self.state = module.get_rng_state()

        def __exit__(self, *exception: object) -> None:
            module.set_rng_state(self.state)

    return frozen


def install(outside: dict[str, str]) -> None:
    """Put the faces under PyTorch's names."""

    def face(name: str, ours: Any, **own: Any) -> Face:
        module = sys.modules[name] = Face(name, ours, outside, **own)
        parent, _, last = name.rpartition(".")
        if parent in sys.modules:
            sys.modules[parent].__dict__[last] = module
        return module

    sys.meta_path.insert(0, Finder(outside))
    setattr(tapegrad.Tensor, "is_nested", False)  # noqa: B010 - what a helper of the tests asks

    class Levels(Face):
        """`_current_level`, which tests read to leave what they have entered."""

        @property
        def _current_level(self) -> int:
            return 0 if any(at.members is not None for at in current.tape.levels) else -1

    torch = face("torch", tapegrad, __version__="2.6.0")
    ag = tapegrad.autograd
    face("torch.autograd", ag)
    for part in ("forward_ad", "functional", "function", "graph", "grad_mode"):
        face(f"torch.autograd.{part}", importlib.import_module(f"tapegrad.autograd.{part}"))
    sys.modules["torch.autograd.forward_ad"].__class__ = Levels
    face("torch.autograd.gradcheck", importlib.import_module("tapegrad.autograd.gradcheck"))
    del sys.modules["torch.autograd"].__dict__["gradcheck"]  # the function of that name
    face("torch.nn", tapegrad.nn)
    face("torch.nn.functional", tapegrad.nn.functional)
    face("torch.func", tapegrad.func)
    face("functorch", tapegrad.func)
    face("torch.linalg", tapegrad.linalg)
    face("torch.special", tapegrad.special)
    face("torch.cuda", tapegrad.cuda)
    face(  # whether PyTorch warns where `vmap` is slow, which its tests switch on
        "torch._C",
        None,
        _debug_only_are_vmap_fallback_warnings_enabled=lambda: False,
        _debug_only_display_vmap_fallback_warnings=lambda on: None,
        is_grad_enabled=tapegrad.is_grad_enabled,
        _WeakTensorRef=WeakTensorRef,
    )
    face("torch._C._autograd", None, _saved_tensors_hooks_is_enabled=hooks_are_enabled)
    face("torch._C._functions", None, DelayedError=delayed_error)
    face("torch.utils", None)
    face(
        "torch.utils._pytree",
        None,
        tree_flatten=_tree_flatten,
        tree_leaves=lambda tree: _tree_flatten(tree)[0],
        tree_unflatten=lambda leaves, spec: unflatten(spec, leaves),
        tree_map=_tree_map,
    )
    tt = torch_testing
    face("torch.testing", None, make_tensor=tt.make_tensor, assert_close=tt.assert_close)
    face("torch.testing._internal", None)
    face(
        "torch.testing._internal.common_utils",
        tt,
        gradcheck=ag.gradcheck,
        gradgradcheck=ag.gradgradcheck,
        freeze_rng_state=_freeze(tapegrad),
        run_tests=lambda *args, **kwargs: None,
        numpy_to_torch_dtype_dict={
            np.dtype(name).type: getattr(tapegrad, name)
            for name in (
                "bool uint8 int8 int16 int32 int64 float16 float32 float64 complex64 complex128"
            ).split()
        },
    )
    face("torch.testing._internal.common_device_type", tt)
    face("torch.testing._internal.common_dtype", None, **dtype_groups(torch))
    nothing: dict[str, Any] = {"TEST_CUDA": False, "TEST_MULTIGPU": False, "SM70OrLater": False}
    nothing |= {
        f"PLATFORM_SUPPORTS_{kind}_ATTENTION": False
        for kind in ("CUDNN", "FLASH", "MEM_EFF", "FUSED")
    }
    nothing["_get_torch_cuda_version"] = lambda: (0, 0)
    nothing["tf32_on_and_off"] = lambda *args: lambda test: test
    nothing["with_tf32_off"] = lambda test: test
    face("torch.testing._internal.common_cuda", None, **nothing)
    for name in ("common_methods_invocations.op_db", "common_modules.module_db",
                 "autograd_function_db.autograd_function_db",
                 "custom_op_db.custom_op_db"):  # fmt: skip
        module, _, attribute = name.rpartition(".")
        face(f"torch.testing._internal.{module}", None, **{attribute: []})
    sys.modules["torch.testing._internal.common_methods_invocations"].__dict__[
        "mask_not_all_zeros"
    ] = tt.mask_not_all_zeros
    face("functorch_additional_op_db", None, additional_op_db=[])


def dtype_groups(torch: Any) -> dict[str, Any]:
    """The functions that name groups of dtypes."""
    integral = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
    floating = (torch.float32, torch.float64)
    complexes = (torch.complex64, torch.complex128)
    groups = {
        "floating_types": floating,
        "complex_types": complexes,
        "integral_types": integral,
        "all_types": floating + integral,
        "floating_and_complex_types": floating + complexes,
        "all_types_and_complex": floating + integral + complexes,
    }
    found: dict[str, Any] = {}
    for name, group in groups.items():
        found[name] = functools.partial(lambda group: group, group)
        found[f"{name}_and"] = functools.partial(lambda group, *more: (*group, *more), group)
    found["get_all_fp_dtypes"] = lambda *args, **kwargs: [*floating, torch.float16]
    return found
