"""A reverse sweep, record by record: `tg.show.sweep`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.autograd.engine import root_weights
from tapegrad.autograd.grad_mode import switched
from tapegrad.autograd.node_hooks import stepped
from tapegrad.autograd.pullback import Saved, contributions
from tapegrad.autograd.sweep import Sweep
from tapegrad.autograd.tensor_hooks import end_sweep, run_functions
from tapegrad.ops.core import ELEMENTWISE, LINEAR
from tapegrad.ops.graph_nodes import grad_name
from tapegrad.show.formula_text import formula_text
from tapegrad.show.graph_boxes import Swept
from tapegrad.show.known_values import known_values
from tapegrad.show.named_slice import NamedSlice, Names, Operand
from tapegrad.show.sweep_steps import Contribution, SweepStep, SweepSteps
from tapegrad.tape.record_format import SPENT, WORD
from tapegrad.tape.tape import current
from tapegrad.tape.tape_slice import output_of
from tapegrad.tensor import Tensor, noted, wrap


def sweep(
    y: Tensor, /, names: Names = None, gradient: Tensor | None = None, **tensors: Tensor
) -> SweepSteps:
    """Go through the reverse sweep from `y` step by step, and change nothing.

    Parameters
    ----------
    y : a Tensor that was computed of leaves.
    names : names of variables and their Tensors, as a dict; what is no Tensor is left out, so that
        `locals()` will do.
    gradient : the adjoint that `y` begins with; a number needs none.
    tensors : names, as keywords.

    Each step shows a record's operands and its result, the adjoint that has come in, the local
    derivatives by the formulas of its row, and what is added where. Print the steps, iterate over
    them, or `save` them as a page. Nothing is released and no `.grad` is written. Hooks are called,
    for they may change what is added; and so is a Function's `backward`.

    >>> import tapegrad as tg
    >>> x, w = tg.tensor(2.0, requires_grad=True), tg.tensor(5.0, requires_grad=True)
    >>> print(tg.show.sweep(tg.exp(x) * w, x=x, w=w))
    reverse sweep from ..., seed 1: 2 records
    <BLANKLINE>
    step 1: mul at ..., MulBackward0
    result ... = 36.9453, adjoint 1
    operand  read from  value    local derivative  adds     to make
    a        ...        7.38906  b = 5             5        ...: 5
    b        w          5        a = 7.38906       7.38906  w: 7.38906
    <BLANKLINE>
    step 2: exp at ..., ExpBackward0
    result ... = 7.38906, adjoint 5
    operand  read from  value  local derivative  adds     to make
    x        x          2      y = 7.38906       36.9453  x: 36.9453
    <BLANKLINE>
    gradients
    x: 36.9453
    w: 7.38906
    """
    part = NamedSlice(y, "sweep", names, tensors)
    if part.tape is not current.tape:
        raise RuntimeError(
            "`sweep`: this graph was recorded by another thread: call it in the thread that made it"
        )
    if any(part.tape.words()[k, WORD] & SPENT for k in part.indices):
        raise RuntimeError(
            "`sweep`: a sweep has freed the values that these records had saved: show it before "
            "`backward`, or call `backward(retain_graph=True)`"
        )
    (weight,) = root_weights([y], gradient, "gradient", "sweep")
    log = _LoggedSweep(part, known_values(part, y))
    log.seed(part.tape.tokens[part.top], weight._a)
    switched(part.tape, False, log.run)
    gradients = {}
    swept = {step.position: Swept(step.value, step.adjoint) for step in log.steps}
    for code, leaf, g in sorted(log.found, key=lambda found: -found[0]):
        gradient = run_functions(noted(leaf, "hooks") or {}, wrap(g))
        gradients[part.label(code)] = gradient._a
        swept[code] = Swept(leaf._a, gradient._a)
    end_sweep(part.tape)
    return SweepSteps(part, weight._a, log.steps, gradients, swept)


class _LoggedSweep(Sweep):
    """A sweep in Python that notes each step; what records save stays."""

    def __init__(self, part: NamedSlice, known: dict[int, np.ndarray]) -> None:
        super().__init__(part.tape, recorded=False, retain=True)
        self.work = None
        self.part, self.known = part, known
        self.steps: list[SweepStep] = []

    def _hooked(self, position: int, g: Any) -> Any:
        """Call the hooks on an adjoint, and write it to no `.grad`."""
        hooks = self.tape.hooks.get(position)
        return g if hooks is None else run_functions(hooks.functions, wrap(g.copy()))._a

    def _pull(self, index: int, word: int, g: Any, hooks: Any) -> None:
        """Hand an adjoint on to the inputs of a record, and note what each gets."""
        tape, position = self.tape, self.tape.tokens[index]
        several = self.scratch.get(position, {0: g})  # a Function may have several results
        adjoints = tuple([np.array(several[j]) for j in sorted(several)])
        args = (tape, index, g, self.wanted, False, self.scratch)
        pairs = [*(contributions(*args) if hooks is None else stepped(hooks, *args))]
        operands = []
        for operand in self.part.operands(index):
            value = None
            if operand.code and pairs and pairs[0][0] == operand.code:
                value = pairs.pop(0)[1]
                self._hand_on(index, iter([(operand.code, value)]))
            operands.append(self._contribution(index, operand, value, adjoints[0]))
        record = tape.record(index)
        self.steps.append(
            SweepStep(
                len(self.steps) + 1, position, record.op, grad_name(tape, position),
                self.part.label(position), self.known.get(position), adjoints, tuple(operands),
            )
        )  # fmt: skip

    def _contribution(self, index: int, operand: Operand, value: Any, g: Any) -> Contribution:
        """What an operand gets of an adjoint, after it was added."""
        code = operand.code
        if code == 0:
            source = "" if operand.constant is None else self.part.constant_name(operand.constant)
            return Contribution(
                operand.name, source or "constant", operand.constant, "", None, None, None
            )
        source, known = self.part.label(code), self.known.get(code)
        if value is None:
            return Contribution(operand.name, source, known, "", None, None, None)
        formula, derivative = self._local(index, operand.place, g)
        if output_of(self.tape, index)[0]:  # of several results, which the Function's rule needs
            return Contribution(operand.name, source, known, formula, derivative, g, None)
        total = np.array(self.values[code if code < 0 else self.tape.index(code)])
        return Contribution(
            operand.name, source, known, formula, derivative, np.array(value), total
        )

    def _local(self, index: int, k: int, g: Any) -> tuple[str, np.ndarray | None]:
        """The local derivative in operand k: its formula, and its value where it is one array."""
        entry = self.tape.keep[index]
        main, j = output_of(self.tape, index)
        if main:
            return f"result {j}", None
        if getattr(entry, "pull", None) is not None:
            return f"backward of {entry.record_name}", None
        saved = Saved(self.tape, index, False)
        if saved.op.kind == ELEMENTWISE:
            return formula_text(saved.op, k), np.asarray(saved.evaluate(k))
        rule = "transpose" if saved.op.kind == LINEAR else "vjp"
        one = np.asarray(saved.adjoint(k, np.ones_like(g))) if g.size == 1 else None
        return f"{rule} of {saved.op.name}", one
