"""One trace of a function, compiled: its program and the structure of its result."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np

from tapegrad.base.compile_stages import stage
from tapegrad.compiler.front.captured_reads import Read
from tapegrad.compiler.front.fastcall import Float, Result
from tapegrad.compiler.ir.graph import Graph
from tapegrad.compiler.ir.loop_nest import supported
from tapegrad.compiler.passes import optimised
from tapegrad.compiler.passes.complex_pairs import with_real_ends
from tapegrad.compiler.runtime import tiers
from tapegrad.compiler.runtime.link import failure
from tapegrad.compiler.runtime.program import Program
from tapegrad.compiler.trace.trace import Trace
from tapegrad.functions.masked_elements import MaskedElements
from tapegrad.ops.core import Spec
from tapegrad.tensor import Tensor, wrap
from tapegrad.transforms.call_arguments import name_of
from tapegrad.transforms.pytree import Tree, unflatten

# The form of a leaf of the arguments or of the result.
ARRAY, FLOAT, TENSOR, SCALAR, STATIC = "array", "float", "tensor", "scalar", "static"


class Leaf(NamedTuple):
    """A leaf of the result: an output in some form, or (`STATIC`) a value itself."""

    output: int
    form: str
    value: Any = None


class Specialization:
    """One trace, compiled."""

    __slots__ = (
        "backward_only",
        "captured",
        "graph",
        "kinds",
        "leaves",
        "numbers",
        "program",
        "reads",
        "tree",
    )

    def __init__(
        self,
        trace: Trace,
        kinds: tuple[str, ...],
        tree: Tree,
        leaves: list[Any],
        f: Any,
        fast: bool,
        reads: tuple[Read, ...] = (),
    ) -> None:
        outputs: list[int] = []
        found = []
        tensors = TENSOR in kinds
        for x in leaves:
            # Each leaf is an output of its own, though several may be one record: whoever writes
            # into one result does not change another.
            if isinstance(x, Tensor):
                position = trace.position(x)
                found.append(Leaf(len(outputs), _form(trace.nodes[position].spec, tensors)))
                outputs.append(position)
            elif not tensors and _storable(x):
                found.append(Leaf(len(outputs), ARRAY if type(x) is np.ndarray else SCALAR))
                outputs.append(trace.constant(np.asarray(x)))
            else:
                found.append(Leaf(-1, STATIC, _constant(x, f)))
        self.kinds = kinds
        self.tree = tree
        self.backward_only = trace.applies
        self.leaves = tuple(found)
        self.captured = tuple([(t, t._version) for t in trace.watched()])
        self.reads = reads
        self.numbers = _lines_by_input(trace)
        with stage("passes"):
            traced = trace.graph(tuple(outputs))
            self.graph = optimised(with_real_ends(traced))
        self.program = compiled(self.graph, fast, traced)

    def fits(self) -> bool:
        """Whether the captured values, which became constants, are unchanged."""
        return self.lasts() and all(read.holds() for read in self.reads)

    def lasts(self) -> bool:
        """Whether no captured Tensor was changed in place, which invalidates it for good."""
        return all(t._version == version and not t._pos for t, version in self.captured)

    def run(self, arrays: list[np.ndarray]) -> list[np.ndarray] | None:
        """The outputs for some inputs; None if a guard fails."""
        program = self.program
        outputs = [np.empty(spec.shape, spec.dtype) for spec in program.outputs]
        inputs = [np.ascontiguousarray(a) for a in arrays]
        addresses = [_addresses(x) for x in (inputs, outputs)]
        status = _PROTOTYPE(program.address)(*map(ctypes.addressof, addresses), None)
        if status < 0:
            raise failure()
        return None if status else outputs

    def returned(self, outputs: Any) -> Any:
        """The function's result, from the outputs as arrays (or Tensors)."""
        return unflatten(self.tree, [_given(leaf, outputs) for leaf in self.leaves])

    @property
    def result(self) -> Result:
        """The structure of what a fast call returns; raises ValueError where it cannot build it."""
        return _structure(self.tree, iter(self.leaves), self.program.outputs)


def compiled(graph: Graph, fast: bool, traced: Graph) -> Program:
    """Machine code for a graph that another one has become, whose inputs and results it takes."""
    try:
        lowered, linked = tiers.linked(graph, fast)
    except MemoryError as error:
        why = f" ({error})" if str(error) else ""
        raise MemoryError(
            f"`jit`: there is not enough memory to compile a program of {len(graph.nodes)} "
            f"operations{why}: free some or raise the limit (`ulimit -v`), and write long loops "
            "as `scan` or `fori_loop`, whose bodies are compiled once"
        ) from error
    return Program(
        linked.address,
        tuple([traced.nodes[i].spec for i in traced.inputs]),
        tuple([traced.nodes[i].spec for i in traced.outputs]),
        lowered.scratch,
        lowered.callbacks,
        linked,
    )


def _lines_by_input(trace: Trace) -> tuple[tuple[str, int] | None, ...]:
    """Of each argument the line at which Python has made a number of it, or of what it leads to."""
    if not trace.numbers:
        return ()
    return tuple([
        next((line for p, line in trace.numbers.items() if trace.descends(p, {k})), None)
        for k in trace.graph(()).inputs
    ])  # fmt: skip


_PROTOTYPE = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


def _addresses(arrays: list[np.ndarray]) -> ctypes.Array[ctypes.c_void_p]:
    return (ctypes.c_void_p * (len(arrays) + 1))(*[a.ctypes.data for a in arrays])


def _form(spec: Any, tensors: bool) -> str:
    if tensors:
        return TENSOR
    if spec.shape:
        return ARRAY
    return FLOAT if spec.dtype == np.float64 else SCALAR


def _storable(x: Any) -> bool:
    """Whether a program can store a constant result: an array or a NumPy scalar."""
    if type(x) is not np.ndarray and (not isinstance(x, np.generic) or isinstance(x, float)):
        return False
    return supported(x.dtype)


def _constant(x: Any, f: Any) -> Any:
    if isinstance(x, np.ndarray) and x.dtype.kind in "biufc":
        return x.copy()
    if isinstance(x, (int, float, complex, str, np.generic)):
        return x
    if isinstance(x, MaskedElements):
        x.refuse(f"`jit`: a result of {name_of(f)}")
    raise TypeError(
        f"`jit`: {name_of(f)} must return arrays, Tensors, numbers or pytrees of them, got a leaf "
        f"of type {type(x).__name__}: register its type with `register_pytree_node`, or return "
        "what it holds"
    )


def _given(leaf: Leaf, outputs: Any) -> Any:
    if leaf.form == STATIC:
        return leaf.value.copy() if isinstance(leaf.value, np.ndarray) else leaf.value
    value = outputs[leaf.output]
    if leaf.form == TENSOR:
        return value if isinstance(value, Tensor) else wrap(value)
    if leaf.form == FLOAT:
        return float(value)
    return value if leaf.form == ARRAY else value[()]


def _structure(tree: Tree, leaves: Any, outputs: tuple[Spec, ...]) -> Result:
    if tree.kind is None:
        leaf = next(leaves)
        if leaf.form == ARRAY:
            return int(leaf.output)
        if leaf.form == FLOAT:
            return Float(leaf.output)
        raise ValueError
    if tree.kind is type(None):
        return None
    if tree.kind is not tuple:
        raise ValueError
    return tuple([_structure(child, leaves, outputs) for child in tree.children])
