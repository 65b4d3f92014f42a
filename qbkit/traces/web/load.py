"""The dataset of a web load: the run's packets, and the times that its client measured.

A client reports ``load.json``, version 1, with all times in seconds since it started, on the
virtual clock::

    {"version": 1, "client": "go", "client_version": "…", "protocol": "h3",
     "started_ns": 1767225602000123456, "connect_s": …, "handshake_s": …, "first_byte_s": …,
     "last_byte_s": …, "bytes": 100000, "status": 200, "resources": […], "page": {…}}

``protocol`` is what the library, ALPN or a netlog proves, never what was asked for. ``started_ns``
is the clock's time at which the client's times begin; without it they begin with the first packet
of the client. ``early_data_accepted`` is what the handshake said, for a load with ``zero_rtt``;
``resources`` and ``page`` are those of pages.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from qbkit.errors import RunFailed
from qbkit.spec.web import WebLoad
from qbkit.traces.arrays import FloatArray
from qbkit.traces.run import schema
from qbkit.traces.run.attributes import run_warnings
from qbkit.traces.run.dataset import build
from qbkit.traces.run.early_end import STATUS, early_ends
from qbkit.traces.web.page import page_variables
from qbkit.traces.web.times import client_sent_s

OK = 200
RESOLUTION_S = 1e-3
"""More than the clocks of captures and clients differ."""
TIMES = {
    "connect_s": "connection of the transport (for h3 with its handshake)",
    "handshake_s": "end of the handshake with TLS",
    "first_byte_s": "first byte of the response",
}
"""Times of a client that the dataset has, since the client's first packet."""


def build_load(
    folder: Path,
    load: WebLoad,
    report: Mapping[str, Any] | None,
    attrs: Mapping[str, Any],
    warnings: Sequence[str] = (),
) -> xr.Dataset:
    """The run dataset of a load with what its client reported.

    In addition to `qbkit.traces.build`, it has the variables ``time_to_last_byte_s`` and `TIMES`,
    without dimensions, and the attributes ``web_load``, ``protocol``, ``client``, ``server`` and
    ``first_packet_s``, the time of the first packet of the measured connection on the run's clock.
    ``warnings`` are those of the recorded page, which come before those of the run.
    ``time_to_last_byte_s`` is the time from the first packet that the client sent to the last byte
    of the response (Yu and Benson, WWW '21, section 5); with ``zero_rtt``, from the first packet of
    the second connection, although the packets of the first are in the run too.

    Without a ``report`` the client failed. If it crashed, or the connection or the server died, all
    times are missing, the time to last byte is NaN, and the run has how it ended
    (`end_variables`). Raises RunFailed where the client failed otherwise, or the response is not
    the one that was asked for, or came after ``limit_s``.
    """
    if report is not None:
        _require_right_response(load, report)
    result = json.loads((folder / "result.json").read_text())
    taken_s = (result["end_ns"] - result["t0_ns"]) / 1e9
    if report is None:
        _require_dead_connection(folder, load, result)
        report = {"protocol": load.protocol, "last_byte_s": math.nan}
    elif taken_s >= load.limit_s:  # the guest leaves a program a few seconds more to end
        raise too_late(load)
    duration_s = max(schema.BIN_S, math.ceil(taken_s / schema.BIN_S) * schema.BIN_S)
    run = build(folder, load.experiment(round(duration_s, 6)), dict(attrs))
    sent_s = _sent_s(run, load)
    first_packet_s = began_s = float(sent_s[0])
    if "started_ns" in report:
        began_s = (report["started_ns"] - result["t0_ns"]) / 1e9
    if load.zero_rtt:  # the connection before it ended a second earlier
        first_packet_s = float(sent_s[np.searchsorted(sent_s, began_s - RESOLUTION_S)])
    since_s = began_s - first_packet_s
    times = {
        name: schema.variable((), report[name] + since_s, "s", f"time to {text}")
        for name, text in TIMES.items()
        if report.get(name) is not None
    }
    last = schema.variable((), report["last_byte_s"] + since_s, "s", "time to last byte")
    page = page_variables(folder / "flows/0", report) if "page" in report else {}
    return run.assign({"time_to_last_byte_s": last, **times, **page}).assign_attrs(
        web_load=load.to_json(),
        protocol=report["protocol"],
        server=load.server,
        client=load.client,
        first_packet_s=first_packet_s,
        client_report=json.dumps(dict(report), sort_keys=True),
        warnings=json.dumps([*warnings, *run_warnings(run)]),
    )


def too_late(load: WebLoad) -> RunFailed:
    """The error of a load that has not ended in its time."""
    return RunFailed(
        f"the client {load.client} had not ended within limit_s = {load.limit_s:g} s; "
        "raise it (--duration-s as an option)"
    )


def _require_dead_connection(folder: Path, load: WebLoad, result: Mapping[str, Any]) -> None:
    """Raise RunFailed where the client failed, and neither it, connection nor server died."""
    (end,) = early_ends(folder, load.experiment(), result)
    if end is None or (end.by == "receiver-program" and end.name.startswith(STATUS)):
        how = f"failed with {end.name}: {end.reason}" if end else "left no report"
        raise RunFailed(f"the client {load.client} {how}")


def _require_right_response(load: WebLoad, report: Mapping[str, Any]) -> None:
    """Raise RunFailed for another protocol, status or size than was asked for."""
    if report["protocol"] != load.protocol:
        raise RunFailed(
            f"the client {load.client} asked for {load.protocol}, "
            f"and the server {load.server_name} answered by {report['protocol']}"
        )
    if report["status"] != OK:
        raise RunFailed(f"the server {load.server_name} answered with status {report['status']}")
    if load.object_bytes is not None and report["bytes"] != load.object_bytes:
        raise RunFailed(
            f"the client {load.client} received {report['bytes']} of {load.object_bytes} bytes"
        )
    if load.zero_rtt and not report.get("early_data_accepted"):
        raise RunFailed(f"the server {load.server_name} did not accept early data")


def _sent_s(run: xr.Dataset, load: WebLoad) -> FloatArray:
    """As `client_sent_s`; raises RunFailed for a client that sent nothing."""
    if not run.sizes["ack"]:
        raise RunFailed(f"the client {load.client} sent no packet")
    return client_sent_s(run)
