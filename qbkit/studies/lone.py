"""What each side of a study does alone, where no rival's losses mask it, and how both differ."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import xarray as xr

from qbkit.metrics.maps.families import family
from qbkit.metrics.parameters import (
    Difference,
    Parameters,
    compare,
    infer,
    known_precedents,
    observed,
    voted,
)
from qbkit.metrics.parameters.laws import (
    OF_FAMILIES,
    PROBING,
    Laws,
    by_names,
    by_two_laws,
    law,
)
from qbkit.metrics.parameters.relations import INTERRUPTED, OF_MARKS
from qbkit.spec import Bottleneck, Experiment, Flow
from qbkit.spec.flow import as_flow, controller_of
from qbkit.studies.conformance import Study
from qbkit.studies.probing import alone, interrupted, probing

Run = Callable[[Sequence[Experiment]], list[xr.Dataset]]
"""From experiments to their runs, in order."""


@dataclass(frozen=True)
class Lone:
    """The runs of one flow alone."""

    on_link: list[xr.Dataset]
    """On the link of the study, with data to send at all times and without outages."""
    on_path: list[xr.Dataset] = field(default_factory=list)
    """On the path that probes it, if it or the other side may model its path."""
    interrupted: list[xr.Dataset] = field(default_factory=list)
    """With the pauses and outages of the study, if there are any."""

    @property
    def parameters(self) -> Parameters:
        """What its packets show."""
        return observed(self.on_link, self.on_path, self.interrupted)

    def showing(self, cause: str) -> xr.Dataset:
        """The run that shows a cause best."""
        elsewhere = [] if cause in OF_MARKS else self.on_path
        shown = self.interrupted if cause in INTERRUPTED else elsewhere
        return (shown or self.on_link)[0]


def lone(
    flows: Sequence[str | Flow],
    link: Bottleneck,
    run: Run,
    *,
    duration_s: float,
    seeds: int,
) -> list[Lone]:
    """The runs of both flows of a study.

    Where one models its path, and losses reduce the other's window, no path need say more.
    """
    links = [alone(flow, link, duration_s=duration_s, seeds=seeds) for flow in flows]
    breaks = [interrupted(flow, link, duration_s=duration_s, seeds=seeds) for flow in flows]
    runs = _parted(run, [*links, *breaks])
    on_link, with_breaks = runs[: len(flows)], runs[len(flows) :]
    paths: list[list[Experiment]] = [[] for _ in flows]
    laws = laws_by_name(as_flow(flow).controller for flow in flows)
    ours, theirs = (infer(some) for some in on_link)
    if models_path(laws, ours, theirs) and not by_two_laws(ours, theirs, laws):
        paths = [probing(flow, link) for flow in flows]
    sides = zip(on_link, _parted(run, paths), with_breaks, strict=True)
    return [Lone(*side) for side in sides]


def _parted(run: Run, wanted: Sequence[Sequence[Experiment]]) -> list[list[xr.Dataset]]:
    """The runs of all, together, and then each list by itself."""
    done = iter(run([each for some in wanted for each in some]))
    return [[next(done) for _ in some] for some in wanted]


def models_path(by_name: Laws, test: Parameters, reference: Parameters) -> bool:
    """Whether a side models the path by its name, or was seen to."""
    return PROBING in by_name or law(*by_names(test, reference, by_name)) == PROBING


def laws_by_name(controllers: Iterable[str]) -> Laws:
    """The laws that the names of both sides' controllers stand for; "" for other names."""
    test, reference = (OF_FAMILIES.get(family(controller), "") for controller in controllers)
    return test, reference


def laws_of(study: Study) -> Laws:
    """The laws that the names of a study's controllers stand for."""
    return laws_by_name(map(controller_of, senders_of(study)))


def senders_of(study: Study) -> list[str]:
    """The test's stack and controller, and the reference's."""
    return [first_sender(runs[0]) for runs in (study.tests, study.references)]


def first_sender(run: xr.Dataset) -> str:
    """Stack and controller of a run's first flow, whatever its label: ``quinn:bbr``."""
    return f"{run['stack'].values[0]}:{run['controller'].values[0]}"


def is_one_sender(senders: Sequence[str]) -> bool:
    """Whether both have the same stack and controller, whatever their options and releases.

    Two programs of one name are two builds of one stack: ``./old/mine:cubic``, ``./mine:cubic``.
    """
    parts = [sender.partition("?")[0].rpartition(":") for sender in senders]
    names = {(Path(stack).name.partition("@")[0], controller) for stack, _, controller in parts}
    return len(names) == 1


def differences(
    study: Study, test: Parameters, reference: Parameters, delta_throughput_part: float
) -> list[Difference]:
    """Differences of the sides of a study, as `qbkit.metrics.parameters.compare` has them.

    If both are one sender, precedents say which change most likely sets them apart.
    """
    laws = laws_of(study)
    found = compare(test, reference, delta_throughput_part, by_name=laws)
    if not is_one_sender(senders_of(study)):
        return found
    models = models_path(laws, test, reference)
    return voted(found, test, reference, known_precedents(), models_path=models)


def differences_of_runs(test: xr.Dataset, reference: xr.Dataset) -> list[Difference]:
    """Differences of two lone flows, from a run of each, as `differences` has them.

    Raises MetricError as `infer` does.
    """
    senders = [first_sender(run) for run in (test, reference)]
    one = is_one_sender(senders)
    ours, theirs = (observed([run]) if one else infer(run) for run in (test, reference))
    laws = laws_by_name(map(controller_of, senders))
    models = models_path(laws, ours, theirs)
    found = compare(ours, theirs, by_name=laws)
    return voted(found, ours, theirs, known_precedents(), models_path=models) if one else found
