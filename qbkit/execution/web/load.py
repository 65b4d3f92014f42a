"""Web loads from spec to dataset, one or many; stored, resumed and retried like runs."""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import xarray as xr

from qbkit import store
from qbkit.errors import RunFailed, SpecError
from qbkit.execution.identity import Identity
from qbkit.execution.outcome import Ended, completed
from qbkit.execution.preflight import Needs, needs, require_room
from qbkit.execution.runner import check_writable, cost, kept_files, reusable, stored
from qbkit.spec.web import WebLoad
from qbkit.stacks.web import base as web
from qbkit.testbed import engines
from qbkit.testbed.claims import claim_file
from qbkit.testbed.scratch import scratch_folder
from qbkit.testbed.web import WebPair, web_plan
from qbkit.traces.web.load import build_load, too_late

KEEP = {
    "pcap": "*.pcap",
    "har": "flows/0/page.har",
    "netlog": "flows/0/netlog.json",
    "screenshots": "flows/0/frame-*.jpg",
}
"""What `run_web` can keep → its files in the folder of a run."""
LATE = "after its time was over"
"""Part of the sentence with which a guest ends a program that runs too long."""
BROWSER_BYTES = 0.6e9
"""Memory of a browser in a guest."""
SILENCE_S = 120.0
"""The longest time without a report of the guest, in wall-clock seconds."""


@dataclass(frozen=True)
class WebOutcome(Ended):
    """The result of one load: its dataset, or the error that stopped it."""

    load: WebLoad


def run_web(
    load: WebLoad,
    *,
    out: str | Path | None = None,
    keep: str | Sequence[str] = (),
    rerun: bool = False,
    force: bool = False,
) -> xr.Dataset:
    """Load an object or a page in virtual time, or return the stored result of the same load.

    The dataset is that of a run whose one flow is the load, with ``time_to_last_byte_s`` and the
    other times that the client measured. Where connection, server or client died before the
    load was complete, it has ``ended_s`` and its like instead, and no times. ``out`` is the file to
    write (default: in `store.default_folder`). ``keep`` is or holds "pcap", and for pages in
    Chromium "har" (an HTTP Archive), "netlog" and "screenshots" (of full size); they go to a folder
    beside the file.
    ``force`` overwrites ``out`` if it holds anything else than this load. Raises SpecError,
    StackNotReady, EngineError, RunFailed or StoreError, each with one sentence.
    """
    keep = _checked(load, (keep,) if isinstance(keep, str) else tuple(keep))
    if out is not None:
        store.require_run_name(out)
    engine = engines.choose()
    pair = WebPair(load)
    identity = _named(Identity(engine), pair)
    path = Path(out) if out is not None else store.path_of(identity["hash"])
    there, kept = reusable(path, identity["hash"], KEEP, keep)
    if there is not None and not rerun:
        return there
    if out is not None and not force:
        store.require_free(path, identity["spec_hash"])
    check_writable(path)
    require_room([_needs(pair)], path.parent, engine.name)
    with claim_file(path), scratch_folder() as folder:
        there, kept = reusable(path, identity["hash"], KEEP, keep)
        if there is not None and not rerun:
            return there  # another process has just made it
        dataset = _measure(pair, engine, identity, folder)
        words = kept.union(keep)
        if "har" in words:
            _write_har(folder / "run/flows/0", dataset)
        with kept_files(folder / "run", path, [KEEP[word] for word in words]):
            store.save_run(dataset, path)
    return dataset


def _checked(load: WebLoad, keep: tuple[str, ...]) -> tuple[str, ...]:
    """The words of ``keep``; raises SpecError for one that this load does not give."""
    known = ("pcap", *web.client(load.client).keeps)
    unknown = sorted(set(keep) - set(known))
    if unknown:
        raise SpecError(
            f"cannot keep {', '.join(unknown)} of this load; choose from {', '.join(known)}"
        )
    return keep


