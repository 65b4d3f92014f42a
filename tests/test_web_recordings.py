"""HTTP Archives as browsers and proxies write them: which response of an address is served."""

from __future__ import annotations

import codecs
import gzip
import itertools
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from qbkit.errors import SpecError
from qbkit.stacks.web.clients.chromium import HeadlessShell
from qbkit.stacks.web.pages.page import Page
from qbkit.stacks.web.pages.recorded import recorded_page
from qbkit.stacks.web.pages.sites import page_site
from qbkit.stacks.web.site import NOTES
from qbkit.traces.web.har import write_har

A, B = "https://www.example.org", "https://ads.example.net"
STYLE = f"{A}/a.css"


def entry(
    url: str, status: Any = 200, size: Any = 900, kind: str = "text/html", **more: Any
) -> dict[str, Any]:
    """An entry without a body, unless ``text`` is one."""
    content = {"size": size, "mimeType": kind}
    if "text" in more:
        content |= {"text": more["text"], "size": more.pop("whole", len(more.pop("text")))}
    location = [{"name": "Location", "value": more.pop("to")}] if "to" in more else []
    response = {"status": status, "headers": location, "content": content, "bodySize": size}
    response |= more.pop("response", {})
    return {"request": {"method": more.pop("method", "GET"), "url": url}, "response": response}


def style(status: Any = 200, size: Any = 3000, **more: Any) -> dict[str, Any]:
    return entry(more.pop("url", STYLE), status, size, "text/css", **more)


def page_of(folder: Path, *entries: Any) -> Page:
    path = folder / "shop.har"
    path.write_text(json.dumps({"log": {"entries": list(entries)}}))
    return recorded_page(path)


def served(page: Page) -> dict[str, tuple[int, int]]:
    """Status and bytes of each address."""
    return {resource.url: (resource.status, len(resource.body)) for resource in page.resources}


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        pytest.param([style(-2, 0), style()], (200, 3000), id="failed-first"),
        pytest.param([style(), style(-2, 0)], (200, 3000), id="failed-last"),
        pytest.param([style(404, 50), style()], (200, 3000), id="not-found-first"),
        pytest.param([style(204, 0, method="OPTIONS"), style()], (200, 3000), id="preflight"),
        pytest.param([style(304, 0), style()], (200, 3000), id="second-load-first"),
        pytest.param([style(304, response={"bodySize": 0})], (200, 3000), id="only-304"),
        pytest.param([style(304, text="a{}")], (200, 3), id="304-with-its-body"),
        pytest.param([style(0, text="a{}")], (200, 3), id="status-0-with-a-body"),
        pytest.param([style(text="a{}", whole=3000)], (200, 3000), id="cut"),
        pytest.param([style(text="a{}", whole=6)], (200, 3), id="no-mark-and-other-line-ends"),
        pytest.param([style(0)], (200, 3000), id="status-0-with-a-size"),
        pytest.param([style(None, text="a{}")], (200, 3), id="no-status-with-a-body"),
        pytest.param([style(0, 0)], (204, 0), id="status-0"),
        pytest.param([style(206)], (200, 3000), id="part"),
        pytest.param([style(302, 0, to=STYLE)], (204, 0), id="redirect-to-itself"),
        pytest.param([style(302, 0, to=f"{B}/gone")], (204, 0), id="redirect-to-nowhere"),
        pytest.param([style(302, 0, to="a.css?x"), style()], (200, 3000), id="cookie-redirect"),
        pytest.param([style(url=f"{STYLE}#top")], (200, 3000), id="fragment"),
    ],
)
def test_the_best_response_of_an_address_is_served(
    entries: list[Any], expected: tuple[int, int], tmp_path: Path
):
    page = page_of(tmp_path, entry(f"{A}/"), *entries)
    assert served(page) == {f"{A}/": (200, 900), STYLE: expected}
    assert STYLE.encode() in page.document.body


def test_what_the_numbers_of_a_load_cannot_be_is_said_but_names_no_site(tmp_path: Path):
    packed = style(text="a" * 5000, response={"bodySize": 800})
    chrome = entry(f"{A}/b.js", size=3000, response={"bodySize": -1, "_transferSize": 1000})
    unknown = entry(f"{A}/c.js", 304, 0, "text/javascript")
    port = entry(f"{A}:8443/d.png", kind="image/png")
    entries = [entry(f"{A}/"), packed, chrome, unknown, port, entry(f"{A}/e", size=float("inf"))]
    for number, one in enumerate(entries):
        one["pageref"] = f"page_{number % 2}"
    page = page_of(tmp_path, *entries)
    assert [note.removeprefix("shop.har: ") for note in page.notes] == [
        "responses of a port of their own, which the port of https serves: 1",
        "pages in one recording, whose resources are all loaded by the first document: 2",
        "resources of unknown size, which are served as good as empty: 1",
        "bytes more than the recorded load took, as compressed bodies are served plain: 6200",
    ]
    site = page_site(str(tmp_path / "shop.har"), 1)
    assert site.warnings() == [*page.warnings, *page.notes]
    before = site.version()
    (site.folder / NOTES).unlink()
    assert site.version() == before
    shutil.rmtree(site.folder)


