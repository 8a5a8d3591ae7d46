"""The house rules that a machine can hold: layers, sizes, what an import loads, docstrings."""

import ast
import functools
import gc
import graphlib
import importlib
import importlib.metadata
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.tapegrad_only("about this project")

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "tapegrad"

# From the lowest to the highest. A module imports from its own layer and from those below. An entry
# is a module or a whole package; the entry that says most about a module counts.
LAYERS = (
    {"base"},
    {"tape", "cuda"},
    {"kernels", "native"},  # compiled code that knows no operation
    {"ops"},
    {"kernels.codegen.rule_codegen"},  # forms and formulas of the table of operations
    {"compiler.llvm"},
    {"kernels.codegen"},  # loops, from these
    {"parallel"},
    {"kernels.large"},
    {"tensor"},
    {"dispatch"},
    {"native.install", "native.bindings", "native.stubs", "native.view_cache"},
    {"functions"},
    {"array_api"},
    {"numpy_face"},
    {"autograd"},
    {"nn", "linalg", "special", "fft"},
    {"lift"},
    {"transforms"},
    {"optimize", "optim", "distributed", "scipy"},
    {"compat"},
    {"func", "autograd.functional", "autograd.forward_ad"},  # PyTorch's names for transforms
    {"compiler.ir"},
    {"compiler.trace"},
    {"compiler.passes"},
    {"compiler.codegen"},
    {"compiler.schedule"},
    {"compiler.lower"},
    {"compiler.runtime"},
    {"compiler.front", "compiler", "njit"},
    {"show"},
    {"__init__"},
    {"diagnostics"},
    {"__main__"},
)
RANK = {entry: rank for rank, layer in enumerate(LAYERS) for entry in layer}

# (importer, imported): imports inside functions, or for types, that may close a circle, and why.
LAZY: dict[tuple[str, str], str] = {
    ("tapegrad.ops.large", "tapegrad.kernels.large"): "loops that rows name, when first called",
    ("tapegrad.dispatch.op_functions", "tapegrad.functions.sparse"): "sparse operands are rare",
    ("tapegrad.tensor", "tapegrad.functions.signatures"): "a stub: methods are put on the Tensor",
    ("tapegrad.tensor", "tapegrad.show.graph_picture"): "a Tensor's picture in notebooks",
    ("tapegrad.autograd.engine", "tapegrad.lift.lifted_sweep"): "gradients under a transform",
    ("tapegrad.autograd.gradcheck", "tapegrad.autograd.forward_ad"): "it checks forward mode, too",
    ("tapegrad.autograd.gradcheck", "tapegrad.func"): "it checks products under a map, too",
    ("tapegrad.autograd", "tapegrad.autograd.forward_ad"): "a name that users import from it",
    ("tapegrad.autograd", "tapegrad.autograd.functional"): "a name that users import from it",
    ("tapegrad.transforms.numba_functions", "tapegrad.njit.derivatives"): "of Numba's functions",
    ("tapegrad.numpy_face.methods", "tapegrad.njit.tensor_calls"): "Numba asks for a Tensor's type",
}

# Who may import the compilers, and the one file that may say njit.
COMPILERS = {"numba": {"kernels", "compiler", "njit"}, "llvmlite": {"kernels", "compiler", "njit"}}
NJIT_HOME = PACKAGE / "kernels" / "flags.py"
NJIT = {"njit", "jit", "vectorize", "guvectorize", "cfunc", "generated_jit"}

# Folders that are nothing but names that users import; they say what these are.
NAMESPACES = {
    "array_api", "compat", "cuda", "fft", "func", "linalg", "nn", "optim", "scipy", "special",
    "__init__",
}  # fmt: skip
# Where a family of operations has a file of one name each: the same phase of several things.
FAMILIES = {"ops", "functions", "array_api", "numpy_face", "special", "linalg", "nn", "scipy"}
IMPORTED_BY_USERS = {"functional", "graph", "random"}  # as `tapegrad.autograd.graph`
# Folders of tests that are about the whole.
ACROSS = {"conformance", "faults", "fuzz", "peers", "suites"}

# Private words for things that have a name, and that name.
WENT = {
    "road": "path",
    "roads": "paths",
    "crew": "thread pool",
    "specimen": "abstract array",
    "bulk": "large arrays",
    "stirred": "moves",
    "travelling": "native ops",
    "rewind": "truncate",
    "glimpse": "peek",
}

