"""Everything qbkit raises on purpose: one sentence that says what to do."""

from __future__ import annotations

from collections.abc import Sequence


class QbkitError(Exception):
    """Base of all expected failures; the CLI prints it as one line and exits with ``exit_code``."""

    exit_code = 1


class SpecError(QbkitError, ValueError):
    """The experiment asked for cannot exist (unknown name, impossible number)."""

    exit_code = 2
    mistakes: Sequence[str] = ()
    """Of a spec: what is wrong with it, one text each, to be read after the name of the spec."""


class StackNotReady(QbkitError):
    """A stack is known, but its program is not built or installed here."""


class EngineError(QbkitError):
    """The place where runs happen is missing or does not work here."""


class RunFailed(QbkitError):
    """A run started and did not end well; nothing of it looks finished."""


class RunStalled(RunFailed):
    """A run was ended because its clock stood still for too long; a second try may pass."""


class StoreError(QbkitError):
    """A run file or folder cannot be read or written."""


class MetricError(QbkitError, ValueError):
    """The data do not allow the metric that was asked for."""


class TraceError(QbkitError, ValueError):
    """A capture or a log is not what it should be."""
