"""A run that fails is tried once more: the rule of studies, sweeps and grids of notebooks."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from qbkit.errors import QbkitError, SpecError, StackNotReady
from qbkit.spec import Experiment

K = TypeVar("K")

HOPELESS = (SpecError, StackNotReady)
"""What will not pass the second time either. All else may: a machine may have been too busy, or
short of memory, or out of reach."""


NAMED_FLOWS = 4
"""More flows are counted, not named, where a sentence says which run is meant."""


@dataclass(frozen=True)
class Attempts(Generic[K]):
    """What became of what was tried: errors by key; what has none passed at once."""

    failed: dict[K, QbkitError]
    """What did not pass, and why not the last time."""
    repeated: dict[K, QbkitError]
    """What passed the second time, and why not the first."""

    def warn(self, words: Callable[[K], str]) -> None:
        """A warning for each that had to be repeated; ``words`` say what a key stands for."""
        for key, error in self.repeated.items():
            sentence = f"{words(key)} was run again and passed; it had failed at first: {error}"
            warnings.warn(sentence, stacklevel=3)


def try_twice(
    attempt: Callable[[list[K]], Mapping[K, QbkitError]], wanted: Iterable[K]
) -> Attempts[K]:
    """Attempt all that is wanted, and once more what failed; ``attempt`` returns why some did.

    The second attempt comes after the first of all: what made a run fail may be over by then.
    """
    first = attempt(list(wanted))
    again = [key for key, error in first.items() if not isinstance(error, HOPELESS)]
    second = attempt(again) if again else {}
    failed = {key: second.get(key, error) for key, error in first.items()}
    repeated = {key: failed.pop(key) for key in again if key not in second}
    return Attempts(failed, repeated)


def words(experiment: Experiment) -> str:
    """What to call a run in a sentence: its flows and its seed."""
    names = experiment.labels[:NAMED_FLOWS]
    more = len(experiment.labels) - len(names)
    also = [f"{more} more flows"] if more else []
    return f"{' with '.join(names + also)}, seed {experiment.seed}"
