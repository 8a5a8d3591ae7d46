"""The pages of the site that are made when it is built: the front page and the reference.

`mkdocs.yml` names this file as a hook. A page of the reference is a namespace, or a group of the
functions of `tapegrad`; an entry is the signature and the docstring of what users import.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import tapegrad as tg

ROOT = Path(__file__).parents[1]
# Pages from files of the root, whose links lead into docs/.
FROM_ROOT = {"index": "README", "contributing": "CONTRIBUTING", "changelog": "CHANGELOG"}
SOURCES = "https://github.com/tapegrad/tapegrad/blob/main"
# The functions of `tapegrad` by the modules that define them: file, title, modules.
GROUPS = (
    ("tensors", "Making Tensors", "tensor base functions.creation functions.ranges"),
    ("transforms", "Transforms and control flow", "transforms functions.pure_callback"),
    ("jit", "The compiler", "compiler"),
    ("modes", "Grad modes and threads", "autograd parallel tape"),
    ("elementwise", "Elementwise functions",
     "functions.elementwise functions.arithmetic functions.special functions.exponents "
     "functions.rounding functions.activations functions.complex_parts functions.calculus"),
    ("reductions", "Reductions, order, statistics",
     "functions.reductions functions.axis functions.norms functions.statistics functions.sets "
     "functions.quantiles functions.order_statistics functions.histograms functions.scans "
     "functions.joint_histograms"),
    ("shapes", "Shapes, joining, indexing",
     "functions.shapes functions.joining functions.tiling functions.strided_views "
     "functions.indexing functions.scattering functions.masking functions.diagonals"),
    ("matrices", "Products and matrices",
     "functions.products functions.added_products functions.contractions functions.matrices "
     "functions.matrix_chains functions.matrix_methods functions.lu functions.householder "
     "functions.factorizations functions.low_rank functions.distances"),
    ("random", "Random numbers and windows",
     "functions.random functions.distributions functions.windows functions.spectrograms"),
    ("networks", "Functions of networks", "nn"),
    ("more", "Further functions", ""),
)  # fmt: skip
# What functions return, and users call methods of: page, module, class, methods.
RETURNED = (
    ("jit", "tapegrad.compiler.front.jitted", "Jitted", "lower cache_info clear_cache njit cfunc"),
)


class Entry(NamedTuple):
    """One thing, and the names under which it is imported: its own first."""

    thing: Any
    names: list[str]


def namespaces() -> dict[str, ModuleType]:
    """Every module that users import names from, by its path, from the top down."""
    found = {"tg": tg}
    pending = ["tg"]
    while pending:
        path = pending.pop(0)
        for name in found[path].__all__:
            thing = getattr(found[path], name)
            if isinstance(thing, ModuleType) and thing not in found.values():
                found[f"{path}.{name}"] = thing
                pending.append(f"{path}.{name}")
    return found


def is_ours(thing: Any) -> bool:
    return (getattr(thing, "__module__", None) or "").startswith("tapegrad")


def entries(path: str, module: Any, names: list[str]) -> list[Entry]:
    """What a namespace or a class holds, each thing once, in the order of their names."""
    found: dict[int | str, Entry] = {}
    for name in sorted(names):
        thing = getattr(module, name)
        if inspect.isclass(module):
            thing = inspect.getattr_static(module, name)
        if isinstance(thing, ModuleType):
            continue
        key = id(thing) if callable(thing) else name
        entry = found.setdefault(key, Entry(thing, []))
        entry.names.append(f"{path}.{name}")
    for entry in found.values():
        own = getattr(entry.thing, "__name__", "")
        entry.names.sort(key=lambda name, own=own: name.split(".")[-1] != own)
    return list(found.values())


class Text(str):
    """An annotation that a signature shows without quotes."""

    def __repr__(self) -> str:
        return str(self)


def signature(name: str, thing: Any) -> str:
    """The call of a function or class, as its definition has it; the name alone of others."""
    if not callable(thing):
        return name
    try:
        found = inspect.signature(thing)
    except (TypeError, ValueError):
        return f"{name}(...)"

    def shown(annotation: Any) -> Any:
        return Text(annotation) if isinstance(annotation, str) else annotation

    parameters = [
        p.replace(annotation=shown(p.annotation))
        for p in found.parameters.values()
        if p.name != "self"
    ]
    returns = inspect.Signature.empty if inspect.isclass(thing) else shown(found.return_annotation)
    found = found.replace(parameters=parameters, return_annotation=returns)
    return f"{name}{found}"


def markdown(doc: str) -> str:
    """A docstring: its sections as lists, its examples as blocks."""
    out: list[str] = []
    lines = [*doc.splitlines(), ""]
    section = example = False
    for line, after in zip(lines, [*lines[1:], ""]):
        if example:
            out += [line] if line else ["```", ""]
            example = bool(line)
        elif line.startswith(">>>"):
            out += ["", "```pycon", line]
            section, example = False, True
        elif after and set(after) == {"-"}:
            out += [f"**{line}**", ""]
            section = True
        elif line and set(line) == {"-"}:
            continue
        elif section and line and not line.startswith(" "):
            name, _, about = line.partition(" : ")
            out.append(f"- `{name}`: {escaped(about)}" if about else f"- {escaped(line)}")
        else:
            section = section and bool(line)
            out.append(escaped(line))
    return "\n".join(out).strip()


def introduction(module: ModuleType) -> str:
    """The first paragraph and the examples of a module: what else it says is of its files."""
    first, *rest = (inspect.getdoc(module) or "").split("\n\n")
    return markdown("\n\n".join([first, *(part for part in rest if part.startswith(">>>"))]))


def escaped(line: str) -> str:
    """Text in which Markdown reads nothing but code."""
    parts = re.split(r"(`+[^`]+`+)", line)
    parts[::2] = [re.sub(r"([*<|\[])", r"\\\1", part) for part in parts[::2]]
    return "".join(parts)


def written(entry: Entry, in_place: list[str]) -> str:
    """An entry: heading, signature, other names, docstring."""
    name, *others = entry.names
    # In the attributes of a heading Markdown reads two underscores as emphasis.
    place = "" if "__" in name else f" {{ #{name} }}"
    lines = [f"### `{name}`{place}", "", "```python", signature(name, entry.thing), "```"]
    further = (*([] if place else [name]), *others, *in_place)
    anchors = "".join(f'<a id="{other}"></a>' for other in further)
    if others:
        lines += ["", f"Also {', '.join(f'`{other}`' for other in others)}."]
    if in_place:
        lines += ["", f"In place: {', '.join(f'`{other}`' for other in in_place)}."]
    return "\n".join([*lines, "", anchors, "", markdown(inspect.getdoc(entry.thing) or ""), ""])


def listed(found: list[Entry]) -> Iterator[str]:
    """Entries in order. What is another's form in place stands with that one; values in a table."""
    forms: dict[str, list[str]] = {}
    heads = {name for entry in found for name in entry.names}
    rest = []
    for entry in found:
        base = entry.names[0].removesuffix("_")
        if callable(entry.thing) and base != entry.names[0] and base in heads:
            forms.setdefault(base, []).extend(entry.names)
        else:
            rest.append(entry)
    values = [x for x in rest if isinstance(x.thing, tg.dtype | float | str | None)]
    for entry in rest:
        if entry not in values:
            yield written(entry, [form for name in entry.names for form in forms.get(name, [])])
    if values:
        yield "### Values\n\n| name | value |\n|---|---|"
        for entry in values:
            name = entry.names[0]
            yield f'| <a id="{name}"></a>`{name}` | `{entry.thing!r}` |'


