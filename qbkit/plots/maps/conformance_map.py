"""The conformance map of a sweep; a click on a cell opens its envelopes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import altair as alt
import numpy as np
import xarray as xr

from qbkit.errors import MetricError
from qbkit.metrics.maps.cells import cell_envelopes, conformance_map
from qbkit.metrics.maps.families import family
from qbkit.metrics.maps.interactions import FIRST
from qbkit.metrics.maps.significance import map_sentence
from qbkit.metrics.verdicts.settling import settling
from qbkit.plots.drawing import theme
from qbkit.plots.drawing.captions import heading
from qbkit.plots.drawing.charts import HConcatChart, LayerChart
from qbkit.plots.drawing.data import PRINTED, inline
from qbkit.plots.drawing.pointer import cell_choice, one_brush
from qbkit.plots.maps.cell import DETAIL_WIDTH, MapCell, detail_chart
from qbkit.spec.network_words import FORMS

CELL_WIDTH, CELL_HEIGHT = 36, 20
QUANTITIES: dict[str, tuple[str, Any, tuple[float, float] | None, str]] = {
    "conformance": ("Conformance", "viridis", (0.0, 1.0), ".2f"),
    "deviation": ("Deviation", "lighttealblue", None, ".2f"),
    "conformance_t": ("Conformance-T", "viridis", (0.0, 1.0), ".2f"),
    "delta_throughput_mbps": ("Δ-throughput (Mbit/s)", "purpleorange", None, "+.1f"),
    "delta_delay_ms": ("Δ-delay (ms)", "purpleorange", None, "+.0f"),
    "mean_throughput_difference_mbps": (
        "Mean throughput minus the reference's (Mbit/s)",
        "purpleorange",
        None,
        "+.1f",
    ),
}
"""Variable of a conformance map → title, colour scheme, domain, number format."""
BESIDE = {
    "conformance_low": ("Conformance, 95 % from", ".2f"),
    "conformance_high": ("Conformance, 95 % to", ".2f"),
    "noise_floor": ("Noise floor", ".2f"),
    "p_value": ("p of the cell", ".2g"),
    "q_value": ("q among all cells", ".2g"),
    "drift_mbps": ("Throughput, second half of a trial minus the first (Mbit/s)", "+.1f"),
}
"""Further rows of the tooltip: variable → title, number format."""
LINK = "bottleneck."
"""What precedes a field of the link in the name of a swept field."""
OF_ITSELF = " with itself"
"""After the name of the reference: its row has the noise floor."""


def conformance_map_chart(
    cubes: Mapping[str, xr.Dataset],
    *,
    quantities: Sequence[str] = ("conformance", "deviation"),
    definition: str = "imc22",
    title: str = "Conformance to the kernel",
) -> alt.HConcatChart:
    """Heat maps of implementations (rows) by network settings (columns), as in IMC'22, Figure 2.

    ``cubes`` maps each reference (``tcp:cubic``) to the cube of its sweep. ``quantities`` are
    variables of `qbkit.metrics.conformance_map`, one heat map each. A click on a cell draws its
    envelope over the reference's at the right. The tooltip shows the cell's interval, noise floor
    and p-values; the subtitle says what the map may claim at its number of trials. The first row of
    each family has the noise floor, the others follow by conformance. Numbers are in brackets where
    an implementation does not settle in its trials (`qbkit.metrics.verdicts.settling`). Raises
    MetricError for an unknown quantity, and if no cell has both envelopes.
    """
    for name in quantities:
        if name not in QUANTITIES:
            raise MetricError(f"there is no quantity {name}; choose from {', '.join(QUANTITIES)}")
    found = {
        reference: conformance_map(cube, reference, definition=definition)
        for reference, cube in cubes.items()
    }
    cells = [
        cell
        for reference, cube in cubes.items()
        for cell in _cells(cube, definition, found[reference])
    ]
    if not cells:
        raise MetricError("no cell has envelopes of both sides; give a cube with runs of both")
    table = _table(cells)
    settings = _in_order(cells)
    first = next((cell for cell in cells if not cell.row.endswith(OF_ITSELF)), cells[0])
    chosen = cell_choice("cell", row=first.row, setting=first.setting)
    maps = [
        _heat(table, cells, settings, name, chosen, i == 0) for i, name in enumerate(quantities)
    ]
    with one_brush():
        chart = HConcatChart(hconcat=[*maps, detail_chart(cells, chosen)], spacing=24)
    sentences = ["Click a cell to see its envelope (orange) over the reference's (grey)."]
    if not all(cell.settles for cell in cells):
        sentences.append("In brackets: the implementation does not settle in its trials.")
    sentences += [map_sentence(each) for each in found.values()]
    width = len(quantities) * CELL_WIDTH * len(settings) + DETAIL_WIDTH
    return chart.resolve_scale(color="independent").properties(**heading(title, sentences, width))


def _cells(cube: xr.Dataset, definition: str, found: xr.Dataset) -> Iterator[MapCell]:
    """Cells of a conformance map that have the envelopes of both sides: those of the noise floor,
    then the most conformant implementation's."""
    reference = found.attrs["reference"]
    envelopes, drifts = cell_envelopes(cube, definition=definition), settling(cube)
    names = [str(name) for name in found[FIRST].values]
    mean = found.conformance.mean(found.conformance.dims[1:]).values.tolist()
    order = sorted(range(len(names)), key=lambda i: -mean[i] if mean[i] == mean[i] else 2.0)
    known = envelopes.sel({FIRST: reference}).values
    fields = [str(d) for d in envelopes.dims[1:]]
    for number in (None, *order):
        name = reference if number is None else names[number]
        settles = drifts.sel({FIRST: name})
        for place, against in np.ndenumerate(known):
            test = envelopes.sel({FIRST: name}).values.item(place)
            if not test or not against:
                continue
            values = tuple(
                envelopes[f].values[i].item() for f, i in zip(fields, place, strict=True)
            )
            figures = _figures(found, number, place)
            figures["drift_mbps"] = float(settles.drift_mbps.values[place])
            yield MapCell(
                f"{name}{OF_ITSELF}" if number is None else name,
                values,
                setting_text(dict(zip(fields, values, strict=True))),
                test,
                against,
                figures,
                bool(settles.settles.values[place]),
            )


