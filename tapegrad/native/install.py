"""Install native operations: operators, methods and functions that CPython calls in C.

`install` puts `native.entry` in the place of the functions in Python that `dispatch.op_functions`
makes: behind `Op.entry_point`, and as methods of the Tensor.  For each way to call an operation
there are a few instructions that name it and go on to the one function behind all.

The code is compiled once per machine.  Where that was done the native path is open from the first
compiled sweep on, or once a tape was full, or after thousands of calls without records; where it
was not, other processes are asked to, and the native path opens at one of the next times.
"""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tapegrad.base.cpython import Method, c_text, new_function, new_method
from tapegrad.base.locks import lock
from tapegrad.dispatch import op_functions, views
from tapegrad.dispatch.native_calls import native_calls
from tapegrad.kernels import build
from tapegrad.kernels.sweep import sweep_abi
from tapegrad.native.bindings import FP_FLAGS, Bindings, as_expected, is_native, kind_of
from tapegrad.native.stubs import CALL_FORMS, text, token
from tapegrad.ops.core import Op, by_code
from tapegrad.tape.tape import Tape
from tapegrad.tensor import Tensor


class NativePath:
    """The native path, ready to be opened and closed.

    `accumulate` and `resume`, of the module of that name and `rule_callbacks`, know their frame.
    """

    def __init__(self) -> None:
        names = "call", "custom", "sweep_call"
        call, custom, sweep = [build.load(name, *_FUNCTIONS[name]) for name in names]
        self.bindings = Bindings()
        self.python: dict[Op, Callable[..., Any]] = {}
        self.entry_points: dict[Op, Callable[..., Any]] = {}
        methods = {
            name: (function, *op_functions.public[function])
            for name, function in vars(Tensor).items()
            if _takes(name, function)
        }
        forms = [(_form(op, flipped), kind_of(op), op.code) for _, op, flipped in methods.values()]
        self.engine = build.assembled(text(forms), 1)
        values = {"frame": self.bindings.words.ctypes.data, "call": call, "custom_call": custom}
        values["sweep_call"] = sweep
        for name, value in values.items():
            place = self.engine[0].get_global_value_address(name)
            ctypes.c_int64.from_address(place).value = value
        self.definitions: list[Any] = []
        self.accumulate, self.resume = self._called("accumulate"), self._called("resume")
        self.view = self._builtin("view", "view")
        self.planned = self._builtin("planned", "planned")
        self.change = self._builtin("change", "change")
        self.custom = self._builtin("custom", "custom")
        self.sweep = self._builtin("sweep", "sweep")
        for op in by_code:
            self.learn(op)
        self.methods = {
            name: (function, self._method(name, function, op, flipped))
            for name, (function, op, flipped) in methods.items()
        }

    def learn(self, op: Op) -> None:
        """Make the way in to an operation, if it may go by the native path."""
        if is_native(op):
            self.python[op] = op.entry_point
            self.bindings.learn(op, op.entry_point)
            given = token(kind_of(op), op.code)
            self.entry_points[op] = self._builtin(f"builtin{len(op.inputs)}", op.name, given)

    def take(self, op: Op) -> None:
        """Have an operation go by compiled code that has come after the others."""
        self.learn(op)
        op.entry_point = self.entry_points.get(op, op.entry_point)

    def _called(self, name: str) -> Callable[..., Any]:
        """A compiled function that returns an object."""
        source, arity = _FUNCTIONS[name]
        words = (ctypes.c_int64,) * arity
        found = ctypes.PYFUNCTYPE(ctypes.py_object, *words)(build.load(name, source, arity))
        return functools.partial(found, self.bindings.words.ctypes.data)

    def _definition(self, form: str, suffix: str, name: str, doc: str | None = None) -> int:
        """The address of a method's definition, which lives as long as the native path."""
        function = self.engine[0].get_function_address(form + suffix)
        said = None if doc is None else c_text(doc)
        self.definitions.append(Method(c_text(name), function, CALL_FORMS[form][0], said))
        return ctypes.addressof(self.definitions[-1])

    def _builtin(self, form: str, name: str, given: int | None = None) -> Any:
        return new_function()(self._definition(form, "", name), given, None)

    def _method(self, name: str, function: Any, op: Op, flipped: bool) -> Any:
        signature = "($self, /)" if len(op.inputs) == 1 else "($self, other, /)"
        doc = f"{name}{signature}\n--\n\n{function.__doc__ or op.name}"
        return new_method()(Tensor, self._definition(_form(op, flipped), f"_{op.code}", name, doc))

    def open(self) -> None:
        """Have operations go by compiled code, those as well that have come since it was closed."""
        for op in by_code:
            if op not in self.python:
                self.learn(op)
        for op, function in self.entry_points.items():
            op.entry_point = function
        native_calls.new_op = self.take
        native_calls.view = self.view
        native_calls.planned = self.planned
        native_calls.change = self.change
        native_calls.record_call = self.custom
        native_calls.accumulate = self.accumulate
        native_calls.sweep = self.sweep
        native_calls.resume = self.resume
        for name, (_, method) in self.methods.items():
            setattr(Tensor, name, method)

    def close(self) -> None:
        """Have operations go by functions in Python again."""
        for op, function in self.python.items():
            op.entry_point = function
        native_calls.close()
        native_calls.view = views.viewed
        for name, (function, _) in self.methods.items():
            setattr(Tensor, name, function)


