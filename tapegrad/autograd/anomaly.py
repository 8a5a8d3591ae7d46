"""Anomaly detection: remember where records were made, and look for NaN in gradients."""

from __future__ import annotations

from tapegrad.tape import current


class set_detect_anomaly:
    """Switch anomaly detection on or off at once; as a context, until its end.

    >>> import tapegrad as tg
    >>> with tg.autograd.set_detect_anomaly(True):
    ...     x = tg.tensor(4.0, requires_grad=True)
    ...     x.sqrt().backward()
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        tape = current.tape
        self.before = tape.anomaly
        tape.anomaly = check_nan if mode else None
        tape.set_mode()

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exception: object) -> None:
        tape = current.tape
        tape.anomaly = self.before
        tape.set_mode()


class detect_anomaly(set_detect_anomaly):
    """Inside, a gradient that becomes NaN is an error that names the operation and the line.

    >>> import tapegrad as tg
    >>> x = tg.tensor(0.0, requires_grad=True)
    >>> with tg.autograd.detect_anomaly():
    ...     y = (x * 0.0).sqrt()
    """

    def __init__(self, check_nan: bool = True) -> None:
        super().__init__(True, check_nan)
        self.mode = current.tape.anomaly
        current.tape.anomaly = self.before
        current.tape.set_mode()

    def __enter__(self) -> None:
        tape = current.tape
        self.before, tape.anomaly = tape.anomaly, self.mode
        tape.set_mode()


def is_anomaly_enabled() -> bool:
    """Whether anomaly detection is on in this thread.

    >>> import tapegrad as tg
    >>> tg.autograd.is_anomaly_enabled()
    False
    """
    return current.tape.anomaly is not None
