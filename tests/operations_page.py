"""The page docs/operations.md: what each function of Tensors is, by calling it.

`python -m tests.public_names` writes it.  A function is called as tests/peers compare it with
PyTorch, or as the example of its docstring says; the tape tells the rows that it is made of.
"""

from __future__ import annotations

import doctest
import functools
import importlib
import inspect
import itertools
import warnings
from collections.abc import Iterator
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

import tapegrad as tg
from tapegrad.numpy_face import handlers, ufuncs
from tapegrad.numpy_face.common import title
from tapegrad.ops.families import by_code
from tapegrad.tape.tape import current

HEAD = """# Operations

There are {count} functions of Tensors, made of {rows} rows of one table, each with one rule for its
derivative. Here is every one, in the order of its namespace. The columns:

* **NumPy**: the function of NumPy that takes Tensors and computes the same; more of them, and how
  they differ, are in [numpy.md](numpy.md).
* **PyTorch**: where PyTorch has it, with the same arguments.
* **orders**: how often it can be differentiated in reverse mode: `all`, a number, or nothing where
  there is no derivative.
* **complex**: `gradient` where complex numbers are taken and differentiated, `value` where they are
  taken, nothing where they are refused.
* **in place**: the form that writes its result into the first operand.

`python -m tests.public_names` writes this page from the rows, from docstrings, and from calls.
"""
TITLE = (
    "| operation | NumPy | PyTorch | orders | complex | in place | what it is |\n"
    "|---|---|---|---|---|---|---|"
)
NAMESPACES = ("", "linalg", "special", "fft", "nn.functional")
OWN = {"pure_callback"}  # functions that PyTorch does not have
ORDERS = 3  # what can be differentiated so often can be differentiated for ever
CALLS_EACH = 4
TABLES = (
    "creation_cases linalg_cases loss_cases nn_cases order_cases sampled_cases scatter_cases "
    "torch_more torch_rows"
).split()


class Facts(NamedTuple):
    """What calls showed of a function."""

    rows: frozenset[str] = frozenset()  # that calls with real numbers record
    orders: int = 0
    complex: str = ""
    complex_rows: frozenset[str] = frozenset()  # that calls with complex numbers record


class Listed(NamedTuple):
    """A function, and the names it has in a namespace."""

    function: Any
    home: str
    names: list[str]

    @property
    def path(self) -> str:
        return ".".join(filter(None, (self.home, self.names[0])))


def mapped(x: Any, change: Any) -> Any:
    """Arguments, each Tensor changed, however deep it stands."""
    if isinstance(x, tg.Tensor):
        return change(x)
    if type(x) in (list, tuple):
        return type(x)(mapped(part, change) for part in x)
    return x


def tensors_in(x: Any) -> list[Any]:
    """The Tensors among results."""
    if isinstance(x, tg.Tensor):
        return [x]
    return [t for part in x for t in tensors_in(part)] if isinstance(x, (list, tuple)) else []


def total_of(outputs: list[Any]) -> Any:
    """One number that depends on every element of what can be differentiated."""
    total = 0.0
    for y in outputs:
        if y.requires_grad:
            square = tg.view_as_real(y).square().sum(-1) if y.is_complex() else y * y
            total = total + (square * tg.linspace(0.5, 1.5, y.numel()).reshape(y.shape)).sum()
    return total


def as_leaf(x: Any) -> Any:
    x = x.detach().clone()
    return x.requires_grad_() if x.is_floating_point() or x.is_complex() else x


def as_complex_leaf(x: Any) -> Any:
    return as_leaf(x + 0.25j * x) if x.is_floating_point() else as_leaf(x)


def as_float_leaf(x: Any) -> Any:
    return as_leaf(x.double() if x.dtype in (tg.int64, tg.int32) else x)


def as_one_leaf(place: int) -> Any:
    """The Tensor at one place alone is differentiated."""
    places = itertools.count()
    return lambda x: as_leaf(x) if next(places) == place else x.detach()


