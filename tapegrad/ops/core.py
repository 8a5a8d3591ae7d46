"""What an operation is: a name, a forward over NumPy arrays, and one derivative formula per input.

A formula is a function whose *parameter names say what it reads*, and with that what has to be kept
for it:

===========  =====================================================================
``y``        the result
``g``        the adjoint of the result (linear and custom formulas)
an input     its value
``x_spec``   shape and dtype of the input ``x`` (any input's name before ``_spec``)
``y_spec``   shape and dtype of the result
``factors``  LU factors of the operand, or None (see `ops.lu_factors`)
otherwise    a static parameter of the operation
===========  =====================================================================

There are three kinds.  An *elementwise* formula is the partial derivative itself, as a scalar
expression; the engine multiplies it with the adjoint by the strong product.  A *linear* formula is
the transpose; it reads no values of differentiable inputs.  A *custom* formula is a vjp.  Formulas
are written over operations, so that the same text runs on arrays (the sweep), on Tensors (a sweep
that is itself recorded), on dual numbers, and on symbols (kernels).

The adjoint of a complex value z = x + iy is dL/dx + i dL/dy, which is the conjugate Wirtinger
derivative that PyTorch computes.  A formula that says the derivative of an analytic function needs
no second form for it: the engine takes the conjugate (`autograd.pullback`).

What else is true of an operation stands in its row, too: see `ops.facets`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tapegrad.base.locks import lock
from tapegrad.ops.facets import FACETS, Facets, has_svml
from tapegrad.ops.large import large
from tapegrad.tape.shape_table import Shape
from tapegrad.tape.tape import Tape

Params = dict[str, Any]
NO_PARAMS: Params = {}  # in place of one more empty dict
ELEMENTWISE, LINEAR, CUSTOM = "elementwise", "linear", "custom"
ANALYTIC, REAL, OWN = "analytic", "real", "own"  # the facet `complex`
table: dict[str, Op] = {}
by_code: list[Op] = []
_appending = lock()


class Spec(NamedTuple):
    """The shape and the dtype of an array, without its values."""

    shape: Shape
    dtype: np.dtype[Any]


class NotDifferentiable:
    """Says why an input of an operation has no derivative."""

    __slots__ = ("reason",)
    reads: tuple[str, ...] = ()

    def __init__(self, reason: str) -> None:
        self.reason = reason


class Formula:
    """A derivative formula and the names of what it reads.

    Of the adjoint, `g`, and of the values of operands, of the result, `y`, and of parameters; `g_b`
    is what the formula of the operand `b` gives, which both read and is computed once.
    """

    __slots__ = ("function", "reads")

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        code = function.__code__
        self.reads = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


class NotImplementedYet(Formula):
    """A derivative that exists but has no formula: to ask for it is an error."""

    __slots__ = ()

    def __init__(self, reason: str) -> None:
        def refuse() -> None:
            raise NotImplementedError(reason)

        super().__init__(refuse)


class Op(Facets):
    """One row of the table; calling it runs it on whatever its arguments are.

    >>> from tapegrad.ops.core import table
    >>> table["mul"].kind, table["mul"].inputs
    ('elementwise', ('a', 'b'))
    """

    __slots__ = (
        "code",
        "entry_point",
        "exact",
        "formulas",
        "forward",
        "inputs",
        "jointly_linear",
        "keeps",
        "kind",
        "moving",
        "multilinear",
        "name",
        "named",
        "saves",
        "variadic",
        "view",
    )

    def __init__(
        self,
        name: str,
        kind: str,
        forward: Callable[..., Any],
        formulas: dict[str, Callable[..., Any] | NotDifferentiable | Formula],
        *,
        grad_name: str | None = None,
        view: bool = False,
        variadic: bool = False,
        exact: tuple[str, ...] = (),
        multilinear: bool = False,
        jointly_linear: bool = False,
        **facets: Any,
    ) -> None:
        if name in table:
            raise ValueError(f"operation `{name}` stands in the table twice")
        self.name = name
        self.kind = kind
        self.forward = forward
        self.inputs = tuple(formulas)
        self.formulas = tuple([
            f if isinstance(f, (NotDifferentiable, Formula)) else Formula(f)
            for f in formulas.values()
        ])  # fmt: skip
        self.named = grad_name
        self.view = view
        self.variadic = variadic
        self.entry_point: Any = None  # set by `dispatch.op_functions`, then `native.install`
        for facet, value in facets.items():
            setattr(self, facet, value)
        if "svml" in self.loop and not has_svml():
            self.loop = "f8 f4 scalar"
        if kind == LINEAR and not self.complex:
            self.complex = REAL
        if self.axis and self.decomposition is not None:
            self.forward = large("softmax_and_norms.forward", forward, row=self)
        self.multilinear = multilinear  # linear in each input while the others stay
        # exact[k]: the partial in input k is itself an adjoint: where it is 0, so is the product.
        self.exact = tuple([name in exact for name in self.inputs])
        # saves[j]: which of (inputs..., result) the formula of input j reads the value of.
        kept = (*self.inputs, "y")
        self.saves = tuple([
            tuple([name in self._read_by(f) for name in kept]) for f in self.formulas
        ])  # fmt: skip
        self.keeps = any(map(any, self.saves))
        moving = self.moving = tuple([isinstance(f, Formula) for f in self.formulas])
        # A linear row of several inputs is linear in all together, if no formula reads any of them.
        # Of an elementwise row it has to be said.
        self.jointly_linear = jointly_linear or (kind == LINEAR and not any(
            reads and moves for row in self.saves for reads, moves in zip(row, moving, strict=False)
        ))  # fmt: skip
        with _appending:  # threads may load families at the same time
            self.code = len(by_code)
            table[name] = self
            by_code.append(self)
            Tape.op_names.append(name)

    def _read_by(self, formula: NotDifferentiable | Formula) -> set[str]:
        """What a formula reads, itself or in the contribution to another operand."""
        others = [self.inputs.index(r[2:]) for r in formula.reads if r.startswith("g_")]
        return {*formula.reads, *(r for k in others for r in self.formulas[k].reads)}

    @property
    def grad_name(self) -> str:
        """The name of its records as `grad_fn`."""
        name = self.named or camel(self.name)
        return name if name == "CopySlices" else name + "Backward0"  # PyTorch's one without it

    @property
    def names(self) -> list[str]:
        """The names of the public function."""
        return [self.name, *self.aliases.split()]

    def __call__(self, *args: Any, **params: Any) -> Any:
        for arg in args:
            run = getattr(arg, "_tapegrad_run", None)
            if run is not None:
                return run(self, args, params)
        return self.forward(*args, **params)

    def __repr__(self) -> str:
        return f"<Op {self.name}: {self.kind} over {', '.join(self.inputs)}>"


def camel(name: str) -> str:
    """The name in the style of grad_fn: ``log_softmax`` gives ``LogSoftmax``."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def _row(
    name: str, kind: str, forward: Callable[..., Any], said: dict[str, Any], own: frozenset[str]
) -> Op:
    """The row of what was said: formulas of inputs, and options under the names of these."""
    options = {key: said.pop(key) for key in said.keys() & own}
    return Op(name, kind, forward, said, **options)


_FACETS = frozenset(FACETS) | {"grad_name"}
_OF_ELEMENTWISE = _FACETS | {"exact", "jointly_linear"}
_OF_LINEAR = _FACETS | {"view", "variadic"}
_OF_CUSTOM = _FACETS | {"variadic", "multilinear"}


def elementwise(name: str, forward: Callable[..., Any], **formulas: Any) -> Op:
    """A scalar function applied to every element, with its partial derivatives."""
    return _row(name, ELEMENTWISE, forward, formulas, _OF_ELEMENTWISE)


def linear(name: str, forward: Callable[..., Any], **formulas: Any) -> Op:
    """A function that is linear in its differentiable inputs, with its transposes."""
    return _row(name, LINEAR, forward, formulas, _OF_LINEAR)


def custom(name: str, forward: Callable[..., Any], **formulas: Any) -> Op:
    """Any other function, with one vjp per input."""
    return _row(name, CUSTOM, forward, formulas, _OF_CUSTOM)
