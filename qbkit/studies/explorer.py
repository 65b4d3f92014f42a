"""Explore parameters in a notebook: published cubes answer at once, and a live run follows.

The published answer is that of the nearest setting of the cubes; it says which. Where an engine and
the stack are ready, the exact setting is then run in the background. A newer choice replaces an
older one that waits.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any

import xarray as xr

from qbkit import extras
from qbkit.errors import MetricError, QbkitError, SpecError
from qbkit.execution.runner import run
from qbkit.kinds import require_settings
from qbkit.metrics import cell_envelopes, conformance_map, settling, summary
from qbkit.metrics.flows.lookup import flow_labels
from qbkit.metrics.maps.interactions import FIRST
from qbkit.metrics.verdicts.permutation import enough_trials, smallest_p
from qbkit.plots import envelope_chart, timeline_chart
from qbkit.plots.drawing.html import run_html
from qbkit.plots.drawing.render import chart_fragment, show_html
from qbkit.spec import Bottleneck, Experiment, Flow
from qbkit.spec.network_words import FORMS, network_text
from qbkit.stacks.about.listing import list_implementations
from qbkit.stacks.registry import get
from qbkit.studies.results import reference_of
from qbkit.testbed import engines

if TYPE_CHECKING:
    import altair as alt

RATES_MBPS = (5.0, 10.0, 20.0, 50.0, 100.0)
RTTS_MS = (5.0, 10.0, 20.0, 50.0, 100.0)
BUFFERS_BDP = (0.25, 0.5, 1.0, 2.0, 3.0, 5.0)
FIELDS = {f"bottleneck.{name}": name for name in FORMS}
"""Field of a sweep → field of `Setting`."""
LEVEL = 0.05
"""A verdict needs a p-value of at most this."""
MUCH_LOSS_PERCENT = 10.0
NUMBERS = {
    "conformance": ("conformance", ".2f", "conformance_low", "conformance_high"),
    "noise_floor": ("noise floor", ".2f", "", ""),
    "mean_throughput_difference_mbps": ("mean throughput difference (Mbit/s)", "+.2f", "", ""),
    "mean_delay_difference_ms": ("mean delay difference over time (ms)", "+.1f", "", ""),
}


@dataclass(frozen=True)
class Setting:
    """What the reader chose."""

    implementation: str
    rate_mbps: float = 20.0
    rtt_ms: float = 50.0
    buffer_bdp: float = 1.0

    def __str__(self) -> str:
        return f"{self.implementation}, {network_text(self)}"


@dataclass(frozen=True)
class Published:
    """The cell of a published cube that is nearest to a setting."""

    wanted: Setting
    found: Setting
    reference: str
    cell: xr.Dataset
    """Variables of `qbkit.metrics.conformance_map` and `qbkit.metrics.settling` in this cell."""
    envelopes: Mapping[str, Any]

    @property
    def sentence(self) -> str:
        """Where the answer comes from."""
        if self.found == self.wanted:
            return f"Published results of {self.found}, against {self.reference}."
        return f"Nearest published results: {self.found}, against {self.reference}."

    def chart(self) -> alt.LayerChart:
        """The envelopes of the implementation and of its reference."""
        known = f"{self.reference} (reference)"
        sides = {self.found.implementation: self.envelopes[self.found.implementation]}
        sides[known] = self.envelopes[self.reference]
        return envelope_chart(sides, reference=known, title=str(self.found))

    @property
    def verdict(self) -> str:
        """What the cell's trials say, in one sentence."""
        found = self.cell
        name, mbps = self.found.implementation, float(found.mean_throughput_difference_mbps)
        trials = int(found.trials), int(found.reference_trials)
        seen = f"it takes {abs(mbps):.1f} Mbit/s {'more' if mbps > 0 else 'less'}"
        if smallest_p(*trials) > LEVEL:
            enough = enough_trials(LEVEL)
            return f"Undecided: {min(trials)} seeds cannot decide, {enough} can; {seen} in these."
        if not float(found.p_value) <= LEVEL:
            return f"No difference between {name} and {self.reference} is detected; {seen}."
        return f"{name} differs from {self.reference}: {seen}."

    def html(self) -> str:
        """The verdict, where it comes from, the numbers, and the envelopes."""
        items = []
        for name, (words, form, low, high) in NUMBERS.items():
            value = float(self.cell[name])
            if math.isnan(value):
                continue
            ends = [float(self.cell[end]) for end in (low, high) if end]
            interval = f" [{ends[0]:{form}}, {ends[1]:{form}}]" if ends else ""
            items.append(f"<li>{words}: {value:{form}}{interval}</li>")
        if not self.cell.settles:
            drift = f"{float(self.cell.drift_mbps):+.1f} Mbit/s"
            items.append(f"<li>it does not settle: {drift} in the second half of a trial</li>")
        head = f"<p><b>{escape(self.verdict)}</b></p><p>{escape(self.sentence)}</p>"
        return f"{head}<ul>{''.join(items)}</ul>" + chart_fragment(self.chart().to_dict())


