"""The dataset of loads of URLs in real time: the times that the client measured, load by load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from qbkit.errors import RunFailed
from qbkit.traces.run import schema
from qbkit.traces.run.dataset import FORMAT_VERSION
from qbkit.traces.web.load import OK, TIMES


@dataclass(frozen=True)
class UrlLoad:
    """One load that was counted."""

    url: str
    address: str
    repetition: int
    started_s: float
    """Since the first load of the measurement."""
    report: Mapping[str, Any]
    """As load.json; see `qbkit.traces.web.load`."""


def require_response(report: Mapping[str, Any], url: str, protocol: str) -> None:
    """Raise RunFailed for another protocol than asked for, or another status than 200."""
    if report["protocol"] != protocol:
        raise RunFailed(
            f"{url} was asked for by {protocol} and answered by {report['protocol']}, which does "
            "not count"
        )
    if report["status"] != OK:
        raise RunFailed(f"{url} answered with status {report['status']}; give the URL of an object")


def build_urls(loads: Sequence[UrlLoad], attrs: Mapping[str, Any]) -> xr.Dataset:
    """A dataset with the dimension ``load``, in the order of the loads.

    Variables are those of a web load's run (`qbkit.traces.web.load.build_load`) that need no
    capture: ``time_to_last_byte_s``, ``connect_s``, ``handshake_s`` and ``first_byte_s``, all since
    the client began to connect; and ``bytes``, ``repetition`` and ``started_s``. Coordinates:
    ``url``, ``protocol``, ``client`` and ``address``.
    """
    reports = [load.report for load in loads]
    found = {
        "time_to_last_byte_s": _column(reports, "last_byte_s", "s", "time to last byte"),
        **{name: _column(reports, name, "s", f"time to {text}") for name, text in TIMES.items()},
        "bytes": _column(reports, "bytes", "B", "bytes of the response"),
    }
    started_s, repetition = (
        [getattr(x, name) for x in loads] for name in ("started_s", "repetition")
    )
    found["started_s"] = schema.variable("load", np.array(started_s), "s", "start of the load")
    found["repetition"] = schema.variable("load", np.array(repetition), "1", "repetition, from 0")
    words = {
        "url": [load.url for load in loads],
        "address": [load.address for load in loads],
        "protocol": [report["protocol"] for report in reports],
        "client": [report["client"] for report in reports],
    }
    coords = {
        name: ("load", np.array(values, dtype=str), {"long_name": name})
        for name, values in words.items()
    }
    return xr.Dataset(found, coords, {**attrs, "engine": "host", "format_version": FORMAT_VERSION})


def _column(
    reports: Sequence[Mapping[str, Any]], name: str, unit: str, text: str
) -> schema.Variable:
    values = [float("nan") if r.get(name) is None else r[name] for r in reports]
    return schema.variable("load", np.array(values), unit, text)