def _figures(found: xr.Dataset, number: int | None, place: tuple[int, ...]) -> dict[str, float]:
    """The numbers of a cell; of the reference itself the noise floor alone."""
    if number is None:
        floors = found.noise_floor.values[(slice(None), *place)]
        floor = float(floors[np.isfinite(floors)].max(initial=-np.inf))
        floor = floor if math.isfinite(floor) else math.nan
        return dict.fromkeys((*QUANTITIES, *BESIDE), math.nan) | {
            "conformance": floor,
            "noise_floor": floor,
        }
    known = (name for name in (*QUANTITIES, *BESIDE) if name in found)
    return {name: float(found[name].values[(number, *place)]) for name in known}


def setting_text(values: Mapping[str, Any]) -> str:
    """Values of swept fields in a few words: ``10 ms, 0.5 BDP``."""
    fields = ((field.removeprefix(LINK), value) for field, value in values.items())
    return ", ".join(FORMS.get(f, f"{f.replace('_', ' ')} {{}}").format(v) for f, v in fields)


def _in_order(cells: Iterable[MapCell]) -> list[str]:
    """Settings in the order of the values of their fields."""
    known = {cell.setting: cell.values for cell in cells}
    return sorted(known, key=lambda setting: known[setting])


def _table(cells: Sequence[MapCell]) -> alt.InlineData:
    columns: dict[str, list[object]] = {
        "row": [c.row for c in cells],
        "setting": [c.setting for c in cells],
        "settles": [c.settles for c in cells],
    }
    for name in (*QUANTITIES, *BESIDE):
        columns[name] = [c.figures[name] for c in cells]
    return inline(columns, PRINTED)


