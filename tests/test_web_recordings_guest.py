"""Recordings of other people's pages, loaded by real browsers in the guest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import qbkit as qb
from qbkit.errors import RunFailed
from qbkit.stacks.web import base as web

WWW, ADS, CDN = "https://www.example.org", "https://ads.example.net", "http://cdn.example.com"
SVG = "<svg xmlns='http://www.w3.org/2000/svg'/>"
DOCUMENT = f"""<!doctype html><link rel="icon" href="/icon.png"><link rel="manifest" href="/m.json">
<script src="{CDN}/a.js"></script><link rel="stylesheet" href="a.css"><p>Hello</p>
<img src="{CDN}/a.svg"><iframe sandbox="allow-scripts" src="{ADS}/frame.html"></iframe>
<script>new Worker("/worker.js")</script>"""
FRAME = "<p>Buy</p><script>fetch('/seen', {mode: 'no-cors'})</script>"
WORKER = "fetch('/later.txt')"
CLIENTS = [
    pytest.param(
        name,
        marks=pytest.mark.skipif(
            not web.client(name).status().ready, reason=web.client(name).status().reason
        ),
    )
    for name in ("headless-shell", "chromium", "firefox")
]
pytestmark = pytest.mark.guest


def entry(url: str, status: int, kind: str, text: str = "", **more: Any) -> dict[str, Any]:
    content = {"size": more.pop("size", len(text)), "mimeType": kind, "text": text}
    location = [{"name": "Location", "value": more.pop("to")}] if "to" in more else []
    response = {"status": status, "headers": location, "content": content}
    return {"request": {"method": more.pop("method", "GET"), "url": url}, "response": response}


SHOP = [
    entry("http://example.org/", 301, "", to="http://www.example.org/"),
    entry("http://www.example.org/", 307, "", to=f"{WWW}/"),
    entry(f"{WWW}/", 304, "text/html", DOCUMENT),
    entry(f"{CDN}/a.js", 0, "text/javascript", "1;"),
    entry(f"{WWW}/a.css", -2, ""),
    entry(f"{WWW}/a.css", 200, "text/css", "p {color: red}"),
    entry(f"{CDN}/a.svg", 200, "image/svg+xml", SVG),
    entry(f"{ADS}/frame.html", 200, "text/html", FRAME),
    entry(f"{ADS}/seen", 204, ""),
    entry(f"{WWW}/worker.js", 200, "text/javascript", WORKER),
    entry(f"{WWW}/later.txt", 200, "text/plain", "x" * 5000),
]


def load_of(folder: Path, entries: list[dict[str, Any]], client: str, **more: Any) -> qb.WebLoad:
    path = folder / "shop.har"
    path.write_text(json.dumps({"log": {"entries": entries}}))
    link = qb.Bottleneck(rate_mbps=20, rtt_ms=50)
    given = {"bottleneck": link, "server": "envoy:cubic", "client": client, "page": str(path)}
    return qb.WebLoad(**{**given, "protocol": "h3", "limit_s": 20, **more})


@pytest.mark.parametrize("protocol", ["h2", "h3"])
@pytest.mark.parametrize("client", CLIENTS)
def test_a_page_loads_as_it_was_recorded(client: str, protocol: str, tmp_path: Path):
    load = load_of(tmp_path, SHOP, client, protocol=protocol)
    run = qb.run_web(load, out=tmp_path / "run.nc")
    paths = {"/", "/a.css", "/worker.js"} | ({"/later.txt"} if client != "firefox" else set())
    wanted = {f"{WWW}{path}" for path in paths} | {"https://cdn.example.com/a.js"}
    wanted |= {"https://cdn.example.com/a.svg", f"{ADS}/frame.html", f"{ADS}/seen"}
    assert wanted <= set(run.resource_url.values)
    assert set(run.resource_protocol.values) == {protocol}
    # Three hosts before the frame's, one after another: each connects, then answers.
    round_trips = 3 * (2 if protocol == "h3" else 3)
    assert float(run.page_load_time_s) > round_trips * 0.050
    assert "shop.har: addresses with http, which are served by https: 4" in json.loads(
        run.attrs["warnings"]
    )


@pytest.mark.parametrize("client", CLIENTS)
def test_a_load_that_does_not_complete_names_what_it_waits_for(client: str, tmp_path: Path):
    large = f"{WWW}/large.png"
    entries = [
        entry(f"{WWW}/", 200, "text/html", f"<p>Hello</p><img src={large}>"),
        entry(large, 200, "image/png", size=20_000_000),
    ]
    del entries[1]["response"]["content"]["text"]
    slow = qb.Bottleneck(rate_mbps=3, rtt_ms=50)  # few packets: the rest never comes
    load = load_of(tmp_path, entries, client, limit_s=5, bottleneck=slow)
    with pytest.raises(RunFailed) as caught:
        qb.run_web(load, out=tmp_path / "run.nc")
    assert str(caught.value).endswith(
        f"{WWW}/ was not complete within 4.5 s, nine tenths of limit_s (raise it; --duration-s as "
        f"an option); 1 of its resources had not come: {large}"
    )