def nearest(
    cubes: Sequence[xr.Dataset], wanted: Setting, maps: Sequence[xr.Dataset] | None = None
) -> Published:
    """The published cell of the implementation that is nearest in rate, RTT and buffer.

    ``cubes`` are those of sweeps with a reference each. Distances are those of logarithms: half
    the rate is as far as twice the rate. ``maps`` are the cubes' conformance maps, if they are at
    hand. Raises MetricError if no cube has the implementation.
    """
    best: tuple[float, int, dict[str, float]] | None = None
    for index, cube in enumerate(cubes):
        if wanted.implementation not in cube[FIRST].values:
            continue
        base = json.loads(cube.attrs["sweep"])["base"]["bottleneck"]
        place, away = {}, 0.0
        for field, name in FIELDS.items():
            given = [base.get(name, getattr(Setting(""), name))]
            values = cube[field].values.tolist() if field in cube.dims else given
            asked = getattr(wanted, name)
            place[field] = min(values, key=lambda v: abs(math.log(v / asked)))
            away += math.log(place[field] / asked) ** 2
        if best is None or away < best[0]:
            best = (away, index, place)
    if best is None:
        raise MetricError(f"no published results of {wanted.implementation}")
    _, index, place = best
    cube = cubes[index]
    known = maps[index] if maps else conformance_map(cube, reference_of(cube))
    return _published(cube, known, wanted, place)


def _published(
    cube: xr.Dataset, known: xr.Dataset, wanted: Setting, place: Mapping[str, float]
) -> Published:
    reference = str(known.attrs["reference"])
    at = {field: value for field, value in place.items() if field in cube.dims}
    names = [wanted.implementation, reference]
    small = cube.sel({FIRST: names, **{field: [value] for field, value in at.items()}})
    every = cell_envelopes(small)
    envelopes = {name: every.sel({FIRST: name, **at}).item() for name in names}
    cell = known.sel({FIRST: wanted.implementation, **at})
    cell = cell.assign(settling(small).sel({FIRST: wanted.implementation, **at}).data_vars)
    chosen = {name: place[field] for field, name in FIELDS.items()}
    return Published(wanted, Setting(wanted.implementation, **chosen), reference, cell, envelopes)


