"""What a timeline is read against: the link's capacity, a fair share, the full buffer, the RTT."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import altair as alt
import numpy as np
import xarray as xr

from qbkit.metrics.flows.lookup import flow_directions, span_s
from qbkit.plots.drawing import theme
from qbkit.plots.drawing.data import inline
from qbkit.traces.run.attributes import run_experiment

MOST_TIMES = 3.0
"""A line further above the data than this would squeeze it, and is left out."""
MOST_CHANGES = 12
"""More changes of the base RTT than this would hide the data, and are left out."""
ROOM_PART = 0.9
"""The name of a capacity that ends below this part of its most has room above it."""
NAME: dict[str, Any] = {
    "align": "right",
    "baseline": "top",
    "dx": -3,
    "dy": 2,
    "fontSize": 9.5,
    "color": theme.QUIET_INK,
}
"""How the name of a line looks, at the right of its panel."""


@dataclass(frozen=True)
class Level:
    """A horizontal line, or a step of one."""

    panel: str
    """Column of the panel: ``throughput_mbps`` or ``queue_delay_ms``."""
    name: str
    value: float
    from_s: float
    to_s: float


def levels(ds: xr.Dataset) -> frozenset[Level]:
    """The lines of a run; empty where its link is not known, or changes (`common_capacity`).

    The fair share is the capacity, or the rate of a policer that lets less pass, over the number of
    flows that are active at the time. It exists where all flows share one queue, in one direction.
    """
    experiment, end_s = run_experiment(ds), float(ds.attrs["duration_s"])
    rate_mbps = float(ds.attrs.get("rate_mbps", math.nan))
    if experiment is None or not rate_mbps > 0 or "capacity_mbps" in ds:
        return frozenset()
    policer_mbps = experiment.bottleneck.policer_mbps or math.inf
    most_mbps = min(rate_mbps, policer_mbps)
    name = "policer" if policer_mbps < rate_mbps else "capacity"
    found = [Level("throughput_mbps", name, most_mbps, 0.0, end_s)]
    if (queue_bytes := float(ds.attrs.get("queue_bytes", math.nan))) > 0:
        full_ms = queue_bytes * 8 / rate_mbps / 1e3
        found.append(Level("queue_delay_ms", "full buffer", full_ms, 0.0, end_s))
    if experiment.topology == "dumbbell" and len(set(flow_directions(ds))) == 1:
        found += _fair_shares(ds, most_mbps, len(experiment.flows))
    return frozenset(found)


def common_levels(runs: Iterable[xr.Dataset]) -> frozenset[Level]:
    """The lines that runs drawn together share; empty where they differ."""
    found = {levels(ds) for ds in runs}
    return found.pop() if len(found) == 1 else frozenset()


def common_capacity(runs: Iterable[xr.Dataset]) -> xr.DataArray | None:
    """The capacity over time that runs drawn together share; None if it is constant or differs."""
    first, *others = (ds.get("capacity_mbps") for ds in runs)
    if first is None or not all(other is not None and first.equals(other) for other in others):
        return None
    return first


def capacity_layers(mbps: xr.DataArray, bin_s: float) -> list[alt.Chart]:
    """The capacity of a link that changes, as an area behind the throughput, and its name."""
    values = mbps.values.astype(float)
    kept = [0, *(np.flatnonzero(np.diff(values)) + 1).tolist()]
    end_s = float(mbps["time"].values[-1]) + bin_s
    rows = {
        "time_s": [*mbps["time"].values[kept].tolist(), end_s],
        "capacity": [*values[kept].tolist(), float(values[-1])],
    }
    area = (
        alt.Chart(inline(rows))
        .mark_area(interpolate="step-after", color=theme.QUIET_INK, opacity=0.16, clip=True)
        .encode(x="time_s:Q", y="capacity:Q")
    )
    last = alt.Chart(inline({"capacity": [float(values[-1])], "name": ["capacity"]}))
    # Above the area, where no line is, if there is room; else as the name of a line.
    has_room = values[-1] < ROOM_PART * values.max()
    above = {"baseline": "bottom", "dy": -2} if has_room else {}
    name = last.mark_text(**(NAME | above)).encode(
        x=alt.value("width"), y="capacity:Q", text="name:N"
    )
    return [area, name]


def common_delays(runs: Iterable[xr.Dataset]) -> tuple[tuple[float, float], ...]:
    """(time in s, base RTT in ms) of each change that runs drawn together share."""
    found = {_delay_changes(ds) for ds in runs}
    return found.pop() if len(found) == 1 else ()


def _delay_changes(ds: xr.Dataset) -> tuple[tuple[float, float], ...]:
    experiment = run_experiment(ds)
    if experiment is None or experiment.bottleneck.delay is None:
        return ()
    steps = experiment.bottleneck.delay.until(experiment.duration_s)
    return tuple(after for before, after in pairwise(steps) if before[1] != after[1])


def delay_layers(changes: Sequence[tuple[float, float]]) -> list[alt.Chart]:
    """A rule where the base RTT changes, with what it becomes; none if there are too many."""
    if not 0 < len(changes) <= MOST_CHANGES:
        return []
    rows = {
        "at_s": [at_s for at_s, _ in changes],
        "name": [f"RTT {rtt_ms:g} ms" for _, rtt_ms in changes],
    }
    base = alt.Chart(inline(rows)).encode(x="at_s:Q")
    rules = base.mark_rule(color=theme.QUIET_INK, strokeDash=[2, 3], strokeWidth=1, clip=True)
    names = base.mark_text(**(NAME | {"align": "left", "dx": 3}), clip=True)
    return [rules.encode(tooltip=["name:N", "at_s:Q"]), names.encode(y=alt.value(0), text="name:N")]


def _fair_shares(ds: xr.Dataset, rate_mbps: float, flows: int) -> Iterable[Level]:
    """Steps of the fair share; none where flows were left out, and none for a flow alone."""
    if ds.sizes["flow"] != flows:
        return
    spans = [span_s(ds, i) for i in range(flows)]
    for from_s, to_s in pairwise(sorted({moment for span in spans for moment in span})):
        active = sum(span[0] <= from_s < span[1] for span in spans)
        if active > 1:
            yield Level("throughput_mbps", "fair share", rate_mbps / active, from_s, to_s)


def level_layers(
    found: Iterable[Level], panel: str, most: float
) -> tuple[list[alt.Chart], list[alt.Chart]]:
    """Dashed lines of a panel whose data reaches up to ``most``; and their names, at the right.

    The lines belong below the data. The names have a rim, as data often run along a limit: they are
    legible above the data.
    """
    shown = [v for v in found if v.panel == panel and v.value <= MOST_TIMES * most]
    shown.sort(key=lambda level: (level.name, level.from_s))
    if not shown:
        return [], []
    last = {level.name: level for level in shown}
    base = alt.Chart(
        inline(
            {
                "level": [v.value for v in shown],
                "from_s": [v.from_s for v in shown],
                "to_s": [v.to_s for v in shown],
                "name": [v.name if last[v.name] is v else "" for v in shown],
            }
        )
    ).encode(y="level:Q")
    rules = base.mark_rule(color=theme.QUIET_INK, strokeDash=[4, 3], strokeWidth=1, clip=True)
    named = base.encode(x=alt.value("width"), text="name:N")
    rim = named.mark_text(**NAME, stroke=theme.GROUND, strokeWidth=3, strokeJoin="round")
    rules = rules.encode(x="from_s:Q", x2="to_s:Q", tooltip=["name:N", "level:Q"])
    return [rules], [rim, named.mark_text(**NAME)]
