"""Entries of a recording, and what of them a server can serve: one response per https address.

A recording may hold several responses of one address, redirects, responses from the browser's
cache and failures. What is left out or changed is counted, for a warning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from string import punctuation
from urllib.parse import quote, urljoin, urlsplit, urlunsplit

from qbkit.stacks.web.pages.page import kind_of
from qbkit.stacks.web.site import NO_CONTENT, OK

RESET_CONTENT, PARTIAL = 205, 206
LEAST_STATUS, LEAST_REDIRECT, NOT_MODIFIED, LEAST_FAILURE = 100, 300, 304, 400
PATH_SAFE = punctuation.translate(str.maketrans("", "", '"<>`{}'))
QUERY_SAFE = punctuation.translate(str.maketrans("", "", "\"<>'"))
"""What browsers leave as it is (URL Standard, percent-encode sets of path and special query)."""
USUAL_PORTS = 80, 443
INLINE = ("data:", "blob:", "about:")
"""Addresses that no request over the network asks for."""

KEPT_HEADERS = ("access-control-allow-origin", "access-control-allow-credentials")
"""Headers that matter to the load, beside those of redirects and types."""
LACKING = "entries left out, which lack an address or a response of at most 100 MB"
OUTSIDE = (
    PORT_NOTE := "responses of a port of their own, which the port of https serves",
    PAGES_NOTE := "pages in one recording, whose resources are all loaded by the first document",
    EMPTY_NOTE := "resources of unknown size, which are served as good as empty",
    PACKED_NOTE := "bytes more than the recorded load took, as compressed bodies are served plain",
)
"""What is said of a page, but is no part of the version of its site."""
HTTP_NOTE = "addresses with http, which are served by https"


@dataclass(frozen=True)
class Entry:
    """A response of a recording; ``body`` is None where it was not recorded."""

    url: str
    status: int
    """Less than 100 where no status was recorded."""
    media_type: str
    size_bytes: int
    body: bytes | None
    initiator: str
    headers: tuple[tuple[str, str], ...]
    location: str = ""
    """Its header of this name, where a redirect leads."""
    sent_bytes: int | None = 0
    """Bytes of the body on the wire, if the recording has them; 0 if it does not, and None if it
    has no size at all."""

    @property
    def failed(self) -> bool:
        """Whether it is served as an empty response."""
        return self.status == NO_CONTENT and not self.size_bytes


Notes = Counter[str]
"""What a reader left out or changed, in a few words → how often."""


def chosen(entries: Iterable[Entry], notes: Notes) -> tuple[dict[str, Entry], str]:
    """One entry per https URL, and the URL to load: the first that leads to an HTML document.

    The URL is empty where there is no document. What failed is served as an empty response.
    """
    found: dict[str, Entry] = {}
    for recorded in entries:
        entry = _served(recorded, notes)
        if entry is None:
            continue
        other = found.get(entry.url)
        if other is None or _rank(entry) < _rank(other):
            found[entry.url] = entry
        if other is not None:
            notes["more responses of an address, of which the best one is served"] += 1
    lost = [url for url, entry in found.items() if entry.location and not end_of(url, found)]
    for url in lost:
        found[url] = _failure(found[url], "redirects that lead to no recorded response", notes)
    document = next((url for url in found if _is_document(found.get(end_of(url, found)))), "")
    _count_sizes(found.values(), notes)
    return found, document


def _count_sizes(entries: Iterable[Entry], notes: Notes) -> None:
    """Count what is served with another size than it had on the wire."""
    for entry in entries:
        if entry.failed or entry.location:
            continue
        if entry.sent_bytes is None and not entry.size_bytes:
            notes[EMPTY_NOTE] += 1
        elif entry.sent_bytes and entry.size_bytes > entry.sent_bytes:
            notes[PACKED_NOTE] += entry.size_bytes - entry.sent_bytes


def kept(headers: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """The headers to serve, of those with lower-case names; what http may read, https may too."""
    return tuple(
        (name, headers[name].replace("http:", "https:")) for name in KEPT_HEADERS if name in headers
    )


def end_of(url: str, entries: Mapping[str, Entry]) -> str:
    """The URL at which the redirects from this one end; empty for a circle or an unknown URL."""
    seen: set[str] = set()
    while url in entries and url not in seen:
        if not entries[url].location:
            return url
        seen.add(url)
        url = entries[url].location
    return ""


def https_url(url: str) -> str:
    """The https address of a URL, without fragment and port; empty for one that has none."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        return ""
    if parts.scheme not in ("http", "https") or not host:
        return ""
    netloc = f"[{host}]" if ":" in host else _in_ascii(host)
    path = quote(parts.path or "/", safe=PATH_SAFE)
    query = quote(parts.query, safe=QUERY_SAFE)
    return urlunsplit(("https", netloc, path, query, ""))


def _in_ascii(host: str) -> str:
    """A host as browsers ask for it."""
    try:
        return host if host.isascii() else host.encode("idna").decode()
    except UnicodeError:
        return host


def _has_own_port(url: str) -> bool:
    try:
        return urlsplit(url).port not in (None, *USUAL_PORTS)
    except ValueError:
        return False


def _served(entry: Entry, notes: Notes) -> Entry | None:
    """The entry as a server can serve it; None for one that is left out."""
    if entry.url.startswith(INLINE):
        return None
    url = https_url(entry.url)
    if not url or LEAST_STATUS <= entry.status < OK:
        notes["entries left out, which are no responses over HTTP"] += 1
        return None
    if entry.url.lower().startswith("http:"):
        notes[HTTP_NOTE] += 1
    notes.update([PORT_NOTE] if _has_own_port(entry.url) else [])
    target = https_url(urljoin(url, entry.location)) if entry.location else ""
    entry = replace(entry, url=url, initiator=https_url(entry.initiator), location="")
    if target and LEAST_REDIRECT <= entry.status < LEAST_FAILURE:
        return replace(entry, location=target)
    if entry.status in (NO_CONTENT, RESET_CONTENT):
        return replace(entry, status=NO_CONTENT, body=b"", size_bytes=0)
    if entry.status in (PARTIAL, NOT_MODIFIED) or (entry.status < LEAST_STATUS and _has(entry)):
        notes["responses from a cache, in part or without a status, which are served whole"] += 1
        return replace(entry, status=OK)
    if OK <= entry.status < LEAST_REDIRECT:
        return entry
    return _failure(entry, "responses that failed and are served as empty ones", notes)


def _has(entry: Entry) -> bool:
    """Whether something came."""
    return bool(entry.body) or entry.size_bytes > 0


def _failure(entry: Entry, why: str, notes: Notes) -> Entry:
    """An empty response in place of an entry."""
    notes[why] += 1
    return replace(entry, status=NO_CONTENT, body=b"", size_bytes=0, location="")


def _rank(entry: Entry) -> int:
    """The lowest is the best response of an address; of equal ones the first is served."""
    if entry.location:
        return 3
    if entry.failed:
        return 4
    return 0 if entry.body else 1 if entry.size_bytes else 2


def _is_document(entry: Entry | None) -> bool:
    return entry is not None and not entry.failed and kind_of(entry.media_type) == "html"