def _takes(name: str, function: Any) -> bool:
    """Whether an attribute of the Tensor is a function that the native path takes the place of.

    Not methods of two operands with names: these are called with keywords, too.
    """
    if not isinstance(function, _FUNCTION) or function not in op_functions.public:
        return False
    op = op_functions.public[function][0]
    return is_native(op) and (name.startswith("__") or len(op.inputs) == 1)


def _form(op: Op, flipped: bool) -> str:
    """The form in which a method is called."""
    return f"{'flipped' if flipped else 'method'}{len(op.inputs)}"


_FUNCTION = type(lambda: None)
_opening = lock()
_suspended = _wanted = False  # between `suspend` and `resume`; whether it is to be open then
installed: NativePath | None = None


def _source(name: str) -> str:
    return (Path(__file__).parent / f"{name}.py").read_text()


# The compiled functions: their source, and how many arguments they have.
_FUNCTIONS = {
    "call": (_source("entry"), 5),
    "accumulate": (_source("accumulate"), 5),
    "resume": (_source("rule_callbacks"), 4),
    "custom": (_source("record_call"), 5),
    "sweep_call": (_source("sweep_call"), 5),
}


def possible() -> bool:
    """Whether CPython, NumPy and the machine are such as the native path is made for.

    `TAPEGRAD_NATIVE=0` in the environment says no.
    """
    if os.environ.get("TAPEGRAD_NATIVE") == "0":
        return False
    return sweep_abi.as_listed() and platform.machine() in FP_FLAGS and sys.platform != "win32"


def _compiled(asking: bool) -> bool:
    found = [build.is_compiled(name, *f, asking=asking) for name, f in _FUNCTIONS.items()]
    return all(found)  # after all were asked for


def install(*, compiling: bool = True, asking: bool = False) -> bool:
    """Open the native path, and say whether it is open now.

    With `compiling=False` only where this machine has compiled it before; with `asking` it is
    compiled in the background then.
    """
    global installed, _wanted
    with _opening:
        if _suspended:
            _wanted = True
            return False
        if installed is None:
            if not possible() or not (compiling or _compiled(asking)):
                return False
            made = NativePath()
            if not as_expected(made.bindings.words):
                return False
            installed = made
            Tape.on_switch = staticmethod(made.bindings.forget_tape)
        installed.open()
        Tape.on_full = None
        return True


def suspend() -> None:
    """Have all operations go by Python until `resume`."""
    global _suspended, _wanted
    with _opening:
        _suspended, _wanted = True, native_calls.sweep is not None
        if installed is not None:
            installed.close()


def resume() -> None:
    """Open the native path if it was open, or was to be opened meanwhile."""
    global _suspended
    _suspended = False
    if _wanted:
        install(compiling=False)


def when_full() -> None:
    """Told when a tape is full, and after many calls that leave no record."""
    install(compiling=False, asking=True)