def test_hosts_are_those_that_a_browser_asks_for(tmp_path: Path):
    page = page_of(
        tmp_path, entry("https://[2001:db8::1]:8443/"), entry("https://m\u00fcller.example/")
    )
    assert page.hosts == ("[2001:db8::1]", "xn--mller-kva.example")
    site = page_site(str(tmp_path / "shop.har"), 1)
    load = HeadlessShell().page_argv(
        address="10.0.0.1", protocol="h3", site=site, out=".", limit_s=9
    )
    assert load[load.index("--url") + 1] == "https://[2001:db8::1]/"
    names = [after for word, after in itertools.pairwise(load) if word == "--host"]
    assert names == ["2001:db8::1", "xn--mller-kva.example"]


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_from_http_to_https_leaves_the_document(status: int, tmp_path: Path):
    first = entry("http://www.example.org/", status, 0, to=f"{A}/")
    page = page_of(tmp_path, first, entry(f"{A}/"), style())
    assert served(page) == {f"{A}/": (200, 900), STYLE: (200, 3000)}
    assert "shop.har: addresses with http, which are served by https: 1" in page.warnings


def test_a_redirect_to_another_host_is_followed_and_the_document_at_its_end_asks(tmp_path: Path):
    first = entry("http://example.org", 301, 0, kind="", to="http://www.example.org/?a=1")
    page = page_of(tmp_path, first, entry(f"{A}/?a=1"), style())
    redirect, document, sheet = page.resources
    assert (redirect.url, redirect.status) == ("https://example.org/", 301)
    assert dict(redirect.headers)["location"] == f"{A}/?a=1"
    assert [r.initiator for r in page.resources] == ["", redirect.url, document.url]
    assert STYLE.encode() in document.body and sheet.status == 200


def test_addresses_and_headers_are_those_that_browsers_and_servers_take(tmp_path: Path):
    leave = {"Access-Control-Allow-Credentials": "true", "Access-Control-Allow-Origin": f"{A}\n*"}
    headers = [{"name": name, "value": value} for name, value in leave.items()]
    path = entry(f"{A}/ä b'{{%7D?q='ü\"&r={{", response={"headers": headers})
    page = page_of(tmp_path, entry("HTTPS://www.Example.org"), path)
    address = f"{A}/%C3%A4%20b'%7B%7D?q=%27%C3%BC%22&r={{"
    assert [r.url for r in page.resources] == [f"{A}/", address]
    assert dict(page.resources[1].headers) == {
        **{"access-control-allow-origin": A, "access-control-allow-credentials": "true"}
    }


def test_a_recorded_document_may_ask_by_http(tmp_path: Path):
    body = '<script src="http://www.example.org/a.js"></script>'
    script = entry("http://www.example.org/a.js", kind="text/javascript")
    page = page_of(tmp_path, entry("http://www.example.org/", text=body), script)
    assert ("content-security-policy", "upgrade-insecure-requests") in page.document.headers
    assert page_of(tmp_path, entry(f"{A}/", text=body)).document.headers == ()


def test_what_is_left_out_or_changed_is_counted(tmp_path: Path):
    page = page_of(
        tmp_path,
        *(entry(f"{A}/", text="<p>"), entry(f"{A}/", 304, text="<p>"), style(0, 0)),
        *(style(200, 0, method="HEAD"), entry("wss://www.example.org/", 101), {}, 7),
        entry("data:,"),
    )
    assert [warning.removeprefix("shop.har: ") for warning in page.warnings] == [
        "entries left out, whose method is not GET or POST: 1",
        "entries left out, which lack an address or a response of at most 100 MB: 2",
        "responses from a cache, in part or without a status, which are served whole: 1",
        "more responses of an address, of which the best one is served: 1",
        "responses that failed and are served as empty ones: 1",
        "entries left out, which are no responses over HTTP: 1",
    ]
    assert page_site(str(tmp_path / "shop.har"), 1).warnings() == list(page.warnings)


@pytest.mark.parametrize(
    ("mark", "encoding"),
    [
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (b"", "utf-8"),
    ],
)
def test_an_archive_may_begin_with_a_byte_order_mark(mark: bytes, encoding: str, tmp_path: Path):
    path = tmp_path / "shop.har"
    text = json.dumps({"log": {"entries": [entry(f"{A}/", text="<p>ä")]}}, ensure_ascii=False)
    path.write_bytes(mark + text.encode(encoding))
    assert recorded_page(path).document.body == "<p>ä".encode()