# Identifiers of the package, without underscores in front, that are too vague to search for.
NAMES_THAT_WENT = {
    "apart": "disjoint, outlined, separated, varying",
    "asked": "requested, required",
    "bend": "pull",
    "few": "small, or a limit's name",
    "lone": "single",
    "narrowed": "float32, pruned, squeezed",
    "owe": "add_debt",
    "picked": "gathered",
    "sow": "set_seeds",
    "standing": "outlined, redirected",
    "told": "announced",
    "turn": "transpose, apply_view",
    "way": "path, order",
    "wide": "broadcast, float64, vector",
}

# (file, name): tables outside `tapegrad/ops/` that name operations, and why no row says that. What
# is true of an operation stands in its row; this list is never to have more than three entries.
NAMES_OF_OPERATIONS: dict[tuple[str, str], str] = {
    ("compiler/llvm/ssa.py", "LIBM"): "functions of the C library",
    ("scipy/stats/distribution.py", "SUMMARIES"): "what describes a distribution, no sample",
}

LINES = 600
# Files over the budget with their length. Entries may shrink and go; none may come.
LONG: dict[str, int] = {}


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def part(module: str) -> str:
    """The entry of LAYERS that a module belongs to: tapegrad.ops.shape -> ops."""
    steps = module.split(".")[1:]
    if not steps:
        return "__init__"
    names = [".".join(steps[:n]) for n in range(len(steps), 0, -1)]
    return next((name for name in names if name in RANK), names[-1])


@functools.cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@functools.cache
def nodes(path: Path) -> list[ast.AST]:
    return list(ast.walk(parsed(path)))


@functools.cache
def imports(path: Path) -> list[tuple[ast.stmt, str]]:
    """Every import, and where it stands: at the top, in a `function`, for `types` alone."""
    found: list[tuple[ast.stmt, str]] = []
    pending: list[tuple[ast.AST, str]] = [(parsed(path), "top")]
    while pending:
        node, place = pending.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            found.append((node, place))
        elif isinstance(node, ast.Call) and (module := by_name(node)):
            found.append((ast.Import([ast.alias(module)]), place))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            place = "function"
        elif isinstance(node, ast.If) and identifier(node.test) == "TYPE_CHECKING":
            place = "types"
        pending += [(child, place) for child in ast.iter_child_nodes(node)]
    return found


def by_name(call: ast.Call) -> str | None:
    """The module that a call of `import_module` names, if it is one."""
    if identifier(call.func) != "import_module" or not isinstance(call.args[0], ast.Constant):
        return None
    return str(call.args[0].value)


def identifier(node: ast.expr) -> str | None:
    """The last part of a dotted name."""
    return getattr(node, "id", None) or getattr(node, "attr", None)


