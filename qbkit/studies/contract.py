"""Does a stack keep its contract? It fills a link, stops on time, repeats and reports.

One that makes no bulk transfers need not fill a link. A driver may work and still spoil a study: it
sends less than the link carries, goes on after its time, behaves differently at equal seeds, misses
a variable that it claims, or never hears which controller is asked for. Each controller runs once,
alone, for some seconds; one also runs again, and with a number of bytes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import xarray as xr

from qbkit import stacks
from qbkit.check import Check
from qbkit.errors import QbkitError, RunFailed, SpecError
from qbkit.execution.runner import run
from qbkit.metrics.flows.lookup import delivered_packets
from qbkit.spec import Bottleneck, Experiment, Flow
from qbkit.stacks.external.program import Configured
from qbkit.store.digests import digest
from qbkit.traces.run.early_end import EARLY_END, early_end_sentences

LINK = Bottleneck(rate_mbps=10, rtt_ms=20, buffer_bdp=1)
STOP_S, DURATION_S = 6.0, 8.0
FILLED_FROM_S = 3.0
"""After slow start."""
LEAST_FILL = 0.7
"""Least part of the link that counts as filled: Reno alone with a buffer of 1 BDP fills all of it,
BBR's ProbeRTT and small packets cost some."""
MOST_OVERTIME_S = 0.5
"""Data may arrive this long after the stop: a full queue and retransmissions take ten RTTs."""
SIZE_BYTES = 500_000


def check_stack(name: str) -> Iterator[Check]:
    """Yield what holds of the contract of a stack, one check after the other.

    ``name`` is a stack, with all its controllers, or ``stack:controller``; a program's path needs
    the second. Nothing else is checked of a stack that is not ready. Raises SpecError for an
    unknown stack, and EngineError where nothing can run.
    """
    stack, controllers = _parts(name)
    status = stack.status()
    ready = f"version {stack.version()}" if status.ready else "not ready"
    yield Check("ready", status.ready, ready, status.reason)
    if not status.ready:
        return
    sent: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="qbkit-") as scratch:
        folder = Path(scratch)
        for controller in controllers:
            is_first = controller == controllers[0]
            yield from _check_controller(stack, controller, folder, is_first, sent)
    if isinstance(stack, Configured) and len(sent) > 1:
        yield _passes_on(sent)


def _parts(name: str) -> tuple[stacks.Stack, tuple[str, ...]]:
    """The stack of a name, and the controllers to check."""
    own, _, controller = name.partition(":")
    stack = stacks.get(Flow(name).stack if controller else own)  # a path becomes absolute
    if controller:
        stack.check(controller, {}, None)
        return stack, (controller,)
    if not stack.controllers():
        raise SpecError(
            f"a program's path lists no controllers; name the one to check, as in {own}:cubic"
        )
    return stack, stack.controllers()


def _check_controller(
    stack: stacks.Stack, controller: str, folder: Path, is_first: bool, sent: dict[str, str]
) -> Iterator[Check]:
    """The checks of a controller; ``sent`` gets the digest of its packets."""
    flow = Flow(stack.name, controller, stop_s=STOP_S)
    first = _attempt(flow, folder / f"{controller}.nc")
    if isinstance(first, QbkitError):
        yield Check(f"{flow.name} runs", False, str(first), "correct what the error names")
        return
    packets = ("packet_time_s", "packet_size_bytes")
    sent[controller] = " ".join(digest(first[name].values) for name in packets)
    if stack.bulk:
        yield _fills(flow, first)
    yield _stops(flow, first)
    if not is_first:
        return
    yield _reports(stack, first)
    yield _repeats(stack, flow, first, folder / "again.nc")
    yield _sends_bytes(flow, folder / "bytes.nc")


def _attempt(flow: Flow, out: Path) -> xr.Dataset | QbkitError:
    """The run of a lone flow, or why there is none, or how it ended early.

    A stored run is not used.
    """
    experiment = Experiment(bottleneck=LINK, flows=(flow,), duration_s=DURATION_S)
    try:
        ds = run(experiment, out=out)
    except SpecError:
        raise
    except QbkitError as error:
        return error
    return RunFailed(early_end_sentences(ds)[0]) if EARLY_END in ds else ds


