"""Whether operations are recorded: `no_grad` and its kin, as contexts and as decorators."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np

from tapegrad.tape.tape import MODE_CAREFUL, MODE_OFF, Tape, current

F = TypeVar("F", bound=Callable[..., Any])
R = TypeVar("R")


class _Mode:
    """A context that sets the recording state of this thread's tape, and a decorator too."""

    _state: tuple[bool, bool] = (True, False)  # recording, inference

    def __init__(self) -> None:
        self._before: list[tuple[bool, bool]] = []

    def __enter__(self) -> None:
        tape = current.tape
        self._before.append((tape.enabled, tape.inference))
        _set(*self._state)

    def __exit__(self, *exception: object) -> None:
        tape = current.tape  # what follows calls nothing: see `call_arguments.restoring`
        tape.enabled, tape.inference = self._before[-1]
        tape.mode = tape.careful if tape.enabled else MODE_OFF
        del self._before[-1]

    def clone(self) -> _Mode:
        """A fresh context of the same state."""
        return type(self)()

    def __call__(self, function: F) -> F:
        if not callable(function):
            raise TypeError(
                f"`{type(self).__name__}` is a context, or decorates a function, got "
                f"{type(function).__name__}"
            )
        if inspect.isclass(function):
            warnings.warn(
                f"`{type(self).__name__}` on a class holds while an instance is made, and not for "
                "its methods: decorate `__init__`, or the methods",
                FutureWarning,
                stacklevel=2,
            )
        for is_kind, wrapper in (
            (inspect.isgeneratorfunction, self._around_generator),
            (inspect.iscoroutinefunction, self._around_coroutine),
            (inspect.isasyncgenfunction, self._around_async_generator),
        ):
            if is_kind(function):
                return cast(F, functools.wraps(function)(wrapper(function)))

        @functools.wraps(function)
        def decorated(*args: Any, **kwargs: Any) -> Any:
            with self.clone():
                return function(*args, **kwargs)

        return cast(F, decorated)

    # What can be left and entered again has the mode while it runs, and no longer.

    def _around_generator(self, function: Any) -> Any:
        def decorated(*args: Any, **kwargs: Any) -> Any:
            return (yield from self._running(function(*args, **kwargs)))

        return decorated

    def _around_coroutine(self, function: Any) -> Any:
        async def decorated(*args: Any, **kwargs: Any) -> Any:
            return await _Awaited(self, function(*args, **kwargs))

        return decorated

    def _around_async_generator(self, function: Any) -> Any:
        async def decorated(*args: Any, **kwargs: Any) -> Any:
            generator = function(*args, **kwargs)
            step = generator.asend(None)
            while True:
                try:
                    item = await _Awaited(self, step)
                except StopAsyncIteration:
                    return
                try:
                    step = generator.asend((yield item))
                except GeneratorExit:
                    await _Awaited(self, generator.aclose())
                    raise
                except BaseException as problem:
                    step = generator.athrow(problem)

        return decorated

    def _running(self, steps: Any) -> Any:
        """Resume a generator or coroutine under the mode; `close` ends it, too."""
        step = functools.partial(steps.send, None)
        while True:
            try:
                with self.clone():
                    item = step()
            except StopIteration as stop:
                return stop.value
            try:
                step = functools.partial(steps.send, (yield item))
            except GeneratorExit:
                with self.clone():
                    steps.close()
                raise
            except BaseException as problem:
                step = functools.partial(steps.throw, problem)


class _Awaited:
    """An awaitable that runs under a mode."""

    def __init__(self, mode: _Mode, steps: Any) -> None:
        self.mode = mode
        self.steps = steps

    def __await__(self) -> Any:
        return self.mode._running(self.steps)


def _flag(mode: Any, name: str) -> bool:
    if not isinstance(mode, (bool, np.bool_)):
        raise TypeError(f"`{name}` takes True or False, got {type(mode).__name__}")
    return bool(mode)


def _set(enabled: bool, inference: bool) -> None:
    current.tape.switch(enabled, inference)


