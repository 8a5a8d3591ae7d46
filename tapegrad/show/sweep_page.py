"""A reverse sweep as one page of HTML to step through, which needs nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tapegrad.show.graph_svg import LONGEST, escaped

STYLE = """
:root { color-scheme: light dark }
body { font: 14px/1.45 system-ui, sans-serif; margin: 0; color: #1f2328; background: #ffffff }
header { position: sticky; top: 0; padding: 12px 20px; background: inherit;
  border-bottom: 1px solid #d0d7de; z-index: 1 }
h1 { font-size: 16px; margin: 0 0 10px }
nav { display: flex; gap: 10px; align-items: center; max-width: 760px }
nav input { flex: 1; min-width: 80px }
button { font: inherit; padding: 4px 14px; cursor: pointer }
#count { min-width: 9em }
main { display: flex; flex-wrap: wrap; gap: 20px; padding: 16px 20px; align-items: flex-start }
#graph { overflow: auto; max-height: calc(100vh - 130px); max-width: 100% }
#graph .tapegrad-graph { max-width: none; display: block }
#panel { flex: 1 1 440px; min-width: 0; overflow-x: auto }
h2 { font-size: 15px; margin: 4px 0 6px }
p { margin: 0 0 10px }
table { border-collapse: collapse; margin: 0 0 22px; font: 13px/1.4 ui-monospace, SFMono-Regular,
  Menlo, Consolas, "DejaVu Sans Mono", "Liberation Mono", monospace }
th, td { text-align: left; padding: 3px 16px 3px 0; border-bottom: 1px solid #d0d7de;
  vertical-align: top }
th { font-weight: normal; color: #57606a }
tr.new td { color: #0b66d0; font-weight: bold }
@media (prefers-color-scheme: dark) {
body { color: #e6edf3; background: #14171a }
header, th, td { border-color: #373e47 }
th { color: #9aa4af }
tr.new td { color: #58a6ff }
}
"""
SCRIPT = """
const sweep = JSON.parse(document.getElementById("data").textContent);
const find = id => document.getElementById(id);
const slider = find("slider");
let now = 0;

function fill(table, head, rows, isNew) {
  table.replaceChildren();
  if (!rows.length) return;
  const line = (cells, tag) => {
    const tr = table.insertRow();
    for (const cell of cells)
      tr.appendChild(document.createElement(tag)).textContent = cell;
    return tr;
  };
  line(head, "th");
  rows.forEach((row, k) => line(row, "td").classList.toggle("new", isNew(k)));
}

function light(at) {
  for (const lit of document.querySelectorAll(".lit")) lit.classList.remove("lit");
  const box = document.querySelector(`.box[data-at~="${at}"]`);
  if (!box) return;
  box.classList.add("lit");
  for (const edge of document.querySelectorAll(`[data-to="${box.dataset.box}"]`))
    edge.classList.add("lit");
  box.scrollIntoView({block: "nearest", inline: "nearest"});
}

function write(adjoints) {
  for (const line of document.querySelectorAll("[data-adjoint]")) {
    const found = adjoints.get(line.dataset.adjoint);
    const text = found === undefined ? "" : `adjoint ${found}`;
    line.textContent = text.length > LONGEST ? text.slice(0, LONGEST - 1) + "…" : text;
  }
}

function show(k) {
  now = Math.min(Math.max(k, 0), sweep.steps.length - 1);
  const step = sweep.steps[now];
  slider.value = now;
  find("count").textContent = `step ${now} of ${sweep.steps.length - 1}`;
  find("previous").disabled = now === 0;
  find("next").disabled = now === sweep.steps.length - 1;
  find("title").textContent = step.title;
  find("summary").textContent = step.summary;
  fill(find("operands"), sweep.head, step.rows, () => false);
  const adjoints = new Map();
  for (const earlier of sweep.steps.slice(0, now + 1))
    for (const [name, text] of earlier.totals) adjoints.set(name, text);
  const added = new Set(step.totals.map(total => total[0]));
  const rows = [...adjoints];
  fill(find("adjoints"), ["value", "adjoint so far"], rows, k => added.has(rows[k][0]));
  write(adjoints);
  light(step.at);
}

find("previous").onclick = () => show(now - 1);
find("next").onclick = () => show(now + 1);
slider.oninput = () => show(Number(slider.value));
document.addEventListener("keydown", event => {
  if (event.target === slider || event.ctrlKey || event.metaKey || event.altKey) return;
  const steps = {ArrowRight: now + 1, ArrowLeft: now - 1, Home: 0, End: sweep.steps.length - 1};
  if (!(event.key in steps)) return;
  event.preventDefault();
  show(steps[event.key]);
});
slider.max = sweep.steps.length - 1;
show(0);
"""


def page(title: str, svg: str, head: Sequence[str], steps: Sequence[Mapping[str, Any]]) -> str:
    """The text of the page.

    A step has a `title`, a `summary`, the `rows` of its table under `head`, the position of its
    record, `at`, and the adjoints that it has changed, `totals`: pairs of a name and a text.
    """
    data = json.dumps({"head": head, "steps": steps}).replace("<", "\\u003c")
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escaped(title)}</title>
<style>{STYLE}</style>
</head>
<body>
<header>
<h1>{escaped(title)}</h1>
<nav>
<button id="previous">Previous</button>
<button id="next">Next</button>
<input id="slider" type="range" min="0" value="0" aria-label="step">
<span id="count"></span>
</nav>
</header>
<main>
<div id="graph">{svg}</div>
<div id="panel" aria-live="polite">
<h2 id="title"></h2>
<p id="summary"></p>
<table id="operands"></table>
<table id="adjoints"></table>
</div>
</main>
<script type="application/json" id="data">{data}</script>
<script>const LONGEST = {LONGEST};{SCRIPT}</script>
</body>
</html>
"""