def _heat(
    table: alt.InlineData,
    cells: Sequence[MapCell],
    settings: Sequence[str],
    name: str,
    chosen: alt.Parameter,
    named: bool,
) -> alt.LayerChart:
    """One heat map: coloured cells with their numbers; a frame marks the chosen cell."""
    title, scheme, domain, form = QUANTITIES[name]
    values = [c.figures[name] for c in cells if math.isfinite(c.figures[name])]
    low, high = domain or _domain(values)
    rows = list(dict.fromkeys(c.row for c in cells))
    base = alt.Chart(table).encode(
        x=alt.X("setting:N", sort=list(settings), title=None).axis(
            orient="top", labelAngle=-90, labelAlign="left", domain=False, ticks=False
        ),
        y=alt.Y("row:N", sort=rows, title=None).axis(
            labels=named, domain=False, ticks=False, labelLimit=240
        ),
    )
    scale = alt.Scale(scheme=scheme, domain=[low, high], clamp=True)
    colour = alt.Color(f"{name}:Q", scale=scale, legend=tile_legend(title))
    tooltip = [
        alt.Tooltip("row:N", title="Implementation"),
        alt.Tooltip("setting:N", title="Setting"),
    ]
    tooltip += [
        alt.Tooltip(f"{key}:Q", title=words, format=number)
        for key, (words, _, _, number) in QUANTITIES.items()
    ]
    tooltip += [alt.Tooltip(f"{k}:Q", title=w, format=f) for k, (w, f) in BESIDE.items()]
    tiles = base.mark_rect(stroke=theme.GROUND, strokeWidth=1).encode(color=colour, tooltip=tooltip)
    dark = _dark(scheme, name, low, high)
    number = f"replace(format(datum.{name}, '{form}'), /^0/, '')"
    words = base.transform_filter(f"isValid(datum.{name})").transform_calculate(
        words=f"datum.settles ? {number} : '(' + {number} + ')'"
    )
    numbers = words.mark_text(fontSize=10, tooltip=None).encode(
        text="words:N",
        color=alt.condition(dark, alt.value("white"), alt.value(theme.ON_TILE)),
    )
    here = base.transform_filter(chosen)
    # Dark on light and light on dark: one of the two lines shows on every tile.
    frame = [
        here.mark_rect(fill=None, stroke=colour, strokeWidth=width)
        for colour, width in ((theme.ON_TILE, 4.5), ("white", 1.8))
    ]
    layers = [tiles.add_params(chosen), numbers, *_separators(cells), *frame]
    return LayerChart(layer=layers).properties(
        width=CELL_WIDTH * len(settings),
        height=CELL_HEIGHT * len(rows),
        title=alt.TitleParams(title, fontSize=12, anchor="middle"),
    )


def _separators(cells: Sequence[MapCell]) -> list[alt.Chart]:
    """Lines between the rows of different families of controllers."""
    rows = list(dict.fromkeys(c.row for c in cells))
    families = [family(row.partition(":")[2]) for row in rows]
    first = [row for row, (a, b) in zip(rows[1:], pairwise(families), strict=True) if a != b]
    if not first:
        return []
    y = alt.Y("row:N", sort=rows, bandPosition=0)
    return [
        alt.Chart(inline({"row": first})).mark_rule(color=theme.INK, strokeWidth=1.6).encode(y=y)
    ]


def tile_legend(title: str) -> alt.Legend:
    """Legend of the colours of a heat map, below it; short, as a map cannot be narrower."""
    return alt.Legend(orient="bottom", title=title, titleOrient="left", gradientLength=90)


def _domain(values: Sequence[float]) -> tuple[float, float]:
    """Domain from 0, or symmetric about 0 if any value is negative."""
    far = max((abs(v) for v in values), default=1.0) or 1.0
    return (-far if min(values, default=0.0) < 0 else 0.0, far)


def _dark(scheme: str, name: str, low: float, high: float) -> str:
    """Vega expression that is true for cells so dark that their number must be white."""
    if scheme == "viridis":
        return f"datum.{name} < {low + 0.55 * (high - low)}"
    if low < 0:
        return f"abs(datum.{name}) > {0.75 * high}"
    return f"datum.{name} > {low + 0.7 * (high - low)}"