def targets(name: str, path: Path, node: ast.stmt) -> list[str]:
    """The absolute names that an import statement reaches for."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    assert isinstance(node, ast.ImportFrom)
    base = node.module or ""
    if node.level:
        package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
        base = ".".join([*package[: len(package) - node.level + 1], *filter(None, [base])])
    found = [f"{base}.{alias.name}" for alias in node.names]
    return [target if target in MODULES else base for target in found]


@pytest.fixture(scope="module", autouse=True)
def _forget():
    """A quarter of a gigabyte, in a million objects; the collector need not look at them."""
    gc.disable()
    yield
    gc.enable()
    for kept in (parsed, nodes, imports):
        kept.cache_clear()


@functools.cache
def edges() -> list[tuple[str, str, str]]:
    return [
        (name, target, place)
        for name, path in MODULES.items()
        for node, place in imports(path)
        for target in targets(name, path, node)
    ]


def inner_edges() -> set[tuple[str, str]]:
    """Who imports what of the package: at the top, inside functions, or for type checkers."""
    return {
        (name, target)
        for name, target, place in edges()
        if target.split(".")[0] == "tapegrad"
        if name != target and not (place != "top" and (name, target) in LAZY)
    }


def test_every_module_has_a_layer():
    unknown = {part(name) for name in MODULES} - RANK.keys()
    assert not unknown, f"give these a place in LAYERS: {unknown}"


def test_imports_point_one_way():
    back = [
        f"{name} imports {target}"
        for name, target in sorted(inner_edges())
        if RANK[part(name)] < RANK[part(target)]
    ]
    assert not back


def test_imports_make_no_circle():
    """Not even where those count that are inside functions, or that type checkers alone read."""
    graph: dict[str, set[str]] = {}
    for name, target in inner_edges():
        graph.setdefault(name, set()).add(target)
    graphlib.TopologicalSorter(graph).prepare()


def test_an_import_changes_no_other_module():
    """What joins modules is an argument, or is done by a function that `tapegrad` calls by name."""
    found = []
    for name, path in MODULES.items():
        taken = {alias.asname or alias.name for node, _ in imports(path) for alias in node.names}
        for node in at_import(parsed(path)):
            calls = isinstance(node, ast.Call) and identifier(node.func) == "setattr"
            stores = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
            if calls or (stores and ast.unparse(node).split(".")[0] in taken):
                found.append(f"{name}:{node.lineno}")
    assert not found


def at_import(tree: ast.Module) -> Iterator[ast.AST]:
    """What runs when a module is imported: all but the bodies of functions."""
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            pending += ast.iter_child_nodes(node)


def test_lazy_imports_are_all_in_use():
    assert {(name, target) for name, target, place in edges() if place != "top"} >= LAZY.keys()
    assert all(LAZY.values()), "say why"
    stubs = {module_name(path) for path in PACKAGE.rglob("*.pyi")}
    assert not any(entry not in MODULES.keys() | stubs for edge in LAZY for entry in edge)


def test_every_layer_is_in_use():
    empty = RANK.keys() - {part(name) for name in MODULES}
    assert not empty, f"take these off LAYERS: {empty}"


def test_the_top_level_holds_the_tensor_and_folders():
    files = {path.name for path in PACKAGE.iterdir() if path.is_file()}
    assert files == {"__init__.py", "__main__.py", "tensor.py", "py.typed"}


def test_every_folder_says_what_is_in_it_and_who_imports_it():
    silent = []
    for name, path in MODULES.items():
        if path.name == "__init__.py" and part(name) not in NAMESPACES:
            said = ast.get_docstring(parsed(path)) or ""
            silent += [name] if "import" not in said else []
    assert not silent


def test_no_file_name_occurs_twice():
    """But for families of operations, which `ops`, `functions` and `numpy_face` have in common."""
    homes: dict[str, list[str]] = {}
    for name, path in MODULES.items():
        top = name.split(".")[1:2]
        if path.name != "__init__.py" and top not in (["compat"], ["tensor"]):
            homes.setdefault(path.stem, []).append(name)
    twice = {
        stem: found
        for stem, found in homes.items()
        if len([m for m in found if m.split(".")[1] not in FAMILIES]) + (len(found) > 1) > 1
        and stem not in IMPORTED_BY_USERS
    }
    assert not twice


def test_tests_mirror_the_package():
    homes: dict[str, set[str]] = {}
    for name in MODULES:
        homes.setdefault(name.split(".")[-1], set()).update(
            ["/".join(name.split(".")[1:-1]), "/".join(name.split(".")[1:])]
        )
    strays = []
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        folder = path.parent.relative_to(ROOT / "tests").as_posix()
        if folder.split("/")[0] in ACROSS or folder == ".":
            continue
        stem = path.stem.removeprefix("test_")
        if not (PACKAGE / folder).is_dir() or folder not in homes.get(stem, {folder}):
            strays.append(f"{folder}/{path.name}: {homes.get(stem)}")
    assert not strays


def test_documents_name_files_that_exist():
    files = ["/" + path.relative_to(ROOT).as_posix() for path in ROOT.glob("[a-z]*/**/*.py")]
    missing = []
    for path in [*(ROOT / "docs").glob("*.md"), ROOT / "CONTRIBUTING.md", ROOT / "README.md"]:
        for named in re.findall(r"`([\w/]+\.py)`", path.read_text(encoding="utf-8")):
            if not any(file.endswith("/" + named) for file in files):
                missing.append(f"{path.name}: {named}")
    assert not missing


def test_the_picture_shows_the_imports_as_they_are():
    from tests.architecture import PICTURE, picture

    assert PICTURE.read_text(encoding="utf-8") == picture(), "python -m tests.architecture"


def test_words_that_went_do_not_come_back():
    pattern = re.compile(rf"\b({'|'.join(WENT)})\b", re.IGNORECASE)
    found = []
    documents = [*ROOT.glob("*.md"), *ROOT.glob("[a-z]*/**/*.md")]
    for path in [*PACKAGE.rglob("*.py*"), *(ROOT / "tests").rglob("*.py"), *documents]:
        if path.name in ("CHANGELOG.md", "test_project.py"):
            continue
        if path.suffix not in (".py", ".pyi", ".md"):
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            for word in pattern.findall(line):
                where = f"{path.relative_to(ROOT)}:{number}"
                found.append(f"{where}: say {WENT[word.lower()]!r}, not {word!r}")
    assert not found


def test_identifiers_that_went_do_not_come_back():
    found = []
    for path in PACKAGE.rglob("*.py"):
        for node in nodes(path):
            for field in ("id", "attr", "arg", "name"):
                name = getattr(node, field, None) or ""
                if better := NAMES_THAT_WENT.get(name.lstrip("_").lower()):
                    line = getattr(node, "lineno", "")
                    found.append(f"{path.relative_to(ROOT)}:{line}: not {name!r}: {better}")
    assert not found


def strings_in(value: ast.expr) -> Iterator[list[str]]:
    """The strings of each list, set, tuple, split text, and of a dictionary's keys and values."""
    for node in ast.walk(value):
        parts: list[list[ast.expr]] = []
        if isinstance(node, ast.Dict):
            parts = [[key for key in node.keys if key], node.values]
        elif isinstance(node, ast.List | ast.Set | ast.Tuple):
            parts = [node.elts]
        elif isinstance(node, ast.Attribute) and node.attr == "split":
            parts = [[node.value]]
        for part in parts:
            texts = [x.value for x in part if isinstance(x, ast.Constant)]
            yield [word for text in texts if isinstance(text, str) for word in text.split()]


