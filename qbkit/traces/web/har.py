"""A page load as an HTTP Archive (HAR 1.2), from the browser's DevTools events."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import harfile

from qbkit.errors import TraceError
from qbkit.stacks.web.site import NO_CONTENT

UNKNOWN = -1.0
"""HAR's value for a time or size that is not known."""


@dataclass
class _Exchange:
    """A request with everything that the events say of it."""

    sent: dict[str, Any]
    headers: dict[str, str] = field(default_factory=dict)
    response: dict[str, Any] = field(default_factory=dict)
    end_s: float | None = None
    transferred_bytes: int = 0


def write_har(events: Path, target: Path, client: str) -> None:
    """Write ``target`` from a file of DevTools events, one ``[method, parameters]`` a line.

    ``client`` is the browser's name and version, as in ``HeadlessChrome/156.0``. The archive has
    one page and an entry per response, with times in ms of the virtual clock, and no bodies. The
    library harfile writes the entries. Raises TraceError for a file without responses.
    """
    exchanges, marks = _read(events)
    done = [one for one in exchanges if one.response and one.end_s is not None]
    if not done:
        raise TraceError(f"{events.name} holds no response")
    name, _, version = client.partition("/")
    text = io.StringIO()
    creator, browser = harfile.Creator("qbkit", "1"), harfile.Browser(name, version)
    with harfile.HarFile.open(text, creator=creator, browser=browser) as har:
        for exchange in done:
            har.add_entry(**_entry(exchange))
    data = json.loads(text.getvalue())
    _add_page(data["log"], done, marks)
    target.write_text(json.dumps(data, indent=1) + "\n")


def _add_page(log: dict[str, Any], done: list[_Exchange], marks: Mapping[str, float]) -> None:
    """The page, and what Chrome's own archives say of a request; harfile writes neither."""
    first = done[0].sent
    start_s = first["timestamp"]
    timings = {
        "onContentLoad": _ms(start_s, marks.get("Page.domContentEventFired")),
        "onLoad": _ms(start_s, marks.get("Page.loadEventFired")),
    }
    log["pages"] = [
        {
            "startedDateTime": _date(first["wallTime"]).isoformat(),
            "id": "page_1",
            "title": first["request"]["url"],
            "pageTimings": timings,
        }
    ]
    for entry, exchange in zip(log["entries"], done, strict=True):
        entry["pageref"] = "page_1"
        entry["_initiator"] = exchange.sent["initiator"]
        entry["_priority"] = exchange.sent["request"]["initialPriority"]
        entry["_resourceType"] = exchange.sent.get("type", "Other").lower()


def _read(events: Path) -> tuple[list[_Exchange], dict[str, float]]:
    """All requests in their order, and the times of the page's own events."""
    found: dict[str, _Exchange] = {}
    marks: dict[str, float] = {}
    for line in events.read_text().splitlines():
        method, params = json.loads(line)
        if method.startswith("Page."):
            marks[method] = params["timestamp"]
        elif method == "Network.requestWillBeSent":
            _keep_redirect(found, params)
            found[params["requestId"]] = _Exchange(params)
        elif params.get("requestId") in found:
            _take(found[params["requestId"]], method, params)
    return list(found.values()), marks


def _keep_redirect(found: dict[str, _Exchange], params: dict[str, Any]) -> None:
    """Give the request that led to this one, under the same number, a name of its own."""
    before = found.pop(params["requestId"], None)
    if before and "redirectResponse" in params:
        _answer(before, params["redirectResponse"], params["timestamp"])
        found[f"{params['requestId']} until {before.end_s}"] = before


def _answer(exchange: _Exchange, response: dict[str, Any], end_s: float) -> None:
    """Give a request a response without a body."""
    exchange.response, exchange.end_s = response, end_s
    exchange.transferred_bytes = response["encodedDataLength"]


def _take(exchange: _Exchange, method: str, params: dict[str, Any]) -> None:
    if method == "Network.requestWillBeSentExtraInfo":
        exchange.headers = params["headers"]
    elif method == "Network.responseReceived":
        exchange.response = params["response"]
    elif method == "Network.loadingFinished":
        exchange.end_s = params["timestamp"]
        exchange.transferred_bytes = params["encodedDataLength"]
    elif method == "Network.loadingFailed" and exchange.response.get("status") == NO_CONTENT:
        _answer(exchange, exchange.response, params["timestamp"])  # a fetch() of nothing ends so


def _entry(exchange: _Exchange) -> dict[str, Any]:
    """The arguments of harfile's ``add_entry``."""
    sent, response, end_s = exchange.sent, exchange.response, exchange.end_s or 0.0
    request, version = sent["request"], response.get("protocol", "")
    headers_bytes = response.get("encodedDataLength", UNKNOWN)
    content = harfile.Content(
        size=int(response["headers"].get("content-length", 0)), mimeType=response["mimeType"]
    )
    return {
        "startedDateTime": _date(sent["wallTime"]),
        "time": _ms(sent["timestamp"], end_s),
        "request": harfile.Request(
            method=request["method"],
            url=request["url"],
            httpVersion=version,
            headers=_records(exchange.headers or request["headers"]),
            queryString=[
                harfile.Record(name, value)
                for name, value in parse_qsl(urlsplit(request["url"]).query, True)
            ],
            bodySize=0,
        ),
        "response": harfile.Response(
            status=response["status"],
            statusText=response.get("statusText", ""),
            httpVersion=version,
            headers=_records(response["headers"]),
            content=content,
            redirectURL=response["headers"].get("location", ""),
            headersSize=int(headers_bytes),
            bodySize=int(exchange.transferred_bytes - headers_bytes),
        ),
        "timings": _timings(sent["timestamp"], response.get("timing"), end_s),
        "serverIPAddress": response.get("remoteIPAddress"),
        "connection": str(response["connectionId"]),
    }


def _timings(start_s: float, timing: Mapping[str, float] | None, end_s: float) -> harfile.Timings:
    """HAR's phases: they add up to the entry's time; -1 where a phase did not happen.

    Without the browser's timing, as for the script of a worker, all of it is the wait.
    """
    if timing is None:
        return harfile.Timings(send=0, wait=_ms(start_s, end_s), receive=0)
    request_s = timing["requestTime"]

    def phase(first: str, last: str) -> float:
        return round(timing[last] - timing[first], 3) if timing[first] >= 0 else UNKNOWN

    headers_s = request_s + timing["receiveHeadersEnd"] / 1e3
    dns, connect = phase("dnsStart", "dnsEnd"), phase("connectStart", "connectEnd")
    blocked = round(
        (request_s - start_s) * 1e3 + timing["sendStart"] - max(dns, 0) - max(connect, 0), 3
    )
    return harfile.Timings(
        blocked=blocked,
        dns=dns,
        connect=connect,
        ssl=phase("sslStart", "sslEnd"),
        send=phase("sendStart", "sendEnd"),
        wait=phase("sendEnd", "receiveHeadersEnd"),
        receive=_ms(headers_s, end_s),
    )


def _records(headers: Mapping[str, str]) -> list[harfile.Record]:
    return [harfile.Record(name, value) for name, value in headers.items()]


def _date(wall_s: float) -> datetime:
    return datetime.fromtimestamp(wall_s, UTC)


def _ms(start_s: float, end_s: float | None) -> float:
    return UNKNOWN if end_s is None else round((end_s - start_s) * 1e3, 3)
