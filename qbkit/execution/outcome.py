"""What came of a run among many, or of a web load: its dataset, or the error that stopped it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

import xarray as xr

from qbkit import store
from qbkit.errors import QbkitError, RunFailed, StoreError
from qbkit.execution.cluster import run_calls


@dataclass(frozen=True, kw_only=True)
class Ended:
    """The part of an outcome that runs and web loads have in common."""

    name: str = ""
    """Hash of the run; empty where it cannot be computed (a stack is not ready)."""
    run: xr.Dataset | None = None
    error: QbkitError | None = None

    @property
    def reason(self) -> str:
        """Why there is no run, in one sentence; empty where there is one."""
        return str(self.error or "")

    def loaded(self, failed: Mapping[str, QbkitError]) -> Self:
        """The outcome of a run that a worker stored, or that is among those that failed."""
        if self.name in failed:
            return replace(self, error=failed[self.name])
        path = store.path_of(self.name)
        try:
            return replace(self, run=store.load_run(path))
        except StoreError:
            reason = f"it ended, but {path.parent} has no readable result; all workers must "
            return replace(self, error=RunFailed(f"{reason}share that folder (set QBKIT_RUNS)"))


Kind = TypeVar("Kind", bound=Ended)


def completed(
    outcomes: Sequence[Kind],
    calls: Mapping[str, tuple[Any, ...]],
    words: Callable[[str], str],
    **how: Any,
) -> list[Kind]:
    """The outcomes, after the calls for those that were not stored, by name (see `called`)."""
    failed = called(calls, words, **how)
    return [o.loaded(failed) if o.name in calls else o for o in outcomes]


def called(
    calls: Mapping[str, tuple[Any, ...]], words: Callable[[str], str], **how: Any
) -> Mapping[str, QbkitError]:
    """The errors of those calls that failed, by name (see `run_calls`).

    Warns of a run that passed when it was retried; ``words`` says which it is.
    """
    done = run_calls(calls, **how)
    done.warn(words)
    return done.failed
