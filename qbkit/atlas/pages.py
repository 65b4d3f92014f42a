"""What each page of the atlas shows: numbers for its template, and charts of `qbkit.plots`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import altair as alt
import xarray as xr

from qbkit import plots
from qbkit.atlas.again import (
    cell_again,
    explanation_again,
    inference_again,
    pair_again,
    run_again,
    study_again,
)
from qbkit.atlas.inferred import LINK, Inferred
from qbkit.atlas.published import (
    ConformanceSweep,
    InteractionSweep,
    Published,
    PublishedStudy,
    PublishedSweep,
    Share,
)
from qbkit.metrics import by_family, map_sentence, summary
from qbkit.metrics.maps.families import kernel_counterpart
from qbkit.metrics.maps.interactions import FIRST, SECOND
from qbkit.metrics.maps.shares import settle_s
from qbkit.plots.drawing.html import run_sentence
from qbkit.plots.drawing.render import chart_fragment
from qbkit.plots.envelopes.envelope import envelope_chart
from qbkit.plots.maps.conformance_map import setting_text
from qbkit.spec import Bottleneck, Experiment
from qbkit.studies.conformance import Study
from qbkit.studies.explain import Explanation

WAITING = "An interactive chart; it needs JavaScript."


@dataclass(frozen=True)
class Figure:
    """A chart with a name for those who do not see it, and how to make its numbers again."""

    name: str
    html: str
    again: str
    """The command or expression; "" where one below it makes several charts again."""
    wide: bool = False
    """Whether it scrolls sideways on a narrow screen: its tiles hold numbers."""


@dataclass(frozen=True)
class Cell:
    """One implementation in one setting of a sweep."""

    setting: str
    figures: dict[str, float]


@dataclass(frozen=True)
class Case:
    """A published study with its title, its place in the page of all, and how to make it again."""

    published: PublishedStudy

    @property
    def study(self) -> Study:
        """The runs of both sides."""
        return self.published.study

    @property
    def explanation(self) -> Explanation | None:
        """The causes, if they were published."""
        return self.published.explanation

    @property
    def test(self) -> str:
        """The implementation under test with its options."""
        return self.published.experiment.flows[0].text

    @property
    def title(self) -> str:
        """The test and its network."""
        return f"{self.test} at {_link_words(self.published.experiment.bottleneck)}"

    @property
    def anchor(self) -> str:
        """Its name in the page."""
        return self.published.name.replace("/", "-")

    @property
    def where(self) -> str:
        """Where it is published, and its network."""
        words = run_sentence(self.study.tests[0], of_one_run=False)
        return f"{self.published.name}: {words}"

    @property
    def again(self) -> str:
        """The command that makes the study again."""
        return study_again(self.published)

    @property
    def explained_again(self) -> str:
        """The command that infers the parameters again."""
        return explanation_again(self.published)


@dataclass(frozen=True)
class Ranking:
    """Where an implementation stands among all: over the settings of a sweep, and in pairs."""

    name: str
    sweep: ConformanceSweep | None
    mean: dict[str, float]
    worst: float
    best: float
    elsewhere: list[tuple[str, float, float]]
    """Network, mean conformance and mean noise floor of each further sweep with it."""
    shares: list[float]


def index_page(published: Published) -> dict[str, Any]:
    """All implementations by family, with their conformance and their share of the link."""
    families = {
        title: [_ranking(published, name) for name in names]
        for title, names in by_family(published.implementations).items()
    }
    for rankings in families.values():
        rankings.sort(key=lambda r: -r.mean.get("conformance", -1.0))
    return {
        "families": families,
        "references": {sweep.reference for sweep in published.conformance},
        "pairs": _pair_settings(published),
        "runs": sum(sweep.facts["done"] for sweep in published.sweeps),
        "processor_hours": sum(sweep.facts["processor_hours"] for sweep in published.sweeps),
    }


def maps_page(published: Published) -> dict[str, Any]:
    """A conformance map per sweep."""
    return {"maps": [(sweep, _map_figure(sweep)) for sweep in published.conformance]}


def pairs_page(published: Published) -> dict[str, Any]:
    """The matrix of each sweep in each setting, and the CUBIC and BBR pairs of it."""
    return {"sweeps": [(sweep, list(_pair_figures(sweep))) for sweep in published.interactions]}


def causes_page(published: Published) -> dict[str, Any]:
    """Every published study: verdict, envelopes and, where they were inferred, the causes."""
    return {"studies": [(Case(study), _study_figure(study)) for study in published.studies]}


def implementation_page(published: Published, name: str) -> dict[str, Any]:
    """Everything that the data say of one implementation."""
    mine = [study for study in published.studies if study.implementation == name]
    return {
        "name": name,
        "stack_version": published.version(name),
        "external": published.external.get(name.partition(":")[0]),
        "conformance": [
            (sweep, _cells(sweep, name), list(_envelope_figures(sweep, name)))
            for sweep in published.conformance
            if name in sweep.implementations
        ],
        "references": [sweep for sweep in published.conformance if name == sweep.reference],
        "alone": _alone(published, name),
        "pairs": [
            (sweep, _network_words(sweep), _opponents(sweep, name))
            for sweep in published.interactions
            if name in sweep.implementations
        ],
        "studies": [(Case(study), _study_figure(study)) for study in mine],
        "explained": any(study.explanation for study in mine),
        "inferred": _inferred(published, name),
        "releases": _releases(published, name),
        "faults": published.faults.get(name, ()),
        "clocks": published.clocks.get(name, ()),
    }


def drawn(chart: alt.TopLevelMixin, name: str, again: str = "", *, wide: bool = False) -> Figure:
    """A chart as HTML that draws itself with the script of the site."""
    spec = chart.to_dict(validate=False)
    html = chart_fragment(spec, bundled=False, waiting=WAITING)
    return Figure(name, html, again, wide)


def _ranking(published: Published, name: str) -> Ranking:
    sweeps = [s for s in published.conformance if name in s.implementations]
    sweep = sweeps[0] if sweeps else None
    row = sweep.row(name) if sweep else None
    every = row.conformance if row is not None else None
    return Ranking(
        name,
        sweep,
        {} if row is None else {str(k): float(v.mean()) for k, v in row.data_vars.items()},
        float("nan") if every is None else float(every.min()),
        float("nan") if every is None else float(every.max()),
        [_elsewhere(other, name) for other in sweeps[1:]],
        [
            pairs.mean_share(name, setting) if name in pairs.implementations else float("nan")
            for pairs in published.interactions
            for setting in pairs.settings
        ],
    )


def _elsewhere(sweep: ConformanceSweep, name: str) -> tuple[str, float, float]:
    row = sweep.row(name)
    return shared_words(sweep), float(row.conformance.mean()), float(row.noise_floor.mean())


def _pair_settings(published: Published) -> list[str]:
    return [words for pairs in published.interactions for words in _network_words(pairs)]


def _map_figure(sweep: ConformanceSweep) -> Figure:
    title = f"Conformance to {sweep.reference}"
    chart = plots.conformance_map_chart({sweep.reference: sweep.cube}, title=title)
    return drawn(chart, f"{title}: {map_sentence(sweep.map)}", wide=True)


def _pair_figures(sweep: InteractionSweep) -> Iterator[tuple[str, list[Figure]]]:
    for words, setting in zip(_network_words(sweep), sweep.settings, strict=True):
        part = sweep.cube.sel(setting)
        title = f"Share of the row's implementation, {words}"
        figures = [drawn(plots.interaction_chart(part, title=title), title, wide=True)]
        if {"tcp:cubic", "tcp:bbr"} <= {*sweep.implementations}:
            title = f"CUBIC against BBR, {words}"
            figures.append(drawn(plots.expectation_chart(part, title=title), title))
        yield words, figures


def _study_figure(published: PublishedStudy) -> Figure:
    study = published.study
    name = f"Envelopes of {study.test} and {study.reference}"
    return drawn(study.plot.envelope(), name)


def _cells(sweep: ConformanceSweep, name: str) -> list[Cell]:
    row = sweep.row(name).assign(sweep.settling.sel({FIRST: name}).data_vars)
    return [
        Cell(
            setting_text(setting),
            {str(key): float(value.sel(setting)) for key, value in _by_setting(row)},
        )
        for setting in sweep.settings
    ]


def _by_setting(row: xr.Dataset) -> Iterator[tuple[Any, xr.DataArray]]:
    """The variables that have a value in each setting."""
    return ((key, value) for key, value in row.data_vars.items() if value.ndim)


def _envelope_figures(sweep: ConformanceSweep, name: str) -> Iterator[Figure]:
    """The envelope in each setting over the reference's, as far as both have trials."""
    for setting in sweep.settings:
        test, reference = (sweep.envelope(who, setting) for who in (name, sweep.reference))
        if test is None or reference is None:
            continue
        words = setting_text(setting)
        grey = f"{sweep.reference} (reference)"
        chart = envelope_chart({name: test, grey: reference}, reference=grey, title=words)
        yield drawn(
            chart,
            f"Envelopes of {name} and {sweep.reference} at {words}",
            cell_again(sweep, name, setting),
        )