class Explorer:
    """Controls for an implementation, a rate, an RTT and a buffer, with the answers below."""

    def __init__(
        self,
        cubes: Sequence[xr.Dataset],
        *,
        live: bool = True,
        duration_s: float = 20.0,
        engine: str | None = None,
    ) -> None:
        self._cubes = list(cubes)
        self._maps = [conformance_map(cube, reference_of(cube)) for cube in cubes]
        self._how: dict[str, Any] = {"engine": engine}
        self._duration_s = duration_s
        self._problem = engines.named(engine).problem() if live else "live runs are off"
        if not self.implementations:
            raise SpecError(
                "there is nothing to choose from: give the cubes of sweeps, as qb.load_sweep "
                f"returns them, or an engine that works ({self._problem})"
            )
        self._wish: Setting | None = None
        self._answering = threading.RLock()
        self._changed = threading.Lock()
        self._worker: threading.Thread | None = None

    @property
    def implementations(self) -> list[str]:
        """What can be chosen: what is published, and with an engine what is ready here."""
        published = [str(n) for cube in self._cubes for n in cube[FIRST].values]
        ready = [] if self._problem else list_implementations()
        return sorted(dict.fromkeys([*published, *ready]))

    def published(self, setting: Setting) -> str:
        """HTML of the published answer, or of the reason why there is none."""
        try:
            return nearest(self._cubes, setting, self._maps).html()
        except MetricError as error:
            return f"<p>{escape(str(error)).capitalize()}.</p>"

    def experiment(self, setting: Setting) -> Experiment:
        """The live run of a setting: the implementation against the kernel's of its family."""
        rivals = [
            reference_of(cube)
            for cube in self._cubes
            if setting.implementation in cube[FIRST].values
        ]
        link = Bottleneck(
            rate_mbps=setting.rate_mbps, rtt_ms=setting.rtt_ms, buffer_bdp=setting.buffer_bdp
        )
        flows = (Flow(setting.implementation), Flow((rivals or ["tcp:cubic"])[0]))
        return Experiment(bottleneck=link, flows=flows, duration_s=self._duration_s)

    def live(self, setting: Setting) -> str:
        """HTML of the live run, or of the reason why there is none; it takes seconds."""
        reason = self._problem or self._missing(setting)
        if reason:
            return f"<p>No live run: {escape(reason)}.</p>"
        try:
            found = run(self.experiment(setting), **self._how)
        except QbkitError as error:
            return f"<p>The live run failed: {escape(str(error))}</p>"
        reference = flow_labels(found)[1]
        chart = timeline_chart(found, reference=reference, title=f"Live: {setting}")
        words = "".join(f"<p><b>{escape(w)}</b></p>" for w in loss_sentences(found))
        return words + run_html(found, reference=reference) + chart_fragment(chart.to_dict())

    def _missing(self, setting: Setting) -> str | None:
        try:
            status = get(setting.implementation.partition(":")[0]).status()
        except SpecError as error:
            return str(error)
        return None if status.ready else status.reason

    @cached_property
    def widget(self) -> Any:
        """The controls and both answers, as one widget."""
        extras.require("ipywidgets", to="show controls")
        import ipywidgets as w

        stacks: dict[str, list[str]] = {}
        for name in self.implementations:
            stack, _, controller = name.partition(":")
            stacks.setdefault(stack, []).append(controller)
        first = "quic-go" if "quic-go" in stacks else next(iter(stacks))
        stack = _dropdown("Stack", list(stacks), first)
        controller = _dropdown("Controller", stacks[first], _preferred(stacks[first]))
        rate = _dropdown("Rate (Mbit/s)", RATES_MBPS, 20.0)
        rtt = _dropdown("RTT (ms)", RTTS_MS, 50.0)
        buffer = _dropdown("Buffer (BDP)", BUFFERS_BDP, 1.0)
        shown, followed = w.Output(), w.Output()

        def choose_stack(_: object) -> None:
            with self._answering:
                options = stacks[stack.value]
                kept = controller.value if controller.value in options else _preferred(options)
                controller.unobserve(answer, "value")  # new options choose the first one of them
                controller.options = options
                controller.value = kept
                controller.observe(answer, "value")
                answer()

        def answer(_: object = None) -> None:
            # JupyterLab handles each control in a thread of its own. The controls are read by the
            # thread whose turn it is, so the last answer is that of the last choice.
            with self._answering:
                chosen = f"{stack.value}:{controller.value}"
                setting = Setting(chosen, rate.value, rtt.value, buffer.value)
                show_html(shown, self.published(setting))
                self._follow(setting, followed)

        stack.observe(choose_stack, "value")
        for control in (controller, rate, rtt, buffer):
            control.observe(answer, "value")
        answer()
        wrap = w.Layout(flex_flow="row wrap")
        return w.VBox(
            [w.HBox([stack, controller, rate, rtt, buffer], layout=wrap), shown, followed]
        )

    def _follow(self, setting: Setting, followed: Any) -> None:
        """Start the live run of a setting, unless one is under way; then it comes next."""
        with self._changed:
            self._wish = setting
            if self._worker is not None and self._worker.is_alive():
                return
            self._worker = threading.Thread(target=self._work, args=(followed,), daemon=True)
            self._worker.start()

    def _work(self, followed: Any) -> None:
        while True:
            with self._changed:
                setting, self._wish = self._wish, None
                if setting is None:
                    self._worker = None
                    return
            if not (self._problem or self._missing(setting)):
                words = f"running {setting} for {self._duration_s:g} virtual seconds …"
                show_html(followed, f"<p>Live: {escape(words)}</p>")
            html = self.live(setting)
            if self._wish is None:
                show_html(followed, html)

    def wait(self) -> None:
        """Wait until no live run is under way."""
        worker = self._worker
        if worker is not None:
            worker.join()

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        """The widget, and for pages without a kernel the first published answer."""
        known = self.implementations
        setting = Setting("quic-go:cubic" if "quic-go:cubic" in known else known[0])
        bundle = dict(self.widget._repr_mimebundle_())
        note = "<p>The controls need a kernel: run this cell.</p>"
        return {**bundle, "text/html": note + self.published(setting)}


def loss_sentences(ds: xr.Dataset) -> list[str]:
    """A sentence for each flow that loses at least `MUCH_LOSS_PERCENT`: how, and what it means."""
    found, rate_mbps = [], float(ds.attrs["rate_mbps"])
    for row in summary(ds).itertuples():
        if not row.loss_percent >= MUCH_LOSS_PERCENT:
            continue
        sent_mbps = row.throughput_mbps / (1 - row.loss_percent / 100)
        found.append(
            f"{row.label} loses {row.loss_percent:.0f} % of its packets: it sends about "
            f"{sent_mbps:.1f} Mbit/s into a link of {rate_mbps:g} Mbit/s, and does not slow down "
            "enough when packets are lost."
        )
    return found


def _preferred(controllers: Sequence[str]) -> str:
    return "cubic" if "cubic" in controllers else controllers[0]


def _dropdown(name: str, options: Sequence[Any], value: Any) -> Any:
    import ipywidgets as w

    style = {"description_width": "initial"}
    layout = w.Layout(width="max-content", margin="2px 14px 2px 0")
    words = [(f"{o:g}" if isinstance(o, float) else o, o) for o in options]
    return w.Dropdown(options=words, value=value, description=name, style=style, layout=layout)


def explore(cubes: Sequence[xr.Dataset], **how: Any) -> Explorer:
    """Controls that answer from published cubes at once, and by a live run where it can be made.

    ``cubes`` are those of sweeps against a reference each (`qbkit.load_sweep`).
    ``how``: ``live`` (False: published results only), ``duration_s`` of a live run (default 20),
    and ``engine``. Raises EngineError for an unknown engine, and SpecError for another setting.
    """
    require_settings(how, explore, Explorer)
    return Explorer(cubes, **how)
