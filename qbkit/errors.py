"""The exceptions that qbkit raises. Their message is one sentence that says what to do."""

from __future__ import annotations

from collections.abc import Sequence

MISNAMED = (FileNotFoundError, FileExistsError, NotADirectoryError, IsADirectoryError)
"""What the system says of a name under which there is nothing, or something of another kind."""


class QbkitError(Exception):
    """Base of all expected failures; the CLI prints it as one line and exits with ``exit_code``.

    That is 1 for what failed, as a run, a build, or the reading of a damaged file. It is 2 for what
    was refused because another name, option or value is needed: a `SpecError`, or any error that is
    raised with ``refused``.
    """

    exit_code = 1

    def __init__(self, *texts: object, refused: bool = False) -> None:
        super().__init__(*texts)
        if refused:
            self.exit_code = SpecError.exit_code


class SpecError(QbkitError, ValueError):
    """The experiment is impossible (unknown name, value out of range)."""

    exit_code = 2
    mistakes: Sequence[str] = ()
    """The mistakes in a spec, one text each, to be read after the name of the spec."""


class StackNotReady(QbkitError):
    """A stack is known, but its program is not built or installed here."""


class MissingExtra(QbkitError, ImportError):
    """A feature needs packages that qbkit installs as its extra ``notebooks``."""


class EngineError(QbkitError):
    """An engine is missing or does not work here."""


class RunFailed(QbkitError):
    """A run started and failed; no file of it looks complete."""


class RunStalled(RunFailed):
    """A run was ended because its clock stood still for too long; a retry may pass."""


class StoreError(QbkitError):
    """A run file or folder cannot be read or written."""


class MetricError(QbkitError, ValueError):
    """The metric cannot be computed from the data."""


class TraceError(QbkitError, ValueError):
    """A capture or a log cannot be read, or is invalid."""
