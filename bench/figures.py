"""The figures at the front door: chosen rows of all suites, as a table and as a plot.

`docs/figures.json` keeps them, since each suite is a run of its own: what one run measures
replaces what it measured before.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from bench import report
from bench.report import Row, cell

ROOT = Path(__file__).parents[1]
KEPT, PLOT, README = (
    ROOT / "docs" / "figures.json",
    ROOT / "docs" / "figures.svg",
    ROOT / "README.md",
)
PLOTTED = {"torch": "PyTorch", "jax": "JAX", "autograd": "autograd", "casadi": "CasADi"}
# With whom: what is compiled with compilers, since nobody runs JAX without `jit` for its speed.
COMPARED = {
    "eager": ("torch", "autograd"),
    "transforms": ("torch", "autograd"),
    "jit": ("torch", "jax", "casadi"),
    "compile": ("torch", "jax", "casadi"),
}
# Suite, group and name of a row; what a reader is told that it is; whether the README has it.
CHOSEN = (
    ("eager", "forward and backward, per operation", "chain of 200, 1 elements",
     "one operation with its derivative, eager, 1 element", True),
    ("eager", "forward and backward, per operation", "chain of 200, 1024 elements",
     "the same, 1,024 elements", False),
    ("eager", "forward and backward, per step", "MLP step, batch 32, widths 64-64-64-1",
     "training step of a small network", True),
    ("eager", "forward and backward, per step", "RNN, 50 steps, width 16",
     "gradient of a recurrent network", False),
    ("transforms", "gradient", "Rosenbrock, n = 10",
     "`tg.grad` of Rosenbrock's function, 10 numbers", True),
    ("transforms", "gradient", "logistic regression, 1000 × 20",
     "`tg.grad` of a logistic regression, 1,000 × 20", False),
    ("transforms", "Hessian-vector product", "logistic regression, 1000 × 20",
     "its Hessian times a vector", False),
    ("jit", "GradBench, Numba by hand", "gmm, d = 10, k = 25, n = 1000, derivative",
     "compiled: gradient of a Gaussian mixture", True),
    ("jit", "GradBench, Numba by hand", "lstm, l = 2, c = 1024, derivative",
     "compiled: gradient of an LSTM", False),
    ("jit", "call of a compiled function of 4 doubles", "NumPy in and out",
     "call of a compiled function", True),
    ("compile", "until the first gradient is there", "200 operations on a vector of 37",
     "compiling a gradient of 200 operations on vectors", True),
)  # fmt: skip
WIDTH, LABELS, ROW, TOP, END = 900, 370, 26, 54, 40
STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #24292f }
  .grid { stroke: #d0d7de } .even { stroke: #57606a; stroke-width: 1.5 }
  .torch { fill: #d1495b } .jax { fill: #3066be } .autograd { fill: #2e9c6a }
  .casadi { fill: #c98a1b }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .grid { stroke: #30363d } .even { stroke: #8b949e }
    .torch { fill: #f47a8a } .jax { fill: #79a8ff } .autograd { fill: #5fd39b }
    .casadi { fill: #f0b849 }
  }"""


def renew(meta: dict[str, Any], rows: list[Row], root: Path = ROOT) -> None:
    """Keep what a suite has measured of the chosen rows; draw the plot and the README's table."""
    kept, plot, readme = (root / path.relative_to(ROOT) for path in (KEPT, PLOT, README))
    known = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    named = lambda row: ", ".join(filter(None, (row.name, row.phase)))
    measured = {(row.group, named(row)): row for row in rows if row.threads == 1}
    for suite, group, name, label, _ in CHOSEN:
        row = measured.get((group, name)) if suite == meta["suite"] else None
        if row:
            medians = {
                library: row.figures[library].median
                for library in ("tapegrad", *COMPARED[suite])
                if library in row.figures
            }
            known[label] = {"unit": row.unit, "medians": medians}
    known = {label: known[label] for *_, label, _ in CHOSEN if label in known}
    kept.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    plot.write_text(drawn(known), encoding="utf-8")
    report.replace(readme, "figures", table(known))


def table(known: dict[str, Any]) -> str:
    """Return the README's lines of figures."""
    lines = report.heading("median, one thread", ["tapegrad", *PLOTTED.values()], reach=False)
    for *_, label, shown in CHOSEN:
        if shown and label in known:
            unit, medians = known[label]["unit"], known[label]["medians"]
            cells = [
                f"{cell(medians[library])} {unit}" if library in medians else "–"
                for library in ("tapegrad", *PLOTTED)
            ]
            lines.append(report.line([label, *cells]))
    return "\n".join(lines)


def drawn(known: dict[str, Any]) -> str:
    """Return the plot: how many times as long as tapegrad each library takes, as SVG."""
    ratios = {
        label: {
            library: row["medians"][library] / row["medians"]["tapegrad"]
            for library in PLOTTED
            if library in row["medians"]
        }
        for label, row in known.items()
    }
    most = max((x for row in ratios.values() for x in row.values()), default=1.0)
    least = min((x for row in ratios.values() for x in row.values()), default=1.0)
    powers = range(min(math.floor(math.log10(least)), 0), max(math.ceil(math.log10(most)), 1) + 1)
    span = (WIDTH - LABELS - END) / (len(powers) - 1)
    place = lambda ratio: LABELS + (math.log10(ratio) - powers[0]) * span
    bottom = TOP + ROW * len(ratios)
    lines = [
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {bottom + 46}' "
        f"role='img'><title>Time of each library relative to tapegrad</title>",
        f"<style>{STYLE}\n</style>",
    ]
    for k, (library, name) in enumerate(PLOTTED.items()):
        x = LABELS + k * 100
        lines.append(f"<circle class='{library}' cx='{x}' cy='18' r='6'/>")
        lines.append(f"<text x='{x + 12}' y='23'>{name}</text>")
    for power in powers:
        x, kind = place(10.0**power), "grid" if power else "even"
        lines.append(f"<path class='{kind}' d='M{x:.1f} {TOP - 14}V{bottom}'/>")
        lines.append(
            f"<text x='{x:.1f}' y='{bottom + 18}' text-anchor='middle'>{told(power)}</text>"
        )
    for k, (label, row) in enumerate(ratios.items()):
        y = TOP + ROW * k
        lines.append(f"<text x='{LABELS - 16}' y='{y + 5}' text-anchor='end'>{plain(label)}</text>")
        lines += [
            f"<circle class='{library}' cx='{place(ratio):.1f}' cy='{y}' r='6'>"
            f"<title>{PLOTTED[library]}: {ratio:.2f}×</title></circle>"
            for library, ratio in row.items()
        ]
    lines.append(
        f"<text x='{LABELS}' y='{bottom + 38}'>time of the library / time of tapegrad: right of "
        "1× tapegrad is faster</text>"
    )
    return "\n".join([*lines, "</svg>", ""])


def told(power: int) -> str:
    """Return a power of ten as a number."""
    return f"{10**power:,}×" if power >= 0 else f"{10.0**power:g}×"


def plain(label: str) -> str:
    """Return a label without what marks code in Markdown."""
    return label.replace("`", "")
