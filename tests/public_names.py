"""Write what follows from the rows of the table: `python -m tests.public_names`.

`tests/functions/test_elementwise.py` holds the files to what this module would write.
"""

import ast
import importlib
import inspect
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

PACKAGE = Path(__file__).parents[1] / "tapegrad"
if __name__ == "__main__":  # rows alone: what `tapegrad` makes of new ones is not written yet
    sys.modules["tapegrad"] = ModuleType("tapegrad")
    sys.modules["tapegrad"].__path__ = [str(PACKAGE)]

import tapegrad  # noqa: E402 - after what stands in for it
from tapegrad.base.deferred_names import deferred_names  # noqa: E402
from tapegrad.functions.deferred import deferred_functions  # noqa: E402
from tapegrad.ops import bessel, elementwise, incomplete, logic, reduce, special  # noqa: E402
from tapegrad.ops.core import Op  # noqa: E402
from tapegrad.ops.families import by_code  # noqa: E402

FUNCTIONS = PACKAGE / "functions"
SIGNATURES = PACKAGE / "functions" / "signatures.pyi"
OPERATIONS = PACKAGE.parent / "docs" / "operations.md"
README = PACKAGE.parent / "README.md"
NAMESPACES = {
    "": PACKAGE / "__init__.py", "special": PACKAGE / "special" / "__init__.py",
    "fft": PACKAGE / "fft" / "__init__.py", "nn.functional": PACKAGE / "nn" / "functional.py",
}  # fmt: skip
OF_ROWS = ("", "special")  # that have functions made of rows
FAMILIES = {
    "e": elementwise, "logic": logic, "special": special, "incomplete": incomplete,
    "bessel": bessel, "reduce": reduce,
}  # fmt: skip
WIDTH = 100
UNLISTED = {"Any", "missing", "dir_of", "annotations", "*"}  # imported for the module itself
HIDDEN = {"explain"}  # found, and not shown
DEFERRED = re.compile(r"(?<=when it is first asked for\n).*?\n(?=\n)", re.DOTALL)


HEADS = {
    "elementwise": (
        '''"""Elementwise functions: written from the rows by `python -m tests.public_names`."""

from tapegrad.functions.row_functions import of_one, of_two
from tapegrad.ops import bessel, incomplete, logic, special
from tapegrad.ops import elementwise as e
''',
        ("of_one", "of_two"),
    ),
    "axis": (
        '''"""Functions along dimensions: written from rows by `python -m tests.public_names`."""

from tapegrad.functions.row_functions import of_reduction, of_rows
from tapegrad.ops import reduce
''',
        ("of_reduction", "of_rows"),
    ),
}
# What a method takes, as the stub tells type checkers.
PARAMETERS = {
    "of_one": "",
    "of_two": ", other: Operand",
    "of_reduction": ", dim: Dim, keepdim: _bool = False",
    "of_rows": ", dim: _int, *, dtype: TypeLike | None = None",
}


def rows() -> list[Op]:
    """The rows that are public functions by themselves."""
    return [op for op in by_code if op.doc]


def maker(op: Op) -> str:
    """What makes the function of a row."""
    if op.axis:
        return "of_reduction" if op.axis == "reduce" else "of_rows"
    return "of_one" if len(op.inputs) == 1 else "of_two"


def functions(module: str) -> str:
    """A module of functions."""
    head, makers = HEADS[module]
    lines = [head]
    for op in rows():
        if maker(op) in makers:
            home = next(k for k, m in FAMILIES.items() if getattr(m, op.name, None) is op)
            lines.append(f"{' = '.join(op.names)} = {maker(op)}({home}.{op.name}, __name__)")
    return "\n".join(lines) + "\n"


def signatures(text: str) -> str:
    """The stub of the methods."""
    from tests import method_signatures  # needs all of `tapegrad`

    lines = []
    for op in rows():
        if op.namespace:
            continue
        more = PARAMETERS[maker(op)]
        for name in op.names:
            for form in ("", "_") if op.inplace else ("",):
                lines.append(f"    def {name}{form}(self{more}) -> Tensor: ...\n")
    return method_signatures.written(text, lines)