def group_of(thing: Any) -> str:
    """The page of a thing of `tapegrad`: by the longest name of a module that it is from."""
    home = (getattr(thing, "__module__", None) or "tapegrad.base").removeprefix("tapegrad.")
    for file, _, modules in GROUPS:
        if any(f"{home}.".startswith(f"{module}.") for module in modules.split()):
            return file
    return "tensors" if not callable(thing) else "more"


def top_level() -> dict[str, str]:
    """The pages of `tapegrad`'s own names."""
    everything = entries("tg", tg, tg.__all__)
    functions = {entry.names[0]: group_of(entry.thing) for entry in everything}
    pages = {}
    for file, title, _ in GROUPS:
        here = [
            x for x in everything
            if functions.get(x.names[0].removesuffix("_"), functions[x.names[0]]) == file
            and x.thing is not tg.Tensor
        ]  # fmt: skip
        text = [f"# {title}\n", *listed(here)]
        for page, module, name, methods in RETURNED:
            if page == file:
                kind = getattr(importlib.import_module(module), name)
                text += [f"## What `tg.{page}` returns\n", markdown(inspect.getdoc(kind) or ""), ""]
                text += listed(entries(name, kind, methods.split()))
        pages[file] = "\n".join(text)
    return pages


def tensor_page() -> str:
    """The methods of a Tensor; those that are functions of `tapegrad` are named alone."""
    names = [name for name in vars(tg.Tensor) if not name.startswith("_")]
    known = {name for name in names if name in tg.__all__}
    known |= {name for name in names if name.removesuffix("_") in known}
    own = entries("Tensor", tg.Tensor, [name for name in names if name not in known])
    shared = ", ".join(f'<a id="Tensor.{name}"></a>`{name}`' for name in sorted(known))
    return "\n".join([
        '# Tensor { #tg.Tensor }\n', markdown(inspect.getdoc(tg.Tensor) or ""), "",
        "## Methods that are functions of `tg`\n",
        "The Tensor is the first argument of the function of that name; a name that ends in `_` "
        f"writes the result into the Tensor.\n\n{shared}\n",
        "## Other methods and attributes\n", *listed(own),
    ])  # fmt: skip


