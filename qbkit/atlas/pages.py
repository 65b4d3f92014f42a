"""What each page of the atlas shows: numbers for its template, and charts of `qbkit.plots`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import altair as alt

from qbkit.atlas.again import cell_again, inference_again, pair_again, run_again
from qbkit.atlas.inferred import LINK, Inferred
from qbkit.atlas.multiples import envelope_panels, lone_panels
from qbkit.atlas.published import (
    ConformanceSweep,
    InteractionSweep,
    Published,
    PublishedStudy,
    PublishedSweep,
    Share,
)
from qbkit.atlas.standing import KINDS, Cause, Standing, cause_of, standing_of
from qbkit.metrics import by_family, summary
from qbkit.metrics.maps.families import kernel_counterpart
from qbkit.metrics.maps.interactions import FIRST
from qbkit.metrics.maps.shares import settle_s
from qbkit.plots.drawing.render import ON_A_PAGE, chart_fragment
from qbkit.plots.maps.conformance_map import setting_text
from qbkit.spec import Experiment
from qbkit.spec.network_words import network_text


class Figure(NamedTuple):
    """A chart with a name for those who do not see it."""

    name: str
    html: str


@dataclass(frozen=True)
class Cell:
    """One implementation in one setting of a sweep."""

    setting: str
    figures: dict[str, float]
    again: str


@dataclass(frozen=True)
class Row:
    """One implementation on the first page."""

    name: str
    family: str
    standing: Standing
    cause: Cause | None
    map: list[tuple[str, float, float]]
    """Setting, conformance and noise floor; of the reference the noise floor twice."""


def index_page(published: Published) -> dict[str, Any]:
    """All implementations, each with its verdict, its likely cause and a small map."""
    rows = [
        _row(published, name, title)
        for title, names in by_family(published.implementations).items()
        for name in names
    ]
    order = list(KINDS)
    rows.sort(key=lambda row: (order.index(row.standing.kind), -_size(row.standing)))
    return {
        "rows": rows,
        "kinds": {
            kind: KINDS[kind] for kind in order if any(r.standing.kind == kind for r in rows)
        },
        "families": list(dict.fromkeys(row.family for row in rows)),
        "runs": sum(sweep.facts["done"] for sweep in published.sweeps),
        "processor_hours": sum(sweep.facts["processor_hours"] for sweep in published.sweeps),
    }


def maps_page(published: Published) -> dict[str, Any]:
    """A conformance map per sweep."""
    return {"maps": [(sweep, _map_rows(sweep)) for sweep in published.conformance]}


def pairs_page(published: Published) -> dict[str, Any]:
    """The matrix of each sweep in each setting, and the CUBIC and BBR pairs of it."""
    return {"sweeps": [(sweep, list(_matrices(sweep))) for sweep in published.interactions]}


def causes_page(published: Published) -> dict[str, Any]:
    """The known faults, the likely causes, and the studies of stacks as they are."""
    likely = [
        (name, standing_of(published, name), cause_of(published, name))
        for name in published.implementations
    ]
    return {
        "likely": [each for each in likely if each[2] and not each[2].source],
        "studies": published.studies,
    }


def implementation_page(published: Published, name: str) -> dict[str, Any]:
    """Everything that the data say of one implementation."""
    mine = [study for study in published.studies if study.implementation == name]
    sweeps = [sweep for sweep in published.conformance if name in sweep.implementations]
    return {
        "name": name,
        "stack_version": published.version(name),
        "external": published.external.get(name.partition(":")[0]),
        "standing": standing_of(published, name),
        "cause": cause_of(published, name),
        "first": _telling(sweeps[0], name) if sweeps else None,
        "means": _means(sweeps[0], name) if sweeps else None,
        "conformance": [(sweep, _cells(sweep, name), _envelopes(sweep, name)) for sweep in sweeps],
        "references": [sweep for sweep in published.conformance if name == sweep.reference],
        "alone": _alone(published, name),
        "pairs": [
            (sweep, _network_words(sweep), _opponents(sweep, name))
            for sweep in published.interactions
            if name in sweep.implementations
        ],
        "studies": [(study, _study_figure(study)) for study in mine],
        "explained": any(study.explanation for study in mine),
        "inferred": _inferred(published, name),
        "releases": _releases(published, name),
        "faults": published.faults.get(name, ()),
        "clocks": published.clocks.get(name, ()),
    }


def drawn(chart: alt.TopLevelMixin | dict[str, Any], name: str) -> Figure:
    """A chart, or its specification, as HTML that draws itself with the script of the site."""
    spec = chart if isinstance(chart, dict) else chart.to_dict(validate=False)
    return Figure(name, chart_fragment(spec, bundled=False, waiting=ON_A_PAGE))


def _row(published: Published, name: str, family: str) -> Row:
    sweep = next(
        (s for s in published.conformance if name in (*s.implementations, s.reference)), None
    )
    return Row(
        name,
        family,
        standing_of(published, name),
        cause_of(published, name),
        list(_small_map(sweep, name)) if sweep else [],
    )


def _size(standing: Standing) -> float:
    """By how much an implementation differs, for the order of the rows."""
    return abs(standing.difference.mbps) if standing.difference else 0.0


def _small_map(sweep: ConformanceSweep, name: str) -> Iterator[tuple[str, float, float]]:
    for setting in sweep.settings:
        floor = sweep.noise_floor(setting)
        own = name == sweep.reference
        yield (
            setting_text(setting),
            floor if own else sweep.figures(name, setting)["conformance"],
            floor,
        )


def _map_rows(sweep: ConformanceSweep) -> list[tuple[str, float, list[tuple[str, float, float]]]]:
    """Name, mean conformance and small map: the noise floor first, then the most conformant."""
    rows = []
    for name in (sweep.reference, *sweep.implementations):
        cells = list(_small_map(sweep, name))
        known = [value for _, value, _ in cells if value == value]
        rows.append((name, sum(known) / len(known) if known else float("nan"), cells))
    return [rows[0], *sorted(rows[1:], key=lambda row: -row[1] if row[1] == row[1] else 2)]


def _matrices(sweep: InteractionSweep) -> Iterator[tuple[str, list[str], Any]]:
    """Network, names by dominance and the share of each row against each column."""
    for words, setting in zip(_network_words(sweep), sweep.settings, strict=True):
        names = sorted(sweep.implementations, key=lambda name: -sweep.mean_share(name, setting))
        yield words, names, {name: sweep.shares(name, setting) for name in names}


def _study_figure(published: PublishedStudy) -> Figure:
    study = published.study
    name = f"Envelopes of {study.test} and {study.reference}"
    return drawn(study.plot.envelope(), name)


def _telling(sweep: ConformanceSweep, name: str) -> Cell:
    """The setting in which the conformance is furthest below the noise floor."""
    return min(
        _cells(sweep, name),
        key=lambda cell: cell.figures["conformance"] - cell.figures["noise_floor"] or 0.0,
    )


def _means(sweep: ConformanceSweep, name: str) -> dict[str, Any] | None:
    """What the means of a verdict are over; None if at most one setting has a result."""
    takes = [cell.figures["mean_throughput_difference_mbps"] for cell in _cells(sweep, name)]
    known = [mbps for mbps in takes if mbps == mbps]
    if len(known) < 2:
        return None
    return {
        "settings": len(known),
        "words": shared_words(sweep),
        "least": min(known),
        "most": max(known),
    }


def _cells(sweep: ConformanceSweep, name: str) -> list[Cell]:
    return [
        Cell(setting_text(s), sweep.figures(name, s), cell_again(sweep, name, s))
        for s in sweep.settings
    ]


def _envelopes(sweep: ConformanceSweep, name: str) -> Figure | None:
    """The envelope in each setting over the reference's, as far as both have trials."""
    pairs = {}
    for setting in sweep.settings:
        test, reference = (sweep.envelope(who, setting) for who in (name, sweep.reference))
        if test is not None and reference is not None:
            pairs[setting_text(setting)] = (test, reference)
    if not pairs:
        return None
    return drawn(envelope_panels(pairs), f"Envelopes of {name} over those of {sweep.reference}")


