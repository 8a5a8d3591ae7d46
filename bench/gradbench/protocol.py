"""GradBench's protocol: a JSON message on each line, and one response to each."""

from __future__ import annotations

import json
import traceback
from collections.abc import Iterable
from time import perf_counter_ns
from typing import Any, TextIO

from bench import gradbench
from bench.gradbench.evaluation import Call, as_numpy
from bench.sides.side import Side


def serve(messages: Iterable[str], responses: TextIO, side: Side) -> None:
    """Answer every message until there are no more."""
    for line in messages:
        if line.strip():
            responses.write(json.dumps(answer(json.loads(line), side)) + "\n")
            responses.flush()


def answer(message: dict[str, Any], side: Side) -> dict[str, Any]:
    """Return the response to one message."""
    response: dict[str, Any] = {"id": message["id"]}
    match message["kind"]:
        case "start":
            response |= {"tool": side.name, "config": {"version": side.version}}
        case "define":
            known = message["module"] in gradbench.NAMES
            response["success"] = known
            if not known:
                names = ", ".join(gradbench.NAMES)
                response["error"] = f"no module {message['module']!r} here, only {names}"
        case "evaluate":
            try:
                response |= evaluate(message, side)
            except Exception:  # whatever goes wrong is the harness's to report
                response |= {"success": False, "error": traceback.format_exc()}
    return response


def evaluate(message: dict[str, Any], side: Side) -> dict[str, Any]:
    """Return the result of a function at an input, and how long each of its runs took."""
    problem, given = gradbench.find(message["module"]), message["input"]
    if message["function"] not in problem.functions:
        names = " and ".join(problem.functions)
        return {
            "success": False,
            "error": f"{problem.name} has the functions {names}, not {message['function']!r}",
        }
    which = problem.functions.index(message["function"])
    call = problem.ready(side, problem.read(given))[which]
    # The first run compiles, where anything is compiled: that is preparation.
    timings = [{"name": "prepare", "nanoseconds": timed(call)[1]}]
    runs, elapsed, result = 0, 0, None
    least, seconds = given.get("min_runs", 1), given.get("min_seconds", 0)
    while runs < max(least, 1) or elapsed < seconds * 1e9:
        result, nanoseconds = timed(call)
        timings.append({"name": "evaluate", "nanoseconds": nanoseconds})
        runs, elapsed = runs + 1, elapsed + nanoseconds
    return {
        "success": True,
        "output": problem.shown[which](as_numpy(result), given),
        "timings": timings,
    }


def timed(call: Call) -> tuple[Any, int]:
    """Call once; return the result and the nanoseconds."""
    start = perf_counter_ns()
    result = call()
    return result, perf_counter_ns() - start
