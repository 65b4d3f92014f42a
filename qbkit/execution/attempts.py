"""Retry once what fails: the rule of studies, sweeps and grids of notebooks."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from qbkit.errors import QbkitError, SpecError, StackNotReady
from qbkit.spec import Experiment

K = TypeVar("K")

HOPELESS = (SpecError, StackNotReady)
"""Errors that a retry cannot fix. Others may pass: a machine may have been too busy, short of
memory, or out of reach."""

NAMED_FLOWS = 4
"""A sentence names this many flows of a run, and counts the others."""


@dataclass(frozen=True)
class Attempts(Generic[K]):
    """Errors by key; a key in neither dictionary passed at the first attempt."""

    failed: dict[K, QbkitError]
    """What failed, with its last error."""
    repeated: dict[K, QbkitError]
    """What passed at the second attempt, with the error of the first."""

    def warn(self, words: Callable[[K], str]) -> None:
        """Warn about everything that was repeated; ``words`` describes a key."""
        for key, error in self.repeated.items():
            sentence = f"{words(key)} was run again and passed; it had failed at first: {error}"
            warnings.warn(sentence, stacklevel=3)


def try_twice(
    attempt: Callable[[list[K]], Mapping[K, QbkitError]], wanted: Iterable[K]
) -> Attempts[K]:
    """Attempt everything wanted, and retry what failed; ``attempt`` returns the errors by key.

    Retries start after all first attempts: what made a run fail may be over by then.
    """
    first = attempt(list(wanted))
    again = [key for key, error in first.items() if not isinstance(error, HOPELESS)]
    second = attempt(again) if again else {}
    failed = {key: second.get(key, error) for key, error in first.items()}
    repeated = {key: failed.pop(key) for key in again if key not in second}
    return Attempts(failed, repeated)


def words(experiment: Experiment) -> str:
    """Describe a run in a sentence: its flows and its seed."""
    names = experiment.labels[:NAMED_FLOWS]
    more = len(experiment.labels) - len(names)
    also = [f"{more} more flows"] if more else []
    return f"{' with '.join(names + also)}, seed {experiment.seed}"
