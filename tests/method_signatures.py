"""The stub of the Tensor's methods, written from the annotations of their functions.

`python -m tests.public_names` writes it; what stands above the mark in the stub is kept: operators,
properties, and what the engine attaches.
"""

import ast
import builtins
import inspect
import sys
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import tapegrad
from tapegrad.functions import deferred

MARK = "    # -- made from rows\n"
WIDTH = 100
HOMES = ("tapegrad.functions.", "tapegrad.numpy_face.")
BUILTIN = ("bool", "float", "int")  # which are names of methods, too
Imports = dict[str, tuple[str, str]]  # a name here: its module, and its name there


def written(text: str, of_rows: list[str]) -> str:
    """The stub anew: what is kept of it, the methods that rows make, and those of functions."""
    head, body = text.split("class Operations:\n")
    imports = _imports(head)
    body = f"class Operations:\n{body.split(MARK)[0]}{MARK}{''.join(of_rows)}"
    declared = {n.name for n in ast.walk(ast.parse(body)) if isinstance(n, ast.FunctionDef)}
    for home, group in _by_module(declared):
        body += f"\n    # -- {home.removeprefix('tapegrad.')}\n"
        known = _imports(Path(str(sys.modules[home].__file__)).read_text(encoding="utf-8"))
        for name, function in group:
            variants = typing.get_overloads(inspect.unwrap(function))
            for one in variants or [function]:
                body += "    @overload\n" if variants else ""
                body += _declaration(name, one, home, known, imports)
    about = "".join(line for line in head.splitlines(keepends=True) if line.startswith("#"))
    used = {n.id for n in ast.walk(ast.parse(body)) if isinstance(n, ast.Name)}
    lines = _lines({name: home for name, home in imports.items() if name in used})
    return f"{about}\n{lines}\n{body}"


def _by_module(declared: set[str]) -> Iterator[tuple[str, list[tuple[str, Callable[..., Any]]]]]:
    """Methods that are not declared yet, by the module of their function."""
    deferred.attach_all()
    found: dict[str, list[tuple[str, Callable[..., Any]]]] = {}
    for name, function in vars(tapegrad.Tensor).items():
        home = getattr(inspect.unwrap(function) if callable(function) else None, "__module__", "")
        if home.startswith(HOMES) and name not in declared and not name.startswith("_"):
            found.setdefault(home, []).append((name, function))
    for home in sorted(found):
        yield home, sorted(found[home], key=lambda pair: pair[0])


def _declaration(
    name: str, function: Callable[..., Any], home: str, known: Imports, imports: Imports
) -> str:
    """A declaration in the stub; what its types need is added to the imports."""

    def typed(annotation: Any) -> str:
        tree = ast.parse(str(annotation), mode="eval")
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and not hasattr(builtins, node.id):
                imports.setdefault(node.id, known.get(node.id, (home, node.id)))
            elif isinstance(node, ast.Name) and node.id in BUILTIN:
                node.id = f"_{node.id}"
        return ast.unparse(tree)

    signature = inspect.signature(function)
    parts, bare_star = ["self"], False
    for p in list(signature.parameters.values())[1:]:
        bare_star |= p.kind is p.VAR_POSITIONAL
        if p.kind is p.KEYWORD_ONLY and not bare_star:
            parts.append("*")
            bare_star = True
        star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        default = "" if p.default is p.empty else f" = {_constant(p.default)}"
        parts.append(f"{star}{p.name}: {typed(p.annotation)}{default}")
    result = signature.return_annotation
    if "ViewRequest" in result:  # what `view_of` makes views from
        result = "tuple[Tensor, ...]" if "Multi" in result else "Tensor"
    return _wrapped(f"def {name}", parts, f"-> {typed(result)}: ...")


def _constant(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _wrapped(head: str, parts: list[str], tail: str) -> str:
    """A declaration in one line, with its parameters in one, or each in its own."""
    listed = ", ".join(parts)
    line = f"    {head}({listed}) {tail}\n"
    if len(line) <= WIDTH + 1:
        return line
    if len(listed) <= WIDTH - 8:
        return f"    {head}(\n        {listed}\n    ) {tail}\n"
    return f"    {head}(\n{''.join(f'        {part},' + chr(10) for part in parts)}    ) {tail}\n"


def _imports(source: str) -> Imports:
    """What a module imports by name, or as a whole."""
    found: Imports = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {n.asname or n.name: (node.module, n.name) for n in node.names}
        elif isinstance(node, ast.Import):
            found |= {n.asname: (n.name, "") for n in node.names if n.asname}
    return found


def _lines(imports: Imports) -> str:
    """Import statements in the order that ruff sorts them into."""
    groups: dict[int, set[str]] = {0: set(), 1: set(), 2: set()}
    for name, (module, own) in imports.items():
        group = 2 if module.startswith("tapegrad") else module.split(".")[0] == "numpy"
        together = [] if own != name else [k for k, v in imports.items() if v == (module, k)]
        what = ", ".join(sorted(together, key=_sorted)) or f"{own} as {name}"
        plain = f"import {module} as {name}" if not own else f"from {module} import {what}"
        groups[group].add(plain)
    return "\n".join(
        "".join(f"{line}\n" for line in sorted(group, key=lambda line: (line[:4] == "from", line)))
        for group in groups.values()
    )


def _sorted(name: str) -> tuple[bool, bool, str]:
    """Constants first, then classes, then the rest."""
    return not name.isupper(), not name[:1].isupper(), name