def seconds_text(sweep: PublishedSweep, runs: int) -> str:
    """The processor time of some runs of a sweep, on average: ``29 s``, ``4 min``."""
    seconds = runs * 3600 * sweep.facts["processor_hours"] / max(1, sweep.facts["done"])
    return f"{max(1, round(seconds))} s" if seconds < 100 else f"{round(seconds / 60)} min"


def sweep_words(sweep: PublishedSweep) -> str:
    """`shared_words`, and the trials."""
    trials = f"{len(sweep.seeds)} trial{'s' * (len(sweep.seeds) != 1)}"
    return f"{shared_words(sweep)}, {trials} of each"


def _network_words(sweep: PublishedSweep) -> list[str]:
    """Network and time of each setting: ``20 Mbit/s, 20 ms, 5 BDP, 20 to 40 s``."""
    known, time = _sharedlink_words(sweep), _time_words(sweep)
    varied = _varied(sweep)
    settings = ({f: v for f, v in setting.items() if f in varied} for setting in sweep.settings)
    each = [(known, setting_text(setting), time) for setting in settings]
    return [", ".join(filter(None, words)) for words in each]


def _time_words(sweep: PublishedSweep) -> str:
    """The time of a trial that its throughput ratios are of; "" where it is swept."""
    if "duration_s" in _varied(sweep):
        return ""
    begin_s, end_s = settle_s(sweep.cube), _first(sweep).duration_s
    return f"{begin_s:g} to {end_s:g} s" if begin_s else f"{end_s:g} s"


