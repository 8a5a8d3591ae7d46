"""`tapegrad.jit`: a function, and the programs that were compiled for its calls."""

from __future__ import annotations

import ctypes
import functools
import threading
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tapegrad.autograd.function import Function
from tapegrad.autograd.grad_mode import recording
from tapegrad.compiler.graph import Graph
from tapegrad.compiler.link import Linked, failure
from tapegrad.compiler.lower import Module
from tapegrad.compiler.passes import optimised
from tapegrad.compiler.program import Program
from tapegrad.compiler.trace import Trace, Traced, Untraceable
from tapegrad.lift.core import Lifted
from tapegrad.ops.core import Spec
from tapegrad.tape import current
from tapegrad.tensor import Tensor, wrap
from tapegrad.transforms.arguments import name_of, require_function
from tapegrad.transforms.pytree import Tree, flatten, unflatten

if TYPE_CHECKING:
    from tapegrad.compiler.cfunc import CFunction
    from tapegrad.compiler.lookup import Input
    from tapegrad.compiler.numba_face import Face

MOST = 8  # traces of one signature
ARRAY, FLOAT, TENSOR, SCALAR, STATIC = "array", "float", "tensor", "scalar", "static"


class Signature(NamedTuple):
    """What a trace is made for: structure, and for each leaf its kind and spec, or its value."""

    tree: Tree
    leaves: tuple[Any, ...]
    kinds: tuple[str, ...]


class Result(NamedTuple):
    """A leaf of what is returned: output k of the program, in which form; or a value itself."""

    k: int
    kind: str
    value: Any = None


class Variant:
    """One trace, compiled."""

    __slots__ = ("captured", "graph", "kinds", "linked", "program", "results", "tree")

    def __init__(self, trace: Trace, kinds: tuple[str, ...], tree: Tree, leaves: list[Any]) -> None:
        outputs: list[int] = []
        results = []
        tensors = TENSOR in kinds
        for x in leaves:
            if not isinstance(x, Tensor):
                results.append(Result(-1, STATIC, x))
                continue
            position = trace.position(x)
            if position not in outputs:
                outputs.append(position)
            results.append(Result(outputs.index(position), _form(trace, position, tensors)))
        self.kinds = kinds
        self.tree = tree
        self.results = tuple(results)
        self.captured = tuple([(t, t._version) for t in trace.captured.values()])
        self.graph = optimised(trace.graph(tuple(outputs)))
        lowered = Module(self.graph).lower()
        self.linked = Linked(lowered)
        graph = self.graph
        self.program = Program(
            self.linked.address,
            tuple([graph.nodes[i].spec for i in graph.inputs]),
            tuple([graph.nodes[i].spec for i in graph.outputs]),
            lowered.scratch,
            tuple([call.node.name for call in lowered.calls]),
            self.linked,
        )

    def fits(self) -> bool:
        """Whether the Tensors that became constants are as they were."""
        return all(t._version == version and not t._pos for t, version in self.captured)

    def run(self, arrays: list[np.ndarray]) -> list[np.ndarray] | None:
        """The outputs for some inputs; None where a guard does not hold."""
        program = self.program
        outputs = [np.empty(spec.shape, spec.dtype) for spec in program.outputs]
        arrays = [np.ascontiguousarray(a) for a in arrays]
        status = call(program, arrays, outputs)
        if status < 0:
            raise failure()
        return None if status else outputs

    def returned(self, outputs: list[Any]) -> Any:
        """What the function returns."""
        leaves = []
        for result in self.results:
            if result.kind == STATIC:
                leaves.append(result.value)
                continue
            value = outputs[result.k]
            if result.kind == FLOAT:
                value = float(value)
            elif result.kind == SCALAR:
                value = value[()]
            elif result.kind == TENSOR and not isinstance(value, Tensor):
                value = wrap(value)
            leaves.append(value)
        return unflatten(self.tree, leaves)


def _form(trace: Trace, position: int, tensors: bool) -> str:
    node = trace.nodes[position]
    if tensors:
        return TENSOR
    if node.shape:
        return ARRAY
    return FLOAT if node.dtype.kind == "f" else SCALAR


def call(program: Program, inputs: list[np.ndarray], outputs: list[np.ndarray]) -> int:
    """Run a program on arrays in C order."""
    table_in = (ctypes.c_void_p * max(len(inputs), 1))(*[a.ctypes.data for a in inputs])
    table_out = (ctypes.c_void_p * max(len(outputs), 1))(*[a.ctypes.data for a in outputs])
    run = _PROTOTYPE(program.address)
    return int(run(ctypes.addressof(table_in), ctypes.addressof(table_out), None))


_PROTOTYPE = ctypes.CFUNCTYPE(
    ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p
)  # fmt: skip


def signature_of(tree: Tree, leaves: list[Any]) -> tuple[Signature, list[np.ndarray]]:
    """What a call looks like, and the arrays that are its inputs."""
    keys: list[Any] = []
    kinds = []
    arrays = []
    for x in leaves:
        if isinstance(x, Tensor):
            kind, array = TENSOR, x._a
        elif type(x) is float:
            kind, array = FLOAT, np.array(x)
        elif isinstance(x, np.ndarray) and x.dtype.kind in "biuf":
            kind, array = ARRAY, x
        elif isinstance(x, np.generic) and x.dtype.kind in "biuf":
            kind, array = SCALAR, np.asarray(x)
        else:
            kinds.append(STATIC)
            keys.append((type(x), x))
            continue
        kinds.append(kind)
        keys.append((array.shape, array.dtype.str))
        arrays.append(array)
    return Signature(tree, tuple(keys), tuple(kinds)), arrays


