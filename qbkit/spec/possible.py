"""What an experiment cannot be, although each of its fields is right by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from qbkit.spec import schedule
from qbkit.spec.loss import TimedBursts
from qbkit.spec.misbehaving import require_possible

if TYPE_CHECKING:
    from qbkit.spec.experiment import Experiment

MOST_BURSTS = 10_000
"""Bursts of loss that an experiment may have on average; each is two changes of the network."""
MOST_PATH_BYTES = 2**30
"""Most bytes that path and queues may hold: TCP's largest receive window (RFC 7323, 2.3)."""


def _flows_end_in_time(spec: Experiment) -> None:
    end = f"after the experiment's end at {spec.duration_s:g} s"
    for flow in spec.flows:
        if flow.start_s >= spec.duration_s:
            raise ValueError(f"{flow.name} starts at {flow.start_s:g} s, {end}")
        if flow.stop_s is not None and flow.stop_s > spec.duration_s:
            raise ValueError(f"{flow.name} stops at {flow.stop_s:g} s, {end}")
        if flow.app:
            flow.app.require_within((flow.stop_s or spec.duration_s) - flow.start_s)


def _link_changes_in_time(spec: Experiment) -> None:
    link, end_s = spec.bottleneck, spec.duration_s
    for what in ("capacity", "delay"):
        if changing := getattr(link, what):
            changing.require_within(end_s, what)
    if link.outages and (last_s := link.outages.times[-1][0]) >= end_s:
        raise ValueError(
            f"the outage at {last_s:g} s begins after the experiment's end at {end_s:g} s; "
            "lengthen duration_s or leave it out"
        )
    if link.changes_rate and not schedule.carried_bits(link, [end_s])[0]:
        raise ValueError(f"nothing passes in all of the {end_s:g} s; change capacity or outages")


def _few_bursts(spec: Experiment) -> None:
    model = spec.bottleneck.loss_model
    if not isinstance(model, TimedBursts):
        return
    expected = spec.duration_s / (model.gap_s + model.length_s)
    if expected > MOST_BURSTS:
        raise ValueError(
            f"the loss_model {model} has about {expected:.0f} bursts; the most is "
            f"{MOST_BURSTS}, so lengthen gap_s or length_s"
        )


def _jitter_fits(spec: Experiment) -> None:
    if spec.jitter_shape != "uniform" and not spec.jitter_reorders:
        raise ValueError(
            f"jitter_shape {spec.jitter_shape} needs jitter_reorders: only uniform jitter "
            "keeps the order of packets"
        )
    one_way_ms = spec.bottleneck.rtt_ms / 2
    if spec.bottleneck.delay is None and (spec.jitter_ms or 0) > one_way_ms:
        raise ValueError(
            f"jitter_ms {spec.jitter_ms:g} is more than the one-way delay of {one_way_ms:g} ms"
        )


def _flows_have_time(spec: Experiment) -> None:
    if (spec.start_window_s or 0) >= spec.shortest_s:
        raise ValueError(
            f"start_window_s {spec.start_window_s:g} leaves no time for the flow that lasts "
            f"{spec.shortest_s:g} s; make the window shorter than that"
        )
    for flow in spec.flows:
        left_s = (flow.stop_s or spec.duration_s) - flow.start_s
        if flow.resume and flow.resume.pause_s >= left_s:
            raise ValueError(
                f"the flow {flow.name} lasts {left_s:g} s, and pauses for "
                f"{flow.resume.pause_s:g} s before its second connection; shorten pause_s or "
                "lengthen the flow"
            )


def _topology_fits(spec: Experiment) -> None:
    if spec.topology == "parking_lot" and spec.bottleneck.mtu_bytes < 1500:
        raise ValueError(
            "mtu_bytes below 1500 needs the dumbbell: a router counts packets that are too big "
            "for all of its links together"
        )
    if spec.topology == "parking_lot" and len(spec.flows) < 3:
        raise ValueError("a parking_lot needs at least 3 flows: one across, one on each link")


def _path_holds_little(spec: Experiment) -> None:
    if spec.most_path_bytes > MOST_PATH_BYTES:
        raise ValueError(
            f"path and queue hold {spec.most_path_bytes / 2**20:.0f} MiB; the most is "
            f"{MOST_PATH_BYTES // 2**20} MiB, so lower rate_mbps, rtt_ms or the buffer"
        )


def _ip6_fits(spec: Experiment) -> None:
    for_ip4 = {
        "mtu_bytes": spec.bottleneck.mtu_bytes < 1500,
        "attacks": bool(spec.attacks),
        "receiver": any(flow.receiver for flow in spec.flows),
    }
    if spec.ip_version == 6 and any(for_ip4.values()):
        name = next(name for name, given in for_ip4.items() if given)
        raise ValueError(f"{name} is for IPv4; leave out that, or ip_version")


def _attacks_strike(spec: Experiment) -> None:
    if not spec.attacks:
        return  # when each flow starts takes a while for many experiments
    one_way = spec.topology == "dumbbell" and not spec.has_reverse_traffic
    require_possible(spec.attacks, spec.flow_starts_s, spec.duration_s, one_way=one_way)


CHECKS: tuple[Callable[[Experiment], None], ...] = (
    _flows_end_in_time,
    _link_changes_in_time,
    _few_bursts,
    _jitter_fits,
    _flows_have_time,
    _topology_fits,
    _path_holds_little,
    _ip6_fits,
    _attacks_strike,
)
"""Each raises ValueError with one sentence. The first mistake is the one that is reported, and a
check may rely on those before it."""
