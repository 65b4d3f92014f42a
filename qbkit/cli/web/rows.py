"""What ``qbkit web`` prints of its loads: a row of each, and why they took their time."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import Any
from urllib.parse import urlsplit

import click
import xarray as xr

from qbkit.cli.output import print_table
from qbkit.errors import MetricError
from qbkit.metrics import infer, limits_sentence, load_limits
from qbkit.metrics.flows.summary import flow_summaries
from qbkit.metrics.parameters import PARAMETERS, Parameters
from qbkit.metrics.web.loads import is_complete_load, measured_packets
from qbkit.metrics.web.speed_index import page_speed_index
from qbkit.spec.web import WebLoad
from qbkit.traces.run.early_end import early_end_sentences

PAGE_TIMES = ("page_load_time_s", "speed_index_s", "largest_contentful_paint_s")
TIMES = ("handshake_s", "first_byte_s")


def load_row(load: WebLoad, run: xr.Dataset | None) -> dict[str, Any]:
    """One load as the command prints it; None for what is unknown, or without a run."""
    whole = PAGE_TIMES if load.page is not None else ("time_to_last_byte_s",)
    row: dict[str, Any] = {"protocol": load.protocol, "seed": load.seed}
    row |= {name: None if run is None else _time_s(run, name) for name in (*whole, *TIMES)}
    limits = None if run is None else _limits_s(run)
    loss = None if run is None else flow_summaries(measured_packets(run))[0]["loss_percent"]
    most = (
        limits
        and f"{next(iter(limits))} ({100 * max(limits.values()) / sum(limits.values()):.0f} %)"
    )
    said = [] if run is None else [each.partition(": ")[2] for each in early_end_sentences(run)]
    ended = "; ".join(said) or None  # without the label
    return {**row, "loss_percent": loss, "limited_by": most, "ended": ended, "limits_s": limits}


def _limits_s(run: xr.Dataset) -> dict[str, float] | None:
    """The parts of a load, the longest first; None if its client does not report enough."""
    try:
        return {str(name): round(value, 6) for name, value in load_limits(run).items()}
    except MetricError:
        return None


def _time_s(run: xr.Dataset, name: str) -> float | None:
    """A time of a load, None if it was not complete or its client has none."""
    if not is_complete_load(run):
        return None
    if name == "speed_index_s":
        time_s = page_speed_index(run)
    elif name in run:
        time_s = float(run[name])
    else:
        return None
    return None if isnan(time_s) else round(time_s, 6)


def explanation(runs: Sequence[xr.Dataset]) -> dict[str, Any]:
    """Why each load took its time, and the parameters that its packets show, by protocol."""
    sentences, found = [], {}
    for run in runs:
        try:
            sentences.append(f"{run.attrs['protocol']}: {limits_sentence(run)}")
        except MetricError as error:
            sentences.append(f"{run.attrs['protocol']}: {error}")
    for protocol in dict.fromkeys(run.attrs["protocol"] for run in runs):
        try:
            found[protocol] = _inferred([run for run in runs if run.attrs["protocol"] == protocol])
        except MetricError as error:
            sentences.append(f"{protocol}: {error}")
    rows = [
        {
            "parameter": meaning,
            **{word: str(seen[name]) for word, seen in found.items()},
            "unit": unit,
        }
        for name, (unit, meaning) in PARAMETERS.items()
        if any(seen[name].known for seen in found.values())
    ]
    return {"sentences": sentences, "parameters": rows}


def _inferred(runs: Sequence[xr.Dataset]) -> Parameters:
    """The parameters of the server; MetricError for a page of several hosts."""
    urls = runs[0]["resource_url"].values if "resource_url" in runs[0] else ()
    hosts = {urlsplit(str(url)).hostname for url in urls}
    if len(hosts) > 1:
        raise MetricError(
            f"the page has {len(hosts)} hosts, so its packets are of several connections, and "
            "parameters are inferred of one"
        )
    return infer([measured_packets(run) for run in runs])


def print_explanation(explained: dict[str, Any] | None) -> None:
    """Print the sentences, then the parameters side by side."""
    if explained is None:
        return
    for sentence in explained["sentences"]:
        click.echo(sentence)
    if explained["parameters"]:
        print_table(explained["parameters"])