class Jitted:
    """A function that is traced once for each signature, compiled, and run as machine code."""

    def __init__(
        self, f: Callable[..., Any], static_argnums: tuple[int, ...] = (),
        static_argnames: tuple[str, ...] = (), *, fastmath: bool = False,
    ) -> None:  # fmt: skip
        functools.update_wrapper(self, f, updated=())
        self.function = f
        self.static_argnums = static_argnums
        self.static_argnames = static_argnames
        self.fastmath = fastmath
        self._variants: dict[Any, list[Variant]] = {}
        self._eager: set[Any] = set()
        self._lock = threading.RLock()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves, tree = flatten((args, kwargs))
        if any(isinstance(x, Lifted) for x in leaves):
            return self.function(*args, **kwargs)
        signature, arrays = signature_of(tree, leaves)
        if signature in self._eager:
            return self.function(*args, **kwargs)
        if TENSOR in signature.kinds and current.tape.enabled and any(
            isinstance(x, Tensor) and x.requires_grad for x in leaves
        ):  # fmt: skip
            return self.function(*args, **kwargs)
        try:
            variant, outputs = self._serve(signature, leaves, arrays)
        except Untraceable:
            return self.function(*args, **kwargs)
        return variant.returned(outputs)

    def _serve(
        self, signature: Signature, leaves: list[Any], arrays: list[np.ndarray]
    ) -> tuple[Variant, list[np.ndarray]]:
        """A variant that holds for these values, made if there is none, and its outputs."""
        for variant in self._variants.get(signature, ()):
            if variant.fits():
                outputs = variant.run(arrays)
                if outputs is not None:
                    return variant, outputs
        variant = self.trace(signature, leaves, arrays)
        with self._lock:
            known = self._variants.setdefault(signature, [])
            known.append(variant)
            if len(known) > MOST:
                self._give_up(signature)
        outputs = variant.run(arrays)
        assert outputs is not None
        return variant, outputs

    @property
    def name(self) -> str:
        """What the function is called in messages."""
        return name_of(self.function)

    def variant(self, *values: Any) -> Variant | None:
        """One that holds for these values, made if there is none; None: it is not compiled."""
        leaves, tree = flatten((values, {}))
        signature, arrays = signature_of(tree, leaves)
        return None if signature in self._eager else self._serve(signature, leaves, arrays)[0]

    def example(self, inputs: tuple[Input, ...]) -> Variant | None:
        """One for some shapes of these ranks, if there is one."""
        _, tree = flatten(((0.0,) * len(inputs), {}))
        wanted = [(i.kind, i.rank, i.dtype.str) for i in inputs]
        for signature, variants in list(self._variants.items()):
            pairs = zip(signature.kinds, signature.leaves)
            if signature.tree == tree and STATIC not in signature.kinds:
                if wanted == [(kind, len(key[0]), key[1]) for kind, key in pairs] and variants:
                    return variants[0]
        return None

    @functools.cached_property
    def njit(self) -> Face:
        """The function as Numba's compiled code calls it."""
        from tapegrad.compiler.numba_face import Face

        return Face(self)

    @property
    def _numba_type_(self) -> Any:
        return self.njit._numba_type_

    def cfunc(self, kind: str, *examples: Any) -> CFunction:
        """The program for arguments like the examples, as a C function."""
        from tapegrad.compiler.cfunc import CFunction

        return CFunction(self, kind, examples)

    def _give_up(self, signature: Signature) -> None:
        self._eager.add(signature)
        del self._variants[signature]
        warnings.warn(
            f"`jit`: {name_of(self.function)} branched in more than {MOST} ways on the values of "
            "its arguments and is run without compiling from now on for arguments like these: use "
            "`tapegrad.where`, `cond`, `while_loop`, `fori_loop` or `scan` in place of Python's "
            "`if`, `while` and `float()`",
            stacklevel=3,
        )

    def trace(self, signature: Signature, leaves: list[Any], arrays: list[np.ndarray]) -> Variant:
        """Run the function on Traced Tensors."""
        trace = Trace()
        inputs = iter([trace.input(a) for a in arrays])
        given = [
            x if kind == STATIC else next(inputs)
            for x, kind in zip(leaves, signature.kinds, strict=True)
        ]
        args, kwargs = unflatten(signature.tree, given)
        tape = current.tape
        tape.levels.append(trace)
        try:
            with recording(tape, True):
                found = self.function(*args, **kwargs)
            results, tree = flatten(found)
            return Variant(trace, signature.kinds, tree, results)
        finally:
            tape.levels.remove(trace)


def jit(
    f: Callable[..., Any], *, static_argnums: int | tuple[int, ...] = (),
    static_argnames: str | tuple[str, ...] = (), fastmath: bool = False,
) -> Jitted:  # fmt: skip
    """Compile a function of arrays, numbers, Tensors or pytrees of them."""
    require_function(f, "jit")
    numbers = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
    names = (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames)
    return Jitted(f, numbers, names, fastmath=fastmath)