def outcome(function: Any, args: Any, kwargs: Any, change: Any, orders: int) -> Any:
    """The rows that a call records, and how often it could be differentiated."""
    given, named = mapped(args, change), {k: mapped(v, change) for k, v in kwargs.items()}
    leaves = [x for x in tensors_in([given, *named.values()]) if x.requires_grad]
    start = current.tape.next
    result = tensors_in(function(*given, **named))
    count = current.tape.next - start
    rows = frozenset(record.op for record in current.tape[-count:]) if count else frozenset()
    total = total_of(result)
    for order in range(orders):
        if not isinstance(total, tg.Tensor) or not total.requires_grad:
            return rows, orders if order else 0  # what is constant has derivatives, too
        try:
            found = tg.autograd.grad(
                total, leaves, create_graph=True, allow_unused=True, materialize_grads=True
            )
        except (NotImplementedError, RuntimeError):
            return rows, order
        total = total_of(list(found))
    return rows, orders


class Calls:
    """tapegrad, or a module of it, that notes what its functions do."""

    def __init__(self, module: Any, facts: dict[int, list[Facts]]) -> None:
        self._module, self._facts = module, facts

    def __getattr__(self, name: str) -> Any:
        thing = getattr(self._module, name)
        if isinstance(thing, ModuleType):
            return Calls(thing, self._facts)
        if not inspect.isroutine(thing) or name.endswith("_"):
            return thing

        @functools.wraps(thing)
        def call(*args: Any, **kwargs: Any) -> Any:
            known = self._facts.setdefault(id(thing), [])
            if len(known) < CALLS_EACH and (facts := facts_of(thing, args, kwargs)) is not None:
                known.append(facts)
            return thing(*args, **kwargs)

        return call


def facts_of(function: Any, args: Any, kwargs: Any) -> Facts | None:
    """What one call shows; nothing if its arguments are refused."""
    given = tensors_in([args, *kwargs.values()])
    alone = [as_one_leaf(k) for k in range(len(given))] if len(given) > 1 else []
    found, used = None, as_leaf
    for change in (as_leaf, as_float_leaf, *alone, tg.Tensor.detach):
        try:
            rows, orders = outcome(function, args, kwargs, change, ORDERS)
        except Exception:  # the call is refused
            continue
        if found is None or orders > found.orders:
            found, used = Facts(rows, orders), change
        if orders or (rows and not alone):
            break
    if found is None:
        return None
    taken = tensors_in(mapped([args, *kwargs.values()], used))
    if not any(x.is_floating_point() or x.is_complex() for x in taken):
        return found

    again = as_one_leaf(alone.index(used)) if used in alone else used

    def change(x: Any) -> Any:
        y = as_complex_leaf(as_float_leaf(x).detach() if used is as_float_leaf else x)
        return y if used in (as_leaf, as_float_leaf) else again(y.detach())

    try:
        rows, orders = outcome(function, args, kwargs, change, 1)
    except Exception:
        return found
    return found._replace(complex="gradient" if orders else "value", complex_rows=rows)


def examples_of(function: Any) -> Iterator[str]:
    """The lines of the example in a docstring."""
    for example in doctest.DocTestParser().get_examples(inspect.getdoc(function) or ""):
        if not example.source.startswith(("import", "from")):
            yield example.source


@functools.cache
def all_facts() -> dict[int, list[Facts]]:
    """What is known of each function, by its identity."""
    facts: dict[int, list[Facts]] = {}
    library = Calls(tg, facts)
    before, state = tg.get_default_dtype(), tg.get_rng_state()
    tg.set_default_dtype(tg.float64)
    tg.manual_seed(0)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for name in TABLES:
            importlib.import_module(f"tests.peers.{name}")
        from tests.peers.torch_cases import CASES as calls
        from tests.peers.torch_cases import values_of

        for case in calls:
            operands = [tg.tensor(values_of(x, k + 1)) for k, x in enumerate(case.operands)]
            try:
                case.function(library, *operands)
            except Exception:
                continue
        for listed in functions():
            if not facts.get(id(listed.function)):
                space = {"tg": library, "np": np, "print": lambda *_: None}
                for line in examples_of(listed.function):
                    try:
                        exec(compile(line, "example", "exec"), space)
                    except Exception:
                        break
    tg.set_default_dtype(before)
    tg.set_rng_state(state)
    return facts


