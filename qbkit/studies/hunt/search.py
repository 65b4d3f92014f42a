"""The search for the worst network, and the way back to the simplest that is as bad.

The search is SciPy's differential evolution. It takes a box of mixed numbers and choices and a
score with jumps and noise, needs no gradient, evaluates whole generations, which run on all
processors at once, and follows from its seed and the scores alone, so that a hunt with stored runs
repeats itself. Its first generation are points of a Sobol sequence, which leave no large hole.
Optuna's TPE needs fewer evaluations in such spaces, but it would be one more package.

The way back is the last step of delta debugging (Zeller and Hildebrandt 2002): one thing after the
other becomes simpler, as long as the score stays, until nothing can. The result is *1-minimal*.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from qbkit.studies.hunt.network import BOUNDS, Network

GENERATION = 16
"""Networks of a generation; a power of two, as Sobol sequences have."""
MOST_IDLE = 10
"""Generations in a row without a new network that end a search: it has converged."""
SEED = 1

Scores = Callable[[Sequence[Network]], Sequence[float]]
"""Scores of networks, the higher the worse; it raises `Spent` where the budget ends."""


class Spent(Exception):
    """The budget is used up."""


def first_networks(rivals: Sequence[str]) -> list[Network]:
    """The networks that every search begins with."""
    return [Network.of(list(point), rivals) for point in _sobol()]


def search(scores: Scores, rivals: Sequence[str]) -> None:
    """Score one generation of networks after the other, until ``scores`` raises `Spent`.

    It ends as well where generations bring nothing new.
    """
    from scipy import optimize  # slow to load

    seen: set[Network] = set()
    idle = 0

    def generation(_: object, points: Iterable[np.ndarray]) -> list[float]:
        nonlocal idle
        networks = [Network.of(list(point), rivals) for point in points]
        idle = 0 if set(networks) - seen else idle + 1
        if idle == MOST_IDLE:
            raise Spent
        seen.update(networks)
        return [-score for score in scores(networks)]

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="scipy")  # of its own updating
        try:
            optimize.differential_evolution(
                lambda _: 0.0,
                BOUNDS,
                init=_sobol(),
                workers=generation,
                updating="deferred",
                maxiter=10_000,
                tol=0,
                polish=False,
                rng=np.random.default_rng(SEED),
            )
        except Spent:
            return


def shrink(network: Network, remains: Callable[[Network], bool], *, alone: bool) -> Network:
    """The simplest network reached by single steps that ``remains`` accepts."""
    simplest, tried = network, set()
    while True:
        for candidate in simplest.simpler(alone=alone):
            if candidate in tried:
                continue
            tried.add(candidate)
            if remains(candidate):
                simplest = candidate
                break
        else:
            return simplest


def _sobol() -> np.ndarray:
    from scipy.stats import qmc

    return qmc.Sobol(len(BOUNDS), rng=np.random.default_rng(SEED)).random(GENERATION)