def namespace(text: str, home: str) -> str:
    """A module that users import names from: the imports of the functions, and `__all__`."""
    for module, (_, makers) in HEADS.items() if home in OF_ROWS else ():
        source = f"tapegrad.functions.{module}"
        node = _import(text, source)
        wanted = {
            n for op in rows() if op.namespace == home and maker(op) in makers for n in op.names
        }
        if home:  # what it shows of the names of `tapegrad`
            wanted |= {alias.name for alias in node.names}
        text = _replaced(text, node, imported(source, wanted) + "\n")
    if not home:
        text = DEFERRED.sub(lambda _: deferred(), text)
    for node in reversed(ast.parse(text).body):
        if isinstance(node, ast.ImportFrom) and node.end_lineno != node.lineno:
            names = [alias.name for alias in node.names]
            text = _replaced(text, node, imported(str(node.module), names) + "\n")
    tree = ast.parse(text)
    (everything,) = (
        n for n in tree.body if isinstance(n, ast.Assign) and ast.unparse(n.targets) == "__all__"
    )
    listed = ", ".join(f'"{name}"' for name in sorted(_bound(tree), key=_natural))
    wrapped = textwrap.fill(listed + ",", WIDTH, initial_indent=" " * 4, subsequent_indent=" " * 4)
    return _replaced(text, everything, f"__all__ = [\n{wrapped}\n]  # fmt: skip\n")


def imported(module: str, names: Iterable[str], width: int = WIDTH) -> str:
    """The import of names from a module, as many on a line as there is room for."""
    listed = ", ".join(sorted(names, key=_natural))
    line = f"from {module} import {listed}"
    if len(line) <= width:
        return line
    wrapped = textwrap.indent(textwrap.fill(listed + ",", width - 4), " " * 4)
    return f"from {module} import (\n{wrapped}\n)"


def deferred() -> str:
    """The imports that say to type checkers what `__getattr__` of `tapegrad` loads."""
    names: dict[str, list[str]] = {}
    homes = {name: f"functions.{module}" for name, module in deferred_functions().items()}
    for name, module in (homes | deferred_names()).items():
        if name not in HIDDEN:
            names.setdefault(f"tapegrad.{module}".rstrip("."), []).append(name)
    lines = ["# fmt: off", "# isort: off"]
    lines += [imported(module, found, WIDTH - 4) for module, found in sorted(names.items())]
    return textwrap.indent("\n".join([*lines, "# isort: on", "# fmt: on"]), " " * 4) + "\n"


def _import(text: str, source: str) -> ast.ImportFrom:
    """The import of functions that keep their names."""
    (node,) = (
        n for n in ast.parse(text).body
        if isinstance(n, ast.ImportFrom) and n.module == source and not n.names[0].asname
    )  # fmt: skip
    return node


def _replaced(text: str, node: ast.stmt, new: str) -> str:
    lines = text.splitlines(keepends=True)
    lines[node.lineno - 1 : node.end_lineno] = [new]
    return "".join(lines)


def _bound(tree: ast.Module) -> set[str]:
    """The public names that a module binds, those for type checkers among them."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            found |= {alias.asname or alias.name for alias in node.names}
            if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
                found |= {*importlib.import_module(str(node.module)).__all__}
    for node in tree.body:
        if isinstance(node, ast.Assign):
            found |= {n.id for t in node.targets for n in ast.walk(t) if isinstance(n, ast.Name)}
    return {name for name in found if not name.startswith("_") and name not in UNLISTED}


def _natural(name: str) -> list[object]:
    """Names in the order that ruff sorts imports into: numbers by their value."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def operations() -> str:
    """The page that lists every function of Tensors."""
    from tests import operations_page  # needs all of `tapegrad`

    return operations_page.written(count())


def count() -> int:
    """The number of functions of Tensors, each counted once, in all namespaces."""
    homes = [tapegrad, tapegrad.linalg, tapegrad.special, tapegrad.fft, tapegrad.nn.functional]
    own = ("tapegrad.functions.", "tapegrad.nn.")
    found = {
        id(thing) for home in homes for name in home.__all__
        if inspect.isroutine(thing := getattr(home, name))
        and (getattr(thing, "__module__", None) or "").startswith(own)
    }  # fmt: skip
    return len(found)


def from_rows() -> dict[Path, str]:
    """What stands in each file that is written from rows alone."""
    found = {FUNCTIONS / f"{module}.py": functions(module) for module in HEADS}
    for home, path in NAMESPACES.items():
        found[path] = namespace(path.read_text(encoding="utf-8"), home)
    return found


def source_files() -> dict[Path, str]:
    """What stands in each file of the package that is written."""
    return from_rows() | {SIGNATURES: signatures(SIGNATURES.read_text(encoding="utf-8"))}


def files() -> dict[Path, str]:
    """What stands in each file that is written."""
    said = re.sub(r"(There are )\d+( operations)", rf"\g<1>{count()}\2", README.read_text("utf-8"))
    return source_files() | {OPERATIONS: operations(), README: said}


def write(found: dict[Path, str]) -> None:
    """Write files."""
    for path, text in found.items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(from_rows())
    rest = "from tests.public_names import files, write; write(files())"
    subprocess.run([sys.executable, "-c", rest], check=True)