# -- the page --------------------------------------------------------------------------------------


def home_of(namespace: str) -> Any:
    """A module that users import functions from."""
    return functools.reduce(getattr, filter(None, namespace.split(".")), tg)


@functools.cache
def functions() -> list[Listed]:
    """Every function of Tensors, once, in the first namespace that has it."""
    found: dict[int, Listed] = {}
    for namespace in NAMESPACES:
        module = home_of(namespace)
        for name in sorted(module.__all__):
            thing = getattr(module, name)
            home = getattr(thing, "__module__", None) or ""
            if (
                not home.startswith(("tapegrad.functions.", "tapegrad.nn."))
                or not inspect.isroutine(thing)
                or name.endswith("_")
            ):
                continue
            listed = found.setdefault(id(thing), Listed(thing, namespace, []))
            if listed.home == namespace:
                listed.names.append(name)
    for listed in found.values():
        own = listed.function.__name__
        listed.names.sort(key=lambda name, own=own: (name != own, name))  # type: ignore[misc]
    return list(found.values())


@functools.cache
def numpys() -> dict[str, list[str]]:
    """From the path of a public function to the names of NumPy's functions that call it."""
    found: dict[str, list[str]] = {}
    of_function = {id(listed.function): listed for listed in functions()}
    known = {**handlers.table(), **ufuncs.TABLE}
    for func, handler in known.items():
        if (listed := of_function.get(id(handler))) is not None:
            found.setdefault(listed.path, []).append(title(func))
    for listed in functions():
        for name in listed.names:
            func: Any = np
            for part in filter(None, (*listed.home.split("."), name)):
                func = getattr(func, part, None)
            if callable(func) and func in known:
                found.setdefault(listed.path, []).append(title(func))
    return {
        path: sorted({name for name in names if name.startswith("np.")})
        for path, names in found.items()
    }


def facts_about(listed: Listed) -> Facts:
    """What all calls of a function showed together."""
    known = all_facts().get(id(listed.function), [])
    recorded = [facts for facts in known if facts.rows] or known
    if not recorded:
        return Facts()
    rows, complex_rows = (frozenset().union(*(facts[k] for facts in recorded)) for k in (0, 3))
    shown = {facts.complex for facts in known}
    kind = "gradient" if "gradient" in shown else "value" if "value" in shown else ""
    return Facts(rows, max(facts.orders for facts in recorded), kind, complex_rows)


def in_place(listed: Listed) -> str:
    """The form of a function that writes into the first operand: a function or a method."""
    for home in (home_of(listed.home), *([tg.Tensor] if not listed.home else [])):
        for name in listed.names:
            if hasattr(home, f"{name}_"):
                return f"{name}_"
    return ""


def coded(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def line_of(listed: Listed) -> str:
    """The line of a function."""
    home = f"{listed.home}." if listed.home else ""
    facts = facts_about(listed)
    orders = "" if not facts.orders else "all" if facts.orders == ORDERS else str(facts.orders)
    theirs = "" if listed.names[0] in OWN else f"`torch.{listed.path}`"
    changed = in_place(listed)
    about = (inspect.getdoc(listed.function) or "").split("\n")[0].replace("|", "\\|")
    cells = (
        coded([f"{home}{name}" for name in listed.names]), coded(numpys().get(listed.path, [])),
        theirs, orders, facts.complex, f"`{changed}`" if changed else "", about,
    )  # fmt: skip
    return f"| {' | '.join(cells)} |"


def written(count: int) -> str:
    """The page."""
    lines = [HEAD.format(count=count, rows=len(by_code))]
    for namespace in NAMESPACES:
        here = sorted(line_of(x) for x in functions() if x.home == namespace)
        lines += [f"## tg.{namespace}".rstrip("."), "", TITLE, *here, ""]
    return "\n".join(lines)
