"""Loads of URLs from this machine, in real time, over its own network: nothing is emulated."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from urllib.parse import urlsplit

import xarray as xr

from qbkit.errors import RunFailed, SpecError, StackNotReady
from qbkit.spec.web import PROTOCOLS, Protocol
from qbkit.stacks.web import base as web
from qbkit.stacks.web.base import Target, WebClient
from qbkit.traces.web.urls import UrlLoad, build_urls, require_response

HTTPS_PORT = 443
MOST_LIMIT_S = 3600.0
FORM = "write https://HOST[:PORT]/PATH"


def measure_urls(
    urls: Sequence[str],
    *,
    protocols: Sequence[Protocol] = PROTOCOLS,
    repeat: int = 20,
    client: str = "curl-http3",
    limit_s: float = 120.0,
    verify: bool = True,
    progress: bool = False,
) -> xr.Dataset:
    """Load URLs from this machine in real time, and return the times of all loads.

    Each repetition loads every URL by every protocol once, one load after another, each with a
    new connection and the same address of the host. A load before the repetitions shows that the
    URL answers by the protocol; it fills caches on the way, and does not count. Times count from
    the begin of the load, without the look-up of the host's name. Over HTTP/3, curl prepares TLS
    before its first packet, which takes milliseconds of them. The dataset
    has the dimension ``load`` (see `qbkit.traces.web.urls.build_urls`); loads that fail, or that
    are answered by another protocol, are in its attribute ``failures``, not in its variables.

    Nothing is emulated; as root, ``tc qdisc add dev … root netem`` beforehand adds delay or loss.
    ``verify=False`` accepts any certificate. Raises SpecError for what cannot be a measurement,
    StackNotReady for a client that is not installed, and RunFailed for a URL that does not answer
    by one of the protocols.
    """
    if not 0 < limit_s <= MOST_LIMIT_S:
        raise SpecError(f"limit_s = {limit_s:g}: give seconds above 0, up to {MOST_LIMIT_S:g}")
    if isinstance(urls, str) or not isinstance(urls, Sequence):
        raise SpecError("give the URLs as a list")
    chosen = _client(client, protocols, repeat)
    targets = [_target(url) for url in dict.fromkeys(urls)]
    if not targets:
        raise SpecError("give at least one URL")
    for target in targets:
        for protocol in protocols:
            _load(chosen, target, protocol, limit_s=limit_s, verify=verify)
    loads, failures, began_s = [], [], time.monotonic()
    for repetition, target, protocol in _order(targets, protocols, repeat, progress):
        started_s = time.monotonic() - began_s
        try:
            report = _load(chosen, target, protocol, limit_s=limit_s, verify=verify)
            loads.append(UrlLoad(target.url, target.ip, repetition, started_s, report))
        except RunFailed as error:
            failures.append({"url": target.url, "protocol": protocol, "reason": str(error)})
    versions = json.dumps({client: chosen.version()})
    attrs = {"failures": json.dumps(failures), "client_versions": versions, "spec": ""}
    return build_urls(loads, {**attrs, "qbkit_version": version("qbkit")})


def _order(
    targets: Sequence[Target], protocols: Sequence[Protocol], repeat: int, progress: bool
) -> Iterator[tuple[int, Target, Protocol]]:
    """Protocols alternate, so that what changes over time changes all of them alike."""
    from tqdm.auto import tqdm

    order = [(k, target, word) for k in range(repeat) for target in targets for word in protocols]
    yield from tqdm(order, unit="load", disable=not progress, leave=False)


def _client(name: str, protocols: Sequence[Protocol], repeat: int) -> WebClient:
    """The client, ready to load by all protocols."""
    if repeat < 1:
        raise SpecError(f"repeat = {repeat}: give at least 1")
    client = web.client(name)
    if not protocols or len(set(protocols)) < len(protocols):
        raise SpecError(f"protocols = {','.join(protocols)!r}: give h2, h3 or both, each once")
    for protocol in protocols:
        if protocol not in PROTOCOLS:
            raise SpecError(f"there is no protocol {protocol!r}; give h2, h3 or both")
        if protocol not in client.protocols:
            raise SpecError(f"the client {name} does not have {protocol}")
    status = client.status()
    if not status.ready:
        raise StackNotReady(f"{name} is not ready: {status.reason}", refused=True)
    return client


def _target(url: str) -> Target:
    """The URL with an address of its host; SpecError if it is none, or has no address."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, HTTPS_PORT if parts.port is None else parts.port
    except ValueError:
        raise SpecError(f"{url!r} is not a URL to measure; {FORM}") from None
    blank = " " in url or not url.isprintable()
    if parts.scheme != "https" or not (host and port) or parts.username is not None or blank:
        raise SpecError(f"{url!r} is not a URL to measure; {FORM}")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise SpecError(f"the host {host} has no address here: {error.strerror}") from None
    return Target(url, host, port, str(found[0][4][0]))


def _load(
    client: WebClient, target: Target, protocol: Protocol, *, limit_s: float, verify: bool
) -> dict[str, object]:
    """The report of one load; RunFailed if it fails, or is not what was asked for."""
    argv = client.url_argv(target, protocol=protocol, verify=verify)
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=limit_s)
    except subprocess.TimeoutExpired:
        raise RunFailed(f"{target.url} by {protocol} took longer than {limit_s:g} s") from None
    try:
        report = client.url_report(done.stderr)
    except RunFailed as error:
        raise RunFailed(f"{target.url} by {protocol}: {error}") from None
    require_response(report, target.url, protocol)
    return report