def _write_har(folder: Path, dataset: xr.Dataset) -> None:
    """Write the HTTP Archive beside the browser's other files."""
    from qbkit.traces.web.har import write_har

    browser = json.loads(dataset.attrs["client_report"]).get("client_version", "")
    write_har(folder / "devtools.jsonl", folder / "page.har", browser)


def run_web_all(
    loads: Sequence[WebLoad], *, scheduler: str | None = None, progress: bool = False
) -> list[WebOutcome]:
    """Run loads, one per processor at a time, and return those already stored.

    A load that fails does not stop the others and is retried once, as in `run_all`. Raises
    SpecError, StackNotReady, EngineError or StoreError before the first load if any of them cannot
    run, or memory or disk are too small for all.
    """
    outcomes = _stored(loads)
    missing = {o.name: o.load for o in outcomes if o.run is None}
    room = [_needs(WebPair(load)) for load in missing.values()]
    require_room(room, store.default_folder(), None, scheduler)
    calls = {
        name: (_to_file, load.to_json(), name, str(store.path_of(name).absolute()))
        for name, load in missing.items()
    }
    return completed(
        outcomes,
        calls,
        lambda name: f"{missing[name].name}, seed {missing[name].seed}",
        scheduler=scheduler,
        progress=progress,
        unit="load",
    )


def _measure(
    pair: WebPair, engine: engines.Engine, identity: dict[str, Any], folder: Path
) -> xr.Dataset:
    """Carry out the plan of a load, and build its dataset."""
    load = pair.load
    plan = web_plan(pair, engine.name, engines.CAPTURE)
    try:
        result, usage = engines.carry_out(
            engine, plan, folder, load.seed, SILENCE_S, lambda _: None
        )
    except RunFailed as error:
        if LATE not in str(error):
            raise
        raise too_late(load) from None
    attrs = {
        **{**identity, **cost(usage), "kernel_version": result["kernel_version"]},
        "client_limits": int(load.protocol not in pair.client.unlimited),
    }
    loaded = result["flows"][0]["receiver_exit"] == 0
    report = pair.client.load(folder / "run/flows/0") if loaded else None
    return build_load(folder / "run", load, report, attrs, pair.site().warnings())


def _needs(pair: WebPair) -> Needs:
    """What a load needs: its site passes the link twice at most, after the link's last change at
    the latest, and a browser has its memory."""
    load, link = pair.load, pair.load.bottleneck
    busy_s = 2 * pair.site().size_bytes * 8 / 1e6 / link.rate_mbps
    outages = link.outages.times if link.outages else ()
    by_hand = [timed.steps for timed in (link.capacity, link.delay) if timed and not timed.name]
    changes_s = [*(sum(outage) for outage in outages), *(at_s for s in by_hand for at_s, _ in s)]
    duration_s = min(load.limit_s, max(1.0, round(busy_s, 1)) + max(changes_s, default=0.0))
    return needs(load.experiment(duration_s), None, BROWSER_BYTES if pair.client.pages else 0)


def _named(identity: Identity, pair: WebPair) -> dict[str, Any]:
    """The attributes that identify the run of a load."""
    plan = web_plan(pair, identity.engine.name, engines.CAPTURE)
    return identity.of_plan(pair.load, [pair], plan.data)


def _stored(loads: Sequence[WebLoad]) -> list[WebOutcome]:
    """Outcomes with the dataset where it is stored; raises for a load that cannot run."""
    if isinstance(loads, WebLoad):
        raise SpecError("run_web_all takes a list of loads; write one as [load]")
    identity = Identity(engines.choose())
    names = [str(_named(identity, WebPair(load))["hash"]) for load in loads]
    return [
        WebOutcome(load, name=name, run=stored(store.path_of(name), name))
        for load, name in zip(loads, names, strict=True)
    ]


def _to_file(spec: str, name: str, path: str) -> None:
    """The task of a Dask worker; its result stays in the file."""
    run = run_web(WebLoad.from_json(spec), out=path, force=True)
    if run.attrs["hash"] != name:
        raise RunFailed(
            f"{platform.node()} has another kernel, qbkit or version of server or client than the "
            "machine that started the loads; set up both alike"
        )