def shared_words(sweep: PublishedSweep) -> str:
    """What all settings of a sweep share, and its time: ``100 Mbit/s, 10 ms, 60 s``."""
    return ", ".join(filter(None, (_sharedlink_words(sweep), _time_words(sweep))))


def _sharedlink_words(sweep: PublishedSweep) -> str:
    """What the links of all settings of a sweep share: ``100 Mbit/s, 10 ms``."""
    link, varied = _first(sweep).bottleneck, _varied(sweep)
    fields = {f"bottleneck.{name}": getattr(link, name) for name in LINK}
    known = {f: v for f, v in fields.items() if f not in varied and v is not None}
    return setting_text(known)


def _varied(sweep: PublishedSweep) -> set[str]:
    """The swept fields that have more than one value."""
    first = sweep.settings[0]
    return {f for f in first if any(setting[f] != first[f] for setting in sweep.settings)}


def _first(sweep: PublishedSweep) -> Experiment:
    """The first experiment of a sweep."""
    flows = [flow for flow in (FIRST, "flows.1") if flow in sweep.cube.coords]
    names = [str(sweep.cube[flow].values[0]) for flow in flows]
    return sweep.experiment(names, sweep.settings[0], sweep.seeds[0])


def _alone(published: Published, name: str) -> tuple[Figure, dict[str, Any], str] | None:
    """The lone run beside the kernel's, its numbers, and the command that makes it again."""
    if name not in published.alone:
        return None
    run, kernel = published.alone[name], kernel_counterpart(name)
    beside = published.alone.get(kernel) if kernel != name else None
    chart = lone_panels(run, beside)
    words = f"Congestion window, throughput and queueing delay of {name} alone on a link"
    return drawn(chart, words), summary(run).iloc[0].to_dict(), run_again(name)


def _inferred(published: Published, name: str) -> dict[str, Any] | None:
    """The parameters of an implementation and of its counterpart, and how to infer them again."""
    found = {
        each: published.parameters[each]
        for each in dict.fromkeys((name, kernel_counterpart(name)))
        if each in published.parameters
    }
    if name not in found:
        return None
    flows: dict[str, list[str]] = {}
    for each, mine in found.items():
        flows.setdefault(_lone_words(mine), []).append(f"{each} ({mine.version})")
    return {
        "words": "; ".join(f"{' and '.join(names)} at {words}" for words, names in flows.items()),
        "shown": {each: mine.parameters for each, mine in found.items()},
        "again": {each: inference_again(each) for each in found},
    }


def _lone_words(inferred: Inferred) -> str:
    """Network, duration and number of seeds of the lone flows of an implementation."""
    duration_s = inferred.experiment.duration_s
    link = network_text(inferred.experiment.bottleneck)
    return f"{link}, {duration_s:g} s, {inferred.seeds} seeds of each"


def _opponents(sweep: InteractionSweep, name: str) -> list[tuple[str, list[Share | None], str]]:
    """Each opponent, the share against it in each setting, and the commands of these runs."""
    shares = [sweep.shares(name, setting) for setting in sweep.settings]
    rows = []
    for other in shares[0]:
        commands = [
            pair_again(sweep, sweep.order_of(name, other, setting), setting)
            for setting in sweep.settings
        ]
        rows.append((other, [each.get(other) for each in shares], "\n".join(commands)))
    return rows


def _releases(published: Published, name: str) -> list[dict[str, Any]]:
    """The published releases of an implementation, the oldest first."""
    table, (stack, _, controller) = published.releases, name.partition(":")
    if table is None:
        return []
    mine = table[(table["stack"] == stack) & (table["controller"] == controller)]
    records: list[dict[str, Any]] = mine.to_dict("records")
    return records