class no_grad(_Mode):
    """Nothing is recorded inside.

    >>> import tapegrad as tg
    >>> x = tg.tensor(1.0, requires_grad=True)
    >>> with tg.no_grad():
    ...     print((2 * x).requires_grad)
    False
    """

    _state = (False, False)

    def __new__(cls, function: Any = None) -> Any:
        self = object.__new__(cls)
        self._before = []
        return self if function is None else self(function)

    def __init__(self, function: Any = None) -> None:
        super().__init__()

    def __enter__(self) -> None:
        tape = current.tape
        self._before.append((tape.enabled, tape.inference))
        _set(False, tape.inference)


class enable_grad(no_grad):
    """Operations are recorded inside, even within `no_grad`.

    >>> import tapegrad as tg
    >>> x = tg.tensor(1.0, requires_grad=True)
    >>> with tg.no_grad(), tg.enable_grad():
    ...     print((2 * x).requires_grad)
    True
    """

    def __enter__(self) -> None:
        tape = current.tape
        self._before.append((tape.enabled, tape.inference))
        _set(not tape.inference, tape.inference)


class inference_mode(_Mode):
    """Like `no_grad`, and what is made inside can never take part in a graph.

    >>> import tapegrad as tg
    >>> with tg.inference_mode():
    ...     print(tg.is_inference_mode_enabled())
    True
    """

    def __new__(cls, mode: Any = True) -> Any:
        self = object.__new__(cls)
        if callable(mode):
            self.__init__()  # type: ignore[misc]
            return self(mode)
        return self

    def __init__(self, mode: Any = True) -> None:
        super().__init__()
        self.mode = _flag(mode, "inference_mode")
        self._state = (False, True) if self.mode else (True, False)

    def clone(self) -> inference_mode:
        """A fresh context of the same state."""
        return inference_mode(self.mode)


class set_grad_enabled(_Mode):
    """Switch recording on or off at once; as a context, until its end.

    >>> import tapegrad as tg
    >>> with tg.set_grad_enabled(False):
    ...     print(tg.is_grad_enabled())
    False
    """

    def __init__(self, mode: bool) -> None:
        super().__init__()
        self.mode = _flag(mode, "set_grad_enabled")
        tape = current.tape
        self._before.append((tape.enabled, tape.inference))
        _set(self.mode, tape.inference)

    def __enter__(self) -> None:
        return None

    def clone(self) -> set_grad_enabled:
        """A fresh context of the same state."""
        return set_grad_enabled(self.mode)

    def __call__(self, function: F) -> F:
        _set(*self._before[-1])  # as a decorator it changes nothing here and now
        return super().__call__(function)


def switched(tape: Tape, enabled: bool, work: Callable[..., R], *args: Any) -> R:
    """Run `work` with recording on or off, for a sweep, whatever the user's mode is.

    The mode is restored by stores alone, for an exception of a signal handler may come at any call,
    and so at the beginning of an `__exit__`.  Hooks that were entered or left end here.
    """
    before = tape.enabled, tape.inference, tape.saved_hooks
    try:
        tape.switch(enabled, False)
        return work(*args)
    finally:
        tape.enabled, tape.inference, tape.saved_hooks = before
        tape.careful = MODE_CAREFUL if tape.saved_hooks else tape.careful
        tape.mode = tape.careful if tape.enabled else MODE_OFF


class recording:
    """Recording on or off within a transform, which itself restores it after an exception."""

    def __init__(self, tape: Tape, enabled: bool) -> None:
        self.tape = tape
        self.state = (enabled, False)

    def __enter__(self) -> None:
        tape = self.tape
        self.before = (tape.enabled, tape.inference)
        self.hooks = tape.saved_hooks
        tape.switch(*self.state)

    def __exit__(self, *exception: object) -> None:
        tape = self.tape
        if tape.saved_hooks is not self.hooks:  # a hook may enter or leave more, which ends here
            tape.saved_hooks = self.hooks
            tape.set_mode()
        tape.switch(*self.before)


def is_grad_enabled() -> bool:
    """Whether operations are recorded in this thread.

    >>> import tapegrad as tg
    >>> tg.is_grad_enabled()
    True
    """
    return current.tape.enabled


def is_inference_mode_enabled() -> bool:
    """Whether this thread is in inference mode.

    >>> import tapegrad as tg
    >>> tg.is_inference_mode_enabled()
    False
    """
    return current.tape.inference