def _passes_on(sent: Mapping[str, str]) -> Check:
    """Whether controllers of a table differ; one that is not passed on cannot."""
    alike: dict[str, list[str]] = {}
    for controller, packets in sent.items():
        alike.setdefault(packets, []).append(controller)
    same = [names for names in alike.values() if len(names) > 1]
    detail = f"{len(sent)} controllers, each with packets of its own"
    if same:
        words = "; ".join(f"{', '.join(names)} send the same packets" for names in same)
        detail = f"the controller is not passed on: {words}"
    fix = "write {controller} into the table's connect or listen, and let the program use it"
    return Check("passes the controller on", not same, detail, fix)


def _fills(flow: Flow, ds: xr.Dataset) -> Check:
    left_s, size_bytes, _ = delivered_packets(ds, 0)
    inside = (left_s >= FILLED_FROM_S) & (left_s < STOP_S)
    mbps = float(size_bytes[inside].sum()) * 8 / 1e6 / (STOP_S - FILLED_FROM_S)
    part = mbps / LINK.rate_mbps
    detail = f"{mbps:.1f} of {LINK.rate_mbps:g} Mbit/s from {FILLED_FROM_S:g} s on"
    fix = "look for a small receive window or send buffer, a rate limit, or a program that waits"
    return Check(f"{flow.name} fills a link", part >= LEAST_FILL, detail, fix)


def _stops(flow: Flow, ds: xr.Dataset) -> Check:
    left_s, _, _ = delivered_packets(ds, 0)
    last_s = float(left_s.max()) if len(left_s) else 0.0
    detail = f"last packet at {last_s:.2f} s, to stop at {STOP_S:g} s"
    early = last_s < STOP_S - MOST_OVERTIME_S
    fix = (
        "send until the duration is over"
        if early
        else "close the connection when the duration is over, and drop what is still unsent"
    )
    return Check(
        f"{flow.name} stops on time", not early and last_s < STOP_S + MOST_OVERTIME_S, detail, fix
    )


def _reports(stack: stacks.Stack, ds: xr.Dataset) -> Check:
    missing = [n for n in stack.reports if n not in ds or not np.isfinite(ds[n].values).any()]
    claimed = ", ".join(stack.reports) or "nothing"
    detail = f"claims {claimed}" + (f"; {', '.join(missing)} missing" if missing else "")
    fix = "write these columns of sender.csv, or leave them out of the class's `reports`"
    return Check("reports what it claims", not missing, detail, fix)


def _repeats(stack: stacks.Stack, flow: Flow, first: xr.Dataset, out: Path) -> Check:
    check = "repeats to the byte"
    if not stack.deterministic:
        return Check(check, True, "does not claim to")
    again = _attempt(flow, out)
    if isinstance(again, QbkitError):
        return Check(check, False, str(again), "correct what the error names")
    differing = [str(n) for n in first.data_vars if not first[n].identical(again[n])]
    detail = f"{', '.join(differing[:3])} differ" if differing else "two runs, the same data"
    fix = (
        "take time from the clock and randomness from getrandom or /dev/urandom, and use no "
        "instruction such as RDRAND; or set `deterministic = False`"
    )
    return Check(check, not differing, detail, fix)


def _sends_bytes(flow: Flow, out: Path) -> Check:
    check = "sends a number of bytes"
    sized = flow.model_copy(update={"stop_s": None, "bytes": SIZE_BYTES})
    try:
        ds = _attempt(sized, out)
    except SpecError as error:  # it says that it sends for a duration only
        return Check(check, True, str(error))
    if isinstance(ds, QbkitError):
        return Check(check, False, str(ds), "end by itself once all bytes are acknowledged")
    _, size_bytes, _ = delivered_packets(ds, 0)
    sent = float(size_bytes.sum())
    detail = f"{sent / 1e3:.0f} kB on the wire for {SIZE_BYTES / 1e3:.0f} kB"
    fix = "send as many bytes as `--bytes` (or {bytes}) says"
    return Check(check, SIZE_BYTES <= sent < 1.5 * SIZE_BYTES, detail, fix)
