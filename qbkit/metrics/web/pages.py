"""Page loads as tables: HTTP/3 against HTTP/2 after Yu and Benson, WWW '21, section 8."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from qbkit.errors import MetricError
from qbkit.metrics.web.loads import (
    complete_loads,
    difference_row,
    initial_window_packets,
    link_text,
    lost_packets,
    require_alike,
    require_table,
)
from qbkit.metrics.web.multiplexing import page_multiplexing
from qbkit.metrics.web.speed_index import page_speed_index
from qbkit.spec.loss import read_loss

SETTING = ("server", "client", "page", "loss", "rtt_ms")
"""Columns of `page_table` that make a cell."""
TITLES = {
    "page_load_time_s": "Page load time",
    "speed_index_s": "Speed Index",
    "first_contentful_paint_s": "First contentful paint",
    "largest_contentful_paint_s": "Largest contentful paint",
}
PAGE_TIMES = tuple(TITLES)
"""Columns of `page_table` that are compared."""
NO_LOSS = "none"


def page_table(loads: Sequence[xr.Dataset]) -> pd.DataFrame:
    """One row per complete page load.

    Columns: `SETTING` (``loss`` is in words: none, 1 % at random, 1 % in bursts of 10), ``link``
    and ``tcp_initial_window_packets`` (as in `web_table`), ``protocol``, ``seed``, the `PAGE_TIMES`
    in s since the navigation, ``main_start_s`` and ``main_end_s`` of the largest image (figure
    15), ``lost_packets``, ``resources``, ``bytes``, ``strategy`` (see `page_multiplexing`)
    and ``cpu_s``. Raises MetricError for a run that is no page load.
    """
    return pd.DataFrame([_row(run) for run in complete_loads(loads)])


def page_differences(table: pd.DataFrame) -> pd.DataFrame:
    """H3 against H2 in each setting and for each of `PAGE_TIMES` (figures 14 and 18).

    One row each: ``time`` (the column's name), ``h2_median_s``, ``h3_median_s``, and the difference
    of the medians in percent of H2's, ``difference_percent``, with its bootstrap interval
    ``low_percent`` and ``high_percent``; ``h2_loads`` and ``h3_loads``, which have that time.
    Negative: H3 is faster. A setting without two loads of each protocol is left out, and so is a
    time that its browser lacks.
    Raises MetricError for another table than `page_table`'s, and where loads of one setting differ
    in their link, or in TCP's initial window.
    """
    require_table(table, [*SETTING, "protocol", *PAGE_TIMES], "page_table")
    require_alike(table, SETTING)
    rows = []
    for setting, cell in table.groupby(list(SETTING), sort=False):
        sides = [cell[cell.protocol == protocol] for protocol in ("h2", "h3")]
        if min(map(len, sides)) < 2:
            continue
        for time in PAGE_TIMES:
            h2, h3 = (side[time].to_numpy(float) for side in sides)
            if np.isnan([*h2, *h3]).all():
                continue  # the browser does not report it
            where = dict(zip(SETTING, setting, strict=True))
            known = (side[np.isfinite(side)] for side in (h2, h3))
            rows.append({**where, "time": time, **difference_row(*known)})
    return pd.DataFrame(rows)


def protocol_shares(load: xr.Dataset) -> pd.DataFrame:
    """Share of a page's bytes by type of resource and protocol, in percent of the type (Table 3).

    Rows are DevTools' types with their ``bytes``; there is a column per protocol. Raises
    MetricError for a run that is no page load.
    """
    _require_page(load)
    frame = pd.DataFrame(
        {name: load[f"resource_{name}"].values for name in ("type", "protocol", "bytes")}
    )
    whole = frame.pivot_table(
        index="type", columns="protocol", values="bytes", aggfunc="sum", fill_value=0
    )
    total = whole.sum(axis=1)
    return whole.div(total, axis=0).mul(100).assign(bytes=total).reset_index()


def median_page_load(loads: Sequence[xr.Dataset], time: str = "page_load_time_s") -> xr.Dataset:
    """The load whose time (one of `PAGE_TIMES`) is the median, or next below it.

    Loads without that time do not count. Raises MetricError without loads that have it, and for
    another word.
    """
    if time not in PAGE_TIMES:
        raise MetricError(f"{time!r} is no time of a page; choose from {', '.join(PAGE_TIMES)}")
    if not loads:
        raise MetricError("there is no load to choose the median of")
    values = np.array([_row(run)[time] for run in loads])
    known = int(np.isfinite(values).sum())
    if not known:
        raise MetricError(
            f"no load has a {time}: its browser does not report it, or it ended early"
        )
    return loads[int(np.argsort(values, kind="stable")[(known - 1) // 2])]


def _row(run: xr.Dataset) -> dict[str, Any]:
    _require_page(run)
    spec = json.loads(run.attrs["web_load"])
    main = _main_image(run)
    return {
        **{name: spec[name] for name in ("server", "client", "page")},
        "loss": loss_in_words(spec["bottleneck"]),
        "rtt_ms": spec["bottleneck"]["rtt_ms"],
        "link": link_text(spec["bottleneck"]),
        "tcp_initial_window_packets": initial_window_packets(spec),
        "protocol": run.attrs["protocol"],
        "seed": spec["seed"],
        "page_load_time_s": float(run.page_load_time_s),
        "speed_index_s": page_speed_index(run),
        "first_contentful_paint_s": float(run.first_contentful_paint_s),
        "largest_contentful_paint_s": float(run.largest_contentful_paint_s),
        "main_start_s": float(run.resource_start_s[main]) if main is not None else np.nan,
        "main_end_s": float(run.resource_end_s[main]) if main is not None else np.nan,
        "lost_packets": int(lost_packets(run).sum()) if "packet_fate" in run else -1,
        "resources": run.sizes["resource"],
        "bytes": int(run.resource_bytes.sum()),
        "strategy": page_multiplexing(run).strategy if "chunk_resource" in run else "undecided",
        "cpu_s": float(run.attrs["cpu_s"]),
    }


def _require_page(run: xr.Dataset) -> None:
    if "page_load_time_s" not in run:
        raise MetricError("this run is no page load; give WebLoad a page and a browser")


def _main_image(run: xr.Dataset) -> int | None:
    """Index of the image with the most bytes; None for a page without images."""
    images = np.flatnonzero(run.resource_type.values == "image")
    if not len(images):
        return None
    return int(images[np.argmax(run.resource_bytes.values[images])])


def loss_in_words(link: dict[str, Any]) -> str:
    """The loss of a link (the JSON of a bottleneck) as in the column ``loss`` of `page_table`."""
    model = read_loss(link.get("loss_model", "random"))
    if model != "random":
        return f"{model.mean_loss_percent:.2g} % in bursts of {model.burst_words}"
    return f"{link['loss_percent']:g} % at random" if link["loss_percent"] else NO_LOSS