def namespace_page(path: str, module: ModuleType, seen: set[int]) -> str:
    """The page of a namespace. What `seen` holds, and what is not ours, is named alone."""
    found = entries(path, module, module.__all__)
    mine, elsewhere = [], []
    for entry in found:
        ours = not callable(entry.thing) or (is_ours(entry.thing) and id(entry.thing) not in seen)
        (mine if ours else elsewhere).append(entry)
    seen |= {id(entry.thing) for entry in mine if callable(entry.thing)}
    text = [f"# {path}\n", introduction(module), "", *listed(mine)]
    names = sorted(name for entry in elsewhere for name in entry.names)
    if names:
        said = ", ".join(f'<a id="{name}"></a>`{name.split(".")[-1]}`' for name in names)
        text.append(f"\n## The same as elsewhere\n\nFunctions of `tg`, or of NumPy: {said}\n")
    return "\n".join(text)


@functools.cache
def reference() -> dict[str, tuple[str, str]]:
    """Every page of the reference by its file: title and text."""
    tops = top_level()
    pages = {file: (title, tops[file]) for file, title, _ in GROUPS if "###" in tops[file]}
    pages = {"tensor": ("Tensor", tensor_page()), **pages}
    seen = {id(getattr(tg, name)) for name in tg.__all__}
    for path, module in namespaces().items():
        if path != "tg" and module.__all__:
            pages[path.removeprefix("tg.")] = (path, namespace_page(path, module, seen))
    lines = ["# Reference\n", "Every public name with its signature and an example.\n"]
    lines += [f"* [{title}]({file}.md)" for file, (title, _) in pages.items()]
    return {"index": ("Reference", "\n".join(lines)), **pages}


def root_page(name: str) -> str:
    """A page of the root, with its links as they are from docs/."""
    text = (ROOT / f"{name}.md").read_text(encoding="utf-8").replace("](docs/", "](")
    for file, other in FROM_ROOT.items():
        text = text.replace(f"]({other}.md)", f"]({file}.md)")
    return re.sub(r"\]\((?=examples/)", f"]({SOURCES}/", text)


def on_config(config: Any) -> Any:
    """Give the reference its place in the navigation."""
    pages: list[Any] = ["reference/index.md"]
    pages += [
        {t: f"reference/{file}.md"} for file, (t, _) in reference().items() if file != "index"
    ]
    for entry in config["nav"]:
        if "Reference" in entry:
            entry["Reference"] = pages
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages."""
    from mkdocs.structure.files import File

    made = {f"{file}.md": root_page(name) for file, name in FROM_ROOT.items()}
    made |= {f"reference/{file}.md": text for file, (_, text) in reference().items()}
    for path, text in made.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Tell the highlighter which blocks are sessions; lead links to files of the root to pages."""
    for file, other in FROM_ROOT.items():
        markdown = markdown.replace(f"](../{other}.md", f"]({file}.md")
    return re.sub(r"^```python\n(?=>>>)", "```pycon\n", markdown, flags=re.MULTILINE)