@pytest.mark.parametrize("endings", [".gz", ".zst", ".gz.gz"])
def test_a_compressed_archive_is_the_same(endings: str, tmp_path: Path):
    plain = page_of(tmp_path, entry(f"{A}/", text="<p>a"), style(text="a{}"))
    content = (tmp_path / "shop.har").read_bytes()
    for ending in endings.split(".")[1:]:
        content = gzip.compress(content) if ending == "gz" else zstandard.compress(content)
    path = tmp_path / f"shop.har{endings}"
    path.write_bytes(content)
    assert recorded_page(path).resources == plain.resources
    path.write_bytes(content[:-30])
    with pytest.raises(SpecError, match=r"shop\.har.* is damaged or no recording"):
        recorded_page(path)


def test_a_type_is_that_of_the_content_the_header_or_the_address(tmp_path: Path):
    said = {"headers": [{"name": "Content-Type", "value": "text/css"}]}
    page = page_of(
        tmp_path,
        entry(f"{A}/"),
        entry(f"{A}/one", kind="x-unknown", response=said),
        entry(f"{A}/two.css?v=1", kind=""),
    )
    assert [r.media_type for r in page.resources] == ["text/html", "text/css", "text/css"]


ANY = st.one_of(
    *(st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), st.text(max_size=5)),
    *(st.lists(st.integers(), max_size=2), st.dictionaries(st.text(max_size=3), st.integers())),
)
WHOLE = {"log": {"entries": [entry(f"{A}/", text="<p>"), style(302, 0, to="b.css"), style()]}}


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where an archive has values: keys and indices from its root."""
    rows = value.items() if isinstance(value, dict) else enumerate(value)
    below = [(*path, key) for key, _ in rows]
    inner = [child for child in below if isinstance(value[child[-1]], dict | list)]
    return below + [place for child in inner for place in places(value[child[-1]], child)]


@pytest.mark.slow
@given(place=st.sampled_from(places(WHOLE)), value=ANY)
def test_any_other_value_gives_a_page_or_one_sentence(
    place: tuple[Any, ...], value: Any, tmp_path_factory: pytest.TempPathFactory
):
    document = json.loads(json.dumps(WHOLE))
    holder = document
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = value
    path = tmp_path_factory.mktemp("fuzz") / "shop.har"
    path.write_text(json.dumps(document))
    try:
        assert recorded_page(path).document.url.startswith("https://")
    except SpecError as error:
        words = str(error).removeprefix(str(path))
        assert "\n" not in words and "Error" not in words and "'" not in words


def devtools(number: str, url: str, at_s: float, status: int, *more: str) -> list[tuple[str, dict]]:
    """The events of a request and its response; a redirect is in the next request."""
    request = {"method": "GET", "url": url, "headers": {}, "initialPriority": "High"}
    answer = {"status": status, "headers": {}, "mimeType": "text/html", "connectionId": 7}
    known = {"requestId": number, "timestamp": at_s}
    sent = known | {"wallTime": 1e9 + at_s, "request": request, "initiator": {"type": "other"}}
    ends = [(f"Network.{name}", known | {"encodedDataLength": 66}) for name in more]
    response = answer | {"encodedDataLength": 66}
    return [
        ("Network.requestWillBeSent", sent),
        ("Network.responseReceived", {"requestId": number, "response": response}),
        *ends,
    ]


def test_the_archive_of_a_load_has_its_redirects_and_empty_responses(tmp_path: Path):
    ((name, first), (_, redirect)) = devtools("1", f"{A}/old", 10.0, 301)
    response = redirect["response"] | {"headers": {"location": f"{A}/"}}
    (_, after), *rest = devtools("1", f"{A}/", 10.1, 200, "loadingFinished")
    events = [(name, first), (name, after | {"redirectResponse": response}), *rest]
    events += devtools("2", f"{A}/none", 10.2, 204, "loadingFailed")
    events.append(("Page.loadEventFired", {"timestamp": 10.5}))
    (tmp_path / "events").write_text("".join(json.dumps(event) + "\n" for event in events))
    write_har(tmp_path / "events", tmp_path / "page.har", "Chrome/1")
    log = json.loads((tmp_path / "page.har").read_text())["log"]
    assert log["pages"][0]["pageTimings"]["onLoad"] == pytest.approx(500)
    responses = {e["request"]["url"]: e["response"] for e in log["entries"]}
    assert [r["status"] for r in responses.values()] == [301, 200, 204]
    assert responses[f"{A}/old"]["redirectURL"] == f"{A}/"
    assert recorded_page(tmp_path / "page.har").document.url == f"{A}/old"
