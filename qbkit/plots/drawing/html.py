"""HTML of experiments and runs for notebooks: tables, a drawing of the topology, sparklines.

Labels, options and warnings may come from anywhere (captures, other people's specs), so all text is
escaped. Colours follow JupyterLab's theme, with fallbacks elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from importlib.resources import files

import numpy as np
import xarray as xr

from qbkit.errors import TraceError
from qbkit.metrics.flows.summary import summary, without_zeros
from qbkit.plots.drawing.link_words import buffer_words, link_words, path_words
from qbkit.plots.drawing.theme import colours
from qbkit.plots.drawing.topology_svg import sparkline_svg, topology_svg
from qbkit.spec import Experiment
from qbkit.traces.run.attributes import run_experiment, run_warnings
from qbkit.traces.run.telemetry import unit_of

SPARKLINE_POINTS = 160
LONG_LABEL = 36
"""Letters from which a label may be broken."""
MAX_ROWS = 30
"""Most flows in a table; below it stands the number of further flows."""
RUN_COLUMNS = {
    "goodput_mbps": "Goodput",
    "throughput_mbps": "Throughput",
    "loss_percent": "Loss",
    "rtt_mean_ms": "RTT mean",
    "rtt_std_ms": "RTT deviation",
    "queue_delay_mean_ms": "Queueing delay, per packet",
    "complete_s": "Complete after",
    "mean_frame_bytes": "Frame mean",
    "ce_marked_packets": "CE marks",
    "slow_start_lost_packets": "Lost in slow start",
    "spurious_losses": "Spurious losses",
    "ended_s": "Ended early",
}
"""Columns of `qbkit.metrics.flows.summary` → heading."""
DECIMALS = {"ms": 1, "B": 0, "packets": 0}
"""Unit → decimals, if not 2."""


def experiment_html(experiment: Experiment) -> str:
    """HTML of an experiment: a drawing of its topology, and a table of its flows."""
    e = experiment
    facts = [
        f"{e.duration_s:g} s",
        f"seed {e.seed}",
        f"jitter ±{e.sender_jitter_ms:.2g} ms",
        e.topology.replace("_", " "),
        *_options(e.bottleneck.qdisc_options),
    ]
    heading = ["Flow", "Stack", "Controller", "Starts", "Stops", "Transfers", "RTT"]
    heading += ["Direction", "Options"]
    palette = colours(e.labels)
    rows = [[_dotted(e.labels[i], palette[i]), *_flow_cells(e, i)] for i in range(len(e.flows))]
    return _box(
        f"<h4>Experiment</h4><p>{escape(' · '.join(facts))}</p>",
        topology_svg(e),
        _table([f"<th>{name}</th>" for name in heading], rows),
    )


def run_html(ds: xr.Dataset, *, reference: str | None = None) -> str:
    """HTML of a run: one row per flow with its numbers and throughput, and the run's warnings.

    The flow labelled ``reference`` is grey, as in charts.
    """
    try:
        table = without_zeros(summary(ds))
    except TraceError as error:  # a part of a run
        return _box(f"<h4>Run</h4><p>{escape(run_sentence(ds))}</p>", _warnings([str(error)]))
    labels = [str(v) for v in table["label"]]
    palette = colours(labels, reference)
    drawn = "throughput_mbps" in ds  # not all are published with it
    top = float(np.nanmax(ds["throughput_mbps"].values, initial=0.0)) if drawn else 0.0
    units = {n: unit_of(n) or "packets" for n in RUN_COLUMNS if n in table}
    heading = ["<th>Flow</th>"]
    heading += [
        f'<th class="number">{RUN_COLUMNS[name]}<br><span class="unit">{unit}</span></th>'
        for name, unit in units.items()
    ]
    if drawn:
        heading.append(
            f'<th>Throughput<br><span class="unit">0 to {top:.3g} Mbit/s, over time</span></th>'
        )
    rows = []
    for i in range(min(len(labels), MAX_ROWS)):
        cells = [_dotted(labels[i], palette[i])]
        for name, unit in units.items():
            cells.append(_number(table[name].iloc[i], DECIMALS.get(unit, 2)))
        if drawn:
            cells.append(f"<td>{sparkline_svg(_sparkline(ds, i), palette[i], top)}</td>")
        rows.append(cells)
    return _box(
        f"<h4>Run</h4><p>{escape(run_sentence(ds))}</p>",
        _table(heading, rows, total=len(labels)),
        _warnings(run_warnings(ds)),
    )


def run_sentence(ds: xr.Dataset, *, of_one_run: bool = True) -> str:
    """Duration, link, queue and engine of a run in one line of text; the seed if `of_one_run`."""
    a = ds.attrs
    parts = [f"{float(a['duration_s']):g} s"]
    spec = run_experiment(ds)
    if spec is not None:
        link = spec.bottleneck
        parts.append(", ".join(link_words(link)))
        parts.append(f"{link.qdisc}, buffer {buffer_words(spec)}")
        parts += path_words(link)
    elif "rate_mbps" in a and np.isfinite(a["rate_mbps"]):
        parts.append(f"{float(a['rate_mbps']):g} Mbit/s, {float(a['rtt_ms']):g} ms RTT")
    names = ("engine", "seed") if of_one_run else ("engine",)
    parts += [f"{name} {a[name]}" for name in names if str(a.get(name, ""))]
    return " · ".join(parts)


def _flow_cells(experiment: Experiment, index: int) -> list[str]:
    flow = experiment.flows[index]
    stop_s = experiment.duration_s if flow.stop_s is None else flow.stop_s
    amount = "until it stops" if flow.bytes is None else f"{flow.bytes:,} B".replace(",", " ")
    texts = [
        flow.stack,
        flow.controller,
        f"{experiment.flow_start_s(index):.4g} s",
        f"{stop_s:g} s",
        amount,
        f"{experiment.bottleneck.rtt_ms + flow.extra_rtt_ms:g} ms",
        flow.direction,
    ]
    options = ", ".join(_options(flow.options)) or "–"
    return [f"<td>{escape(t)}</td>" for t in texts] + [f'<td class="long">{escape(options)}</td>']


def _options(options: dict[str, str | int | float | bool]) -> list[str]:
    return [f"{name}={value}" for name, value in options.items()]


def _sparkline(ds: xr.Dataset, index: int) -> list[float]:
    mbps = ds["throughput_mbps"].values[index].astype(float)
    width = -(-len(mbps) // SPARKLINE_POINTS)
    starts = np.arange(0, len(mbps), width)
    sums = np.add.reduceat(mbps, starts)
    means: list[float] = (sums / np.diff(np.append(starts, len(mbps)))).tolist()
    return means


def _dotted(label: str, colour: str) -> str:
    dot = f'<span class="dot" style="background:{colour}"></span>'
    kind = "long" if len(label) > LONG_LABEL else "name"
    return f'<td class="{kind}">{dot}{escape(label)}</td>'


def _number(value: float | str, decimals: int) -> str:
    """A cell of a number, or of the word that stands for it."""
    if isinstance(value, str):
        text = escape(value)
    else:
        text = f"{value:.{decimals}f}" if math.isfinite(value) else "–"
    return f'<td class="number">{text}</td>'


def _table(heading: Iterable[str], rows: Sequence[Sequence[str]], total: int | None = None) -> str:
    total = len(rows) if total is None else total
    body = "".join(f"<tr>{''.join(cells)}</tr>" for cells in rows[:MAX_ROWS])
    more = f"<p>and {total - MAX_ROWS} more flows</p>" if total > MAX_ROWS else ""
    return f"<table><thead><tr>{''.join(heading)}</tr></thead><tbody>{body}</tbody></table>{more}"


def _warnings(sentences: Sequence[str]) -> str:
    if not sentences:
        return ""
    return f'<ul class="warnings">{"".join(f"<li>{escape(s)}</li>" for s in sentences)}</ul>'


def _box(*parts: str) -> str:
    return f'<style>{_style()}</style><div class="qbkit">{"".join(parts)}</div>'


@cache
def _style() -> str:
    return (files("qbkit.plots.drawing") / "style.css").read_text(encoding="utf-8")
