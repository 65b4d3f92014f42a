"""Stands between a user's controller and the connection: says what went wrong in it, and when."""

from __future__ import annotations

import math
import sys
import time
import traceback
from collections.abc import Callable
from types import FrameType
from typing import Any

from qbkit.cca.controller import Controller, Settings
from qbkit.cca.shipped import ControllerError

HOOKS = (
    *("on_sent", "on_ack", "on_loss", "on_spurious_loss"),
    *("on_timeout", "on_idle", "on_app_limited"),
)
MOST_LINES = 1_000_000
"""Lines of Python in one event: virtual time stands still while a controller computes."""
MOST_WINDOW_BYTES = 2**40
LONGEST_WAIT_S = 60.0
"""For the next packet at the pacing rate."""


class Guard:
    """Knows the name of the controller, and since when it runs."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._start_s = time.monotonic()
        self._lines_left = 0
        self._is_watching = False

    def make(self, kind: type[Controller], settings: Settings) -> Controller:
        """An instance whose events are watched."""
        controller = self._watched("__init__", kind)(settings)
        if not hasattr(controller, "packet_bytes"):
            raise self.error(
                "does not begin __init__(self, settings) with super().__init__(settings)"
            )
        for hook in HOOKS:
            if getattr(kind, hook) is not getattr(Controller, hook):
                setattr(controller, hook, self._watched(hook, getattr(controller, hook)))
        return controller

    def check(self, controller: Controller) -> None:
        """ControllerError for a window or a rate that cannot be."""
        window, rate = controller.window_bytes, controller.pacing_rate_bytes_per_s
        if not _is_within(window, 0, MOST_WINDOW_BYTES):
            allowed = f"a number from 0 to {MOST_WINDOW_BYTES}"
            raise self.error(f"set window_bytes to {window!r}; it must be {allowed}")
        least = controller.packet_bytes / LONGEST_WAIT_S
        if rate is not None and not _is_within(rate, least, math.inf):
            raise self.error(
                f"set pacing_rate_bytes_per_s to {rate!r}; it must be None, or at least {least:g} "
                f"(a packet in {LONGEST_WAIT_S:g} s)"
            )

    def never_sends(self, controller: Controller) -> ControllerError:
        """Nothing is in flight, and the window lets nothing go."""
        return self.error(
            f"will never send again: window_bytes is {controller.window_bytes:g}, less than a "
            f"packet of {controller.packet_bytes} bytes, and nothing is in flight"
        )

    def check_log(self, controller: Controller) -> None:
        """ControllerError for what is no value of the dataset."""
        if not controller.state.replace("_", "").isalnum() and controller.state:
            raise self.error(
                f"logged state={controller.state!r}; use letters, digits and _ for a state"
            )
        for name, value in controller.logged.items():
            if not _is_number(value):
                raise self.error(f"logged {name}={value!r}; it must be a number")

    def _watched(self, hook: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def watched(event: Any) -> Any:
            if self._is_watching:  # an event's method calls that of another event
                return call(event)
            self._lines_left = MOST_LINES
            self._is_watching = True
            sys.settrace(self._trace)
            try:
                return call(event)
            except (Exception, SystemExit) as error:
                raise self.error(f"failed in {hook}", _cell_traceback(error, self._name)) from None
            finally:
                sys.settrace(None)
                self._is_watching = False

        return watched

    def _trace(self, frame: FrameType, event: str, arg: object) -> Any:
        self._lines_left -= 1
        if self._lines_left < 0:
            raise TimeoutError(f"this event has taken {MOST_LINES} lines of Python: it spins")
        return self._trace

    def error(self, what: str, details: str = "") -> ControllerError:
        """The sentence that names the controller and the time, and more lines."""
        at_s = time.monotonic() - self._start_s
        sentence = f"controller {self._name!r} {what}, {at_s:.3f} virtual s after its flow began"
        return ControllerError(f"{sentence}\n{details}".rstrip())


def _is_number(value: Any) -> bool:
    """Whether it is one number, of Python or of NumPy."""
    is_of_numpy = type(value).__module__ == "numpy" and value.ndim == 0
    return isinstance(value, (int, float)) or (is_of_numpy and value.dtype.kind in "biuf")


def _is_within(value: Any, low: float, high: float) -> bool:
    """False for NaN, and for what is no number."""
    try:
        return bool(low <= value <= high)
    except TypeError:
        return False


def _cell_traceback(error: Exception, name: str) -> str:
    """The frames that are the user's own, each once, and the error.

    A recursion has a thousand equal ones, and CPython may list the frame in which a trace function
    raised twice.
    """
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == name]
    lines = dict.fromkeys(f"  {name}, line {f.lineno}, in {f.name}\n    {f.line}" for f in frames)
    return "\n".join([*lines, *(line.rstrip() for line in traceback.format_exception_only(error))])
