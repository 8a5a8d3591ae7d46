"""What type checkers are told about the Tensor's operations is what is attached to it."""

import ast
import inspect
import types
import typing
from pathlib import Path

import pytest

import tapegrad
from tapegrad.functions import deferred, methods

pytestmark = pytest.mark.tapegrad_only("about this project")

FUNCTIONS = Path(methods.__file__).parent
MODULE = "tapegrad.functions.signatures"


# What every class has; the last two since Python 3.13.
EVERY = {"__module__", "__doc__", "__annotations__", "__firstlineno__", "__static_attributes__"}


def declared() -> dict[str, object]:
    """The members of `Operations` in signatures.pyi, which is plain Python and can be run."""
    source = (FUNCTIONS / "signatures.pyi").read_text(encoding="utf-8")
    namespace: dict[str, object] = {"__name__": MODULE}
    exec("from __future__ import annotations\n" + source, namespace)
    kept = EVERY | {"__dict__", "__weakref__", "__hash__"}
    return {k: v for k, v in vars(namespace["Operations"]).items() if k not in kept}


def attached() -> dict[str, object]:
    """What the class statement of the Tensor does not define."""
    deferred.attach_all()
    tree = ast.parse((FUNCTIONS.parent / "tensor.py").read_text(encoding="utf-8"))
    (body,) = (n.body for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "Tensor")
    own = EVERY | {*tapegrad.Tensor.__slots__}
    own.add("__getattr__")  # it only raises; declared, it would say that every name is there
    for node in body:
        if isinstance(node, ast.FunctionDef):
            own.add(node.name)
        elif isinstance(node, ast.Assign):
            own |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            own.add(node.target.id)
    return {k: v for k, v in vars(tapegrad.Tensor).items() if k not in own}


DECLARED, ATTACHED = declared(), attached()


def parameters(function: object) -> list[tuple[str, object, object]]:
    """Name, kind and default of every parameter but the first."""
    found = list(inspect.signature(function).parameters.values())[1:]
    return [(p.name, p.kind, p.default) for p in found]


def overloads(name: str) -> list[object]:
    at = types.SimpleNamespace(__module__=MODULE, __qualname__=f"Operations.{name}")
    return list(typing.get_overloads(at))


def test_every_method_is_declared():
    missing = sorted(ATTACHED.keys() - DECLARED.keys())
    assert not missing, "run `python -m tests.public_names`"


def test_every_declaration_has_a_method():
    stale = sorted(DECLARED.keys() - ATTACHED.keys())
    assert not stale, "run `python -m tests.public_names`"


@pytest.mark.parametrize("name", sorted(DECLARED.keys() & ATTACHED.keys()))
def test_parameters_agree(name):
    told, real = DECLARED[name], ATTACHED[name]
    assert isinstance(told, property) == isinstance(real, property)
    if isinstance(real, property):
        return
    variants = overloads(name)
    if name.startswith("__"):  # called by position
        assert len(parameters(told)) <= len(parameters(real))
        assert all(default is not inspect.Parameter.empty
                   for _, _, default in parameters(real)[len(parameters(told)) :])  # fmt: skip
    elif variants:
        names = {p[0] for variant in variants for p in parameters(variant)}
        assert names == {p[0] for p in parameters(real)}
    else:
        assert parameters(told) == parameters(real)


@pytest.mark.parametrize("name", sorted(DECLARED))
def test_results_are_typed(name):
    functions = overloads(name) or [getattr(DECLARED[name], "fget", DECLARED[name])]
    for function in functions:
        assert function.__annotations__.get("return", "Any") != "Any"
