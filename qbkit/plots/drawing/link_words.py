"""The link of an experiment in words: its rate and delay, and what happens on the path."""

from __future__ import annotations

from collections.abc import Iterator

from qbkit.spec import Bottleneck, Experiment
from qbkit.spec.over_time import Timed


def link_words(link: Bottleneck) -> list[str]:
    """Rate and RTT, as ranges where they change."""
    rate = f"{link.rate_mbps:g} Mbit/s"
    if link.capacity is not None and link.capacity.opportunities_ms:
        rate = link.capacity.name or "opportunities to send"
    elif link.capacity is not None:
        rate = f"{_range(link.capacity)} Mbit/s"
    rtt = _range(link.delay) if link.delay else f"{link.rtt_ms:g}"
    return [f"{rate}{burst_words(link)}", f"{rtt} ms RTT"]


def _range(values: Timed) -> str:
    low, high = min(values.values), max(values.values)
    return f"{low:.3g}–{high:.3g}" + (f" ({values.name})" if values.name else "")


def path_words(link: Bottleneck) -> list[str]:
    """What else happens to packets on the path; empty for a plain link."""
    return list(_path(link))


def _path(link: Bottleneck) -> Iterator[str]:
    if link.mean_loss_percent:
        yield loss_words(link)
    if link.outages:
        count = len(link.outages.times)
        yield f"{count} outage{'s' * (count > 1)}"
    if link.reorder_percent:
        which = f" from {link.reorder_min_bytes} B on" if link.reorder_min_bytes else ""
        yield f"{link.reorder_percent:g} %{which} late by {link.late_ms:g} ms"
    for percent, what in ((link.duplicate_percent, "twice"), (link.corrupt_percent, "corrupt")):
        if percent:
            yield f"{percent:g} % {what}"
    for held_ms, what in ((link.hold_data_ms, "data"), (link.hold_acks_ms, "ACKs")):
        if held_ms:
            yield f"{what} held for {held_ms:g} ms"
    if link.return_rate_mbps is not None:
        yield f"back {link.return_rate_mbps:g} Mbit/s"
    if link.policer_mbps is not None:
        yield f"policed to {link.policer_mbps:g} Mbit/s"
    if link.mtu_bytes < 1500:
        yield f"MTU {link.mtu_bytes} B" + ("" if link.mtu_icmp else ", not reported")
    if link.bleach_ecn:
        yield "ECN cleared"


def burst_words(link: Bottleneck) -> str:
    """What follows the rate: how many frames leave back to back, if more than one."""
    return f" in bursts of {link.burst_packets}" if link.burst_packets > 1 else ""


def loss_words(link: Bottleneck) -> str:
    """The loss after the queue, the length of its bursts, and its direction if not the default."""
    words = f"{link.mean_loss_percent:.3g} % loss"
    if link.loss_model != "random":
        words += f" in bursts of {link.loss_model.burst_words}"
    if link.loss_direction == "to_receivers":
        return words
    return words + (" each way" if link.loss_direction == "both" else " of ACKs")


def buffer_words(experiment: Experiment) -> str:
    """The buffer as given in the spec, and in bytes."""
    link = experiment.bottleneck
    size = f"{link.queue_bytes / 1e3:.4g} kB"
    if link.buffer_bdp is not None:
        return f"{link.buffer_bdp:g} BDP ({size})"
    return size if link.buffer_packets is None else f"{link.buffer_packets} packets"