def sweep_words(sweep: PublishedSweep) -> str:
    """`shared_words`, and the trials."""
    trials = f"{len(sweep.seeds)} trial{'s' * (len(sweep.seeds) != 1)}"
    return f"{shared_words(sweep)}, {trials} of each"


def _network_words(sweep: PublishedSweep) -> list[str]:
    """Network and time of each setting: ``20 Mbit/s, 20 ms, 5 BDP, 20 to 40 s``."""
    known, time = _shared_link_words(sweep), _time_words(sweep)
    varied = _varied(sweep)
    settings = ({f: v for f, v in setting.items() if f in varied} for setting in sweep.settings)
    each = [(known, setting_text(setting), time) for setting in settings]
    return [", ".join(filter(None, words)) for words in each]


def _time_words(sweep: PublishedSweep) -> str:
    """The time of a trial that its throughput ratios are of."""
    begin_s, end_s = settle_s(sweep.cube), _first(sweep).duration_s
    return f"{begin_s:g} to {end_s:g} s" if begin_s else f"{end_s:g} s"


def shared_words(sweep: PublishedSweep) -> str:
    """What all settings of a sweep share, and its time: ``100 Mbit/s, 10 ms, 60 s``."""
    return f"{_shared_link_words(sweep)}, {_time_words(sweep)}"


