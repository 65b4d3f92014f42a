"""Which controller is this? Asked of each flow of a run, or of the connection in a capture."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr

from qbkit import store
from qbkit.arguments import as_path
from qbkit.errors import MetricError, StoreError, TraceError
from qbkit.metrics.flows.lookup import flow_index, flow_labels
from qbkit.metrics.identity import UNKNOWN, Identity, Signatures, features_of, shipped
from qbkit.metrics.identity.signatures import OF_MODEL
from qbkit.metrics.parameters import Connection, observe, observe_events
from qbkit.metrics.parameters.connection import CAPTURE, sender_side_s
from qbkit.metrics.parameters.marks import kept_after_marks
from qbkit.metrics.parameters.reductions import REDUCES
from qbkit.traces.logs.any_log import read_log
from qbkit.traces.run.attributes import run_warnings

if TYPE_CHECKING:
    import xarray as xr

SMALL_PACKETS = 10.0
"""A window below this grows along no line or curve that could be seen."""
NEAR_RECEIVER = 0.1
"""A capture is the receiver's if less than this part of the RTT passes behind it."""


class Identification(dict[str, Identity]):
    """The controller of each flow, by the flow's label."""

    def frame(self) -> pd.DataFrame:
        """One row per flow: the controller, and why."""
        rows = [(label, one.answer, one.reason) for label, one in self.items()]
        return pd.DataFrame(rows, columns=["flow", "controller", "why"])

    def to_dict(self) -> dict[str, Any]:
        """The answers, the scores and the features, ready for JSON."""
        return {
            label: {
                "controller": one.answer,
                "why": one.reason,
                "scores": {name: round(score, 3) for name, score in one.scores.items()},
                "features": {
                    name: value for name, value in one.features.items() if math.isfinite(value)
                },
            }
            for label, one in self.items()
        }

    def __repr__(self) -> str:
        return "\n".join(f"{label}: {one.answer}, {one.reason}" for label, one in self.items())

    def _repr_html_(self) -> str:
        folded = (
            f"<details><summary>{escape(label)}: what counts</summary>"
            f"{one.evidence.round(2).to_html(na_rep='')}</details>"
            for label, one in self.items()
            if len(one.evidence)
        )
        return self.frame().to_html(index=False) + "".join(folded)


def identify(
    source: str | Path | xr.Dataset,
    flow: str | int | None = None,
    *,
    signatures: Signatures | None = None,
    **choice: Any,
) -> Identification:
    """Which controller has each flow of a run, or the connection of a capture or a log?

    ``source`` is a capture or a log (`qb.read_log`, which takes ``choice``: ``keylog``, ``sender``,
    ``port`` …), a stored run (its file or name), or the dataset of any of these. ``flow`` is the
    only flow of a run to look at. Packets alone decide: when they were sent, acknowledged and lost.
    "unknown" is an answer, and says why: the connection is too short, nothing happened in it that
    separates controllers, or it resembles none of `qbkit.metrics.identity.signatures`, or two.
    Raises StoreError or TraceError for what is no run, capture or log, and for a capture that
    cannot show the window: encrypted without its secrets, or made at the receiver.
    """
    opened = _opened(source, choice)
    known = signatures or shipped()
    if "flow" not in opened.dims:
        if flow is not None:
            raise StoreError(
                f"this is no run, and has no flow {flow}; leave it out (in a capture, port chooses "
                "the connection)",
                refused=True,
            )
        for text in run_warnings(opened):
            warnings.warn(text, stacklevel=2)
        title = str(opened.attrs.get("title", "")) or "the connection"
        return Identification({title: _identity(_of_log(opened, title), known)})
    labels = flow_labels(opened)
    wanted = range(len(labels)) if flow is None else [flow_index(opened, flow)]
    return Identification({labels[i]: _of_run(opened, i, known) for i in wanted})


def _opened(source: str | Path | xr.Dataset, choice: Mapping[str, Any]) -> xr.Dataset:
    """The dataset of a run, or the events of a log."""
    if isinstance(source, xr.Dataset) and choice:
        raise StoreError(
            f"a dataset is read already; {', '.join(choice)} chooses nothing of it", refused=True
        )
    if isinstance(source, xr.Dataset):
        return source
    path = as_path(source)
    if path.is_dir():
        raise StoreError(
            f"{source} is a folder; give a capture or a log in it, or a run's FILE.nc", refused=True
        )
    stored = path if path.suffix == ".nc" else store.path_of(str(source))
    if path.is_file() and path.suffix != ".nc":
        return read_log(path, **choice)
    if not stored.exists():
        raise StoreError(
            f"there is no {source}; give a capture or a log, a run's FILE.nc, or a name of "
            "`qbkit runs`",
            refused=True,
        )
    if choice:
        raise StoreError(
            f"{source} is a run, of which {', '.join(choice)} chooses nothing", refused=True
        )
    return store.load_run(stored)


def _of_run(run: xr.Dataset, index: int, known: Signatures) -> Identity:
    try:
        connection = observe(run, index)
    except MetricError as error:
        return _nothing_seen(error)
    found = _identity(connection, known)
    if found.answer in OF_MODEL and (hidden := _hides_law(connection, run, index)):
        return replace(found, answer=UNKNOWN, reason=f"it resembles {found.answer}, but {hidden}")
    return found


def _hides_law(connection: Connection, run: xr.Dataset, index: int) -> str:
    """What makes a window that losses reduce look like a model of the path; "" where nothing does.

    Its cycles are then short, and it has few losses, or none.
    """
    kept = kept_after_marks(connection, run, index)
    if len(kept) and np.median(kept) <= REDUCES:
        return "a queue marks its packets, and the marks reduce its window"
    usual = float(np.median(connection.in_flight_packets))
    if usual < SMALL_PACKETS:
        return f"so does any window of a few packets (the median of this one is {usual:.3g})"
    return ""


def _of_log(events: xr.Dataset, title: str) -> Connection:
    """The connection of a log; TraceError for a capture that cannot show the window."""
    captured = events.attrs.get("source") == CAPTURE
    if captured and not events.sizes["sent"]:
        raise TraceError(
            f"the end of {title} that is taken for the sender sends no data: give the other as "
            "sender, or a capture of both directions"
        )
    if captured and not events.sizes["acked"]:
        remedy = (
            "capture both directions"
            if title.startswith("tcp")
            else "QUIC needs its secrets (keylog), or captures on both sides of the queue "
            "(`qbkit import-pcaps`)"
        )
        raise TraceError(f"the capture shows no acknowledgements of {title}: {remedy}")
    if not events.sizes["acked"]:
        raise TraceError(
            f"the log of {title} has no acknowledgements (quinn's has no frames at all); give a "
            "run or a capture"
        )
    try:
        connection = observe_events(events)
    except MetricError as error:
        hint = "" if captured else "; the log of the end that receives shows no controller"
        raise TraceError(f"{error}{hint}") from None
    side_s = sender_side_s(events) if captured else 0.0
    if side_s > (1 - NEAR_RECEIVER) * connection.min_rtt_s:
        raise TraceError(
            f"the capture of {title} was made at the receiver, behind the queue and its losses; "
            "make it at the sender"
        )
    return connection


def _identity(connection: Connection, known: Signatures) -> Identity:
    try:
        return known.identify(features_of(connection))
    except MetricError as error:
        return _nothing_seen(error)


def _nothing_seen(error: MetricError) -> Identity:
    return Identity(UNKNOWN, str(error), {}, {}, pd.DataFrame())
