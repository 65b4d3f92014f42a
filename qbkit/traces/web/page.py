"""What a browser reports of a page, as variables of the load's dataset."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from qbkit.errors import RunFailed
from qbkit.traces.run.schema import Variable, variable
from qbkit.traces.web.streams import DEFAULT_URGENCY, read_streams
from qbkit.traces.web.visual import visual_progress

PAINTS = {
    "load_s": ("page_load_time_s", "page load time: when the load event fires"),
    "first_paint_s": ("first_paint_s", "first paint"),
    "first_contentful_paint_s": ("first_contentful_paint_s", "first contentful paint"),
    "largest_contentful_paint_s": ("largest_contentful_paint_s", "largest contentful paint"),
}
"""Member of the report → variable and meaning; all count from the navigation."""
RESOURCE_TIMES = {"start_s": "request", "first_byte_s": "first byte", "end_s": "last byte"}
FILM_PIXELS, FILM_QUALITY = (400, 300), 55
"""Stored screenshots; the visual progress is measured on those of full size."""


def page_variables(folder: Path, report: Mapping[str, Any]) -> dict[str, Variable]:
    """Variables of a page load, from the client's folder and its ``load.json``.

    All times are in s since the navigation. Dimensions: ``resource`` (the responses in the order
    of their requests), ``screenshot`` (frames that differ from the one before), ``film_byte``
    (their small JPEGs, one after another; ``film_end`` is where each ends) and ``chunk`` (data by
    stream as they came); those of screenshots and chunks only for a browser that has them. Raises
    RunFailed where the browser painted nothing.
    """
    page, resources = report["page"], report["resources"]
    found = {
        name: variable((), np.nan if page[key] is None else page[key], "s", text)
        for key, (name, text) in PAINTS.items()
    }
    zero_s, frames_s = page["navigation_s"], page["frames_s"]
    return {
        **found,
        **_resources(resources, zero_s),
        **(_screenshots(folder, frames_s) if frames_s is not None else {}),
        **_chunks(folder, report),
    }


def _resources(rows: list[dict[str, Any]], zero_s: float) -> dict[str, Variable]:
    found = {
        f"resource_{key}": variable(
            "resource", np.array([row[key] - zero_s for row in rows]), "s", f"time of the {text}"
        )
        for key, text in RESOURCE_TIMES.items()
    }
    sizes = np.array([row["bytes"] for row in rows], dtype=np.int64)
    found["resource_bytes"] = variable("resource", sizes, "B", "bytes of the response")
    words = {"url": "URL", "type": "DevTools' type", "protocol": "protocol", "priority": "priority"}
    for key, text in words.items():
        values = np.array([row[key] for row in rows], dtype=str)
        found[f"resource_{key}"] = variable("resource", values, "1", text)
    return found


def _screenshots(folder: Path, times_s: list[float]) -> dict[str, Variable]:
    """Frames since the navigation; equal neighbours count once, as in speedline."""
    frames: list[bytes] = []
    kept_s: list[float] = []
    for number, time_s in enumerate(times_s):
        data = (folder / f"frame-{number:04d}.jpg").read_bytes()
        if time_s >= 0 and (not frames or data != frames[-1]):
            frames.append(data)
            kept_s.append(time_s)
    if not frames:
        raise RunFailed("the browser painted nothing, so there is no screenshot")
    film = [_small(data) for data in frames]
    ends = np.cumsum([len(data) for data in film])
    whole = np.frombuffer(b"".join(film), dtype=np.uint8)
    progress = visual_progress(frames)
    return {
        "screenshot_time_s": variable("screenshot", np.array(kept_s), "s", "screenshot"),
        "visual_progress_percent": variable("screenshot", progress, "%", "visual progress"),
        "film_end": variable("screenshot", ends, "B", "end of its JPEG in film_byte"),
        "film": variable("film_byte", whole, "1", "small JPEGs of the screenshots"),
    }


def _small(data: bytes) -> bytes:
    from PIL import Image

    with Image.open(io.BytesIO(data)) as image:
        file = io.BytesIO()
        image.resize(FILM_PIXELS).save(file, "JPEG", quality=FILM_QUALITY)
    return file.getvalue()


def _chunks(folder: Path, report: Mapping[str, Any]) -> dict[str, Variable]:
    """Data by stream; nothing for a browser without a net log of Chromium."""
    path = folder / "netlog.json"
    if not path.exists():
        return {}
    streams, rows = read_streams(path), report["resources"]
    zero_s = report["clock_s"] + report["page"]["navigation_s"]
    index = {row["url"]: number for number, row in enumerate(rows)}
    urgency = {streams.urls[key]: value for key, value in streams.urgency.items()}
    sent_s = {streams.urls[key]: value - zero_s for key, value in streams.sent_s.items()}
    chunks = [
        (chunk.time_s - zero_s, chunk.size_bytes, chunk.new_bytes, index[url], chunk.connection)
        for chunk in streams.chunks
        if (url := streams.urls.get((chunk.connection, chunk.stream))) in index
    ]
    time_s, *numbers = np.array(chunks).reshape(-1, 5).T
    size_bytes, new_bytes, resource, connection = (column.astype(np.int64) for column in numbers)
    urgencies = np.array([urgency.get(row["url"], DEFAULT_URGENCY) for row in rows])
    requests_s = np.round([sent_s.get(row["url"], np.nan) for row in rows], 6)
    priority = "urgency of the request (RFC 9218); 0 is the most urgent"
    return {
        "chunk_time_s": variable("chunk", np.round(time_s, 6), "s", "arrival, to 1 ms"),
        "chunk_bytes": variable("chunk", size_bytes, "B", "data of one stream"),
        "chunk_new_bytes": variable("chunk", new_bytes, "B", "those beyond all earlier data"),
        "chunk_resource": variable("chunk", resource, "1", "resource"),
        "chunk_connection": variable("chunk", connection, "1", "number of its connection"),
        "resource_sent_s": variable("resource", requests_s, "s", "request left, to 1 ms"),
        "resource_urgency": variable("resource", urgencies, "1", priority),
    }