def _shared_link_words(sweep: PublishedSweep) -> str:
    """What the links of all settings of a sweep share: ``100 Mbit/s, 10 ms``."""
    link, varied = _first(sweep).bottleneck, _varied(sweep)
    fields = {f"bottleneck.{name}": getattr(link, name) for name in LINK}
    return setting_text({f: v for f, v in fields.items() if f not in varied})


def _varied(sweep: PublishedSweep) -> set[str]:
    """The swept fields that have more than one value."""
    first = sweep.settings[0]
    return {f for f in first if any(setting[f] != first[f] for setting in sweep.settings)}


def _first(sweep: PublishedSweep) -> Experiment:
    """The first experiment of a sweep."""
    flows = [flow for flow in (FIRST, SECOND) if flow in sweep.cube.coords]
    names = [str(sweep.cube[flow].values[0]) for flow in flows]
    return sweep.experiment(names, sweep.settings[0], sweep.seeds[0])


def _alone(published: Published, name: str) -> tuple[Figure, dict[str, Any]] | None:
    """The lone run beside the kernel's, and its numbers."""
    if name not in published.alone:
        return None
    run, kernel = published.alone[name], kernel_counterpart(name)
    shown = {kernel: published.alone[kernel]} if kernel in published.alone else {}
    shown[name] = run
    chart = plots.gallery_chart(shown, reference=kernel if kernel in shown else None)
    words = f"Congestion window, throughput and queueing delay of {name} alone on a link"
    return drawn(chart, words, run_again(name)), summary(run).iloc[0].to_dict()


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
    link = _link_words(inferred.experiment.bottleneck)
    return f"{link}, {duration_s:g} s, {inferred.seeds} seeds of each"


def _link_words(link: Bottleneck) -> str:
    return f"{link.rate_mbps:g} Mbit/s, {link.rtt_ms:g} ms, {link.buffer_bdp:g} BDP"


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