def test_what_is_true_of_operations_stands_in_their_rows():
    importlib.import_module("tapegrad.compiler")
    rows = importlib.import_module("tapegrad.ops.core").table
    found = set()
    for path in PACKAGE.rglob("*.py"):
        if path.is_relative_to(PACKAGE / "ops"):
            continue
        for node in parsed(path).body:
            if not isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) or not node.value:
                continue
            name = ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)
            lists = [set(words) for words in strings_in(node.value)]
            if name != "__all__" and any(2 < len(w & rows.keys()) > len(w) / 2 for w in lists):
                found.add((path.relative_to(PACKAGE).as_posix(), name))
    assert found == NAMES_OF_OPERATIONS.keys()
    assert len(NAMES_OF_OPERATIONS) <= 3


def test_compilers_are_imported_in_one_place():
    strays = []
    for name, target, _ in edges():
        home = part(name).split(".")[0]
        if home not in COMPILERS.get(target.split(".")[0], {home}):
            strays.append(f"{name} imports {target}")
    assert not strays


def test_one_file_says_njit():
    strays = []
    for path in MODULES.values():
        if path == NJIT_HOME:
            continue
        for node in nodes(path):
            by_name = isinstance(node, ast.ImportFrom) and (node.module or "").startswith("numba")
            if by_name and NJIT & {alias.name for alias in node.names}:
                strays.append(f"{path}:{node.lineno}")
            by_attribute = isinstance(node, ast.Attribute) and node.attr in NJIT
            if by_attribute and ast.unparse(node.value) in {"numba", "nb"}:
                strays.append(f"{path}:{node.lineno}")
    assert not strays, f"use the wrapper of {NJIT_HOME.name}"


def test_files_stay_within_the_budget():
    lengths = {}
    for folder in ("tapegrad", "tests", "bench"):
        for path in (ROOT / folder).rglob("*.py"):
            count = len(path.read_text(encoding="utf-8").splitlines())
            lengths[path.relative_to(ROOT).as_posix()] = count
    over = {path: count for path, count in lengths.items() if count > LONG.get(path, LINES)}
    assert not over, f"over {LINES} lines"
    assert all(lengths.get(path, 0) > LINES for path in LONG), "take it off the list: it fits"


def test_import_loads_no_compiler_and_no_scipy():
    code = (
        "import sys, tapegrad; print(*{m.split('.')[0] for m in sys.modules}"
        " & {'numba', 'llvmlite', 'scipy', 'torch', 'jax'})"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_version_is_the_installed_one():
    tapegrad = importlib.import_module("tapegrad")
    assert tapegrad.__version__ == importlib.metadata.version("tapegrad")


def public_members() -> Iterator[tuple[str, object]]:
    """Every public name of the package, of its public submodules and of its public classes."""
    pending: list[tuple[str, object]] = [("tapegrad", importlib.import_module("tapegrad"))]
    seen: set[int] = set()
    while pending:
        name, thing = pending.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        yield name, thing
        if isinstance(thing, ModuleType):
            names = thing.__all__
        elif inspect.isclass(thing):
            names = [key for key in vars(thing) if not key.startswith("_")]
        else:
            continue
        for key in names:
            member = inspect.getattr_static(thing, key, None)
            member = getattr(thing, key) if member is None else member
            pending.append((f"{name}.{key}", getattr(member, "__func__", member)))


def test_every_public_name_has_a_docstring():
    missing = []
    for name, thing in public_members():
        documented = callable(thing) or isinstance(thing, ModuleType | property)
        if documented and not (getattr(thing, "__doc__", None) or "").strip():
            missing.append(name)
    assert not missing
