"""What would confirm each cause, and by which names a source calls it.

A cause is a suspect until one experiment has changed it and nothing else.
"""

from __future__ import annotations

from typing import NamedTuple

from qbkit import stacks
from qbkit.errors import QbkitError
from qbkit.metrics.parameters import Difference
from qbkit.spec import Bottleneck, Experiment, Flow
from qbkit.studies.source_lines import source_line

LOW_PART = 0.4
"""Of the rate, where it falls."""
SWITCHES = {"paced": True, "bursts": False, "delay": True, "loss": False}
"""How an option spells what slow start does, and by what it ends."""


class Check(NamedTuple):
    """How a cause is put to the test, and where it is looked for."""

    experiment: str
    """What to do, and what it then shows. `confirmation` fills in the commands."""
    identifiers: tuple[str, ...]
    """As `source_line` takes them."""
    of_controller: bool = True
    option: str = ""
    """The option that sets it, where several stacks have one of that name."""


def _number(what: str, *identifiers: str) -> Check:
    """The check of a number in the source."""
    text = f"set its {what} to the reference's, and build it again: the difference must go"
    return Check(text, identifiers)


def _fall(then: str, *identifiers: str) -> Check:
    """The check of what shows when the rate falls once."""
    return Check(f"run {{both}} --buffer-bdp 6 --capacity '{{fall}}': {then}", identifiers)


UP = ("probe(bw)?up.*gain", "pacinggain(cycle|s)?\\b", "gaincycle|cyclegain", "pacinggain")
DOWN = ("probe(bw)?down.*gain", *UP[1:])
FILTER = (
    "(bw|bandwidth)filter(len|rounds|window)",
    "(max)?(bw|bandwidth)filter|maxfilter",
    "(bw|bandwidth)win",
    "maxbandwidth|maxbw|bw.*estimat",
)
STARTUP = ("startup(pacing|cwnd)?gain|highgain", "startup.*gain")
PROBE_RTT_TIME = ("probertt(interval|period)", "minrtt(filter|win|expir|len)")
ACKS = (
    "ack(eliciting)?(threshold|every|frequency|ratio)|packetsbeforeack",
    "(local|max)?ackdelay",
    "ackeliciting",
)
RATE = ("pacingmargin|pacing(rate)?(factor|percent|scale)", "pacingrate\\b.*=", "pacinggain")
RECEIVER = (
    "let another stack's receiver acknowledge the same sender, since this is a property of the "
    "receiver: the difference must go"
)
SINGLE = "run {both} --buffer-bdp 5 --loss-percent 0.01"
CHECKS: dict[str, Check] = {
    "initial_window_packets": Check(
        "set its initial window to the reference's, and build it again: both must start alike",
        ("initial(cwnd|window|congestionwindow)", "init(ial)?cwnd"),
        option="initial_window_packets",
    ),
    "start_growth": _number("growth in slow start", *STARTUP, "slowstart"),
    "slow_start_exit": Check(
        "run {both} --buffer-bdp 10: the one that leaves slow start by delay must leave it first",
        ("hystart", "ssthresh", "slowstart"),
        option="hystart",
    ),
    "pacing": Check(
        "switch its pacer on, or off, and build it again: its bursts must go, or come",
        ("sendallowance", "pacingrate", "pacer|pacing"),
        option="pacing",
    ),
    "pacing_gain": _number(
        "pacing gain in slow start",
        "slowstart.*gain|pacing(gain|factor|multiplier|ratio)",
        "pacingrate|pacer",
        "pacing",
    ),
    "packet_bytes": Check(
        "run {both} --mtu-bytes 1280: with frames of one size the difference must go",
        ("max(udp)?(datagram|segment|packet)size|maxudppayload", "(initial|base|default)mtu|mss"),
        of_controller=False,
    ),
    "packets_per_ack": Check(RECEIVER, ACKS, of_controller=False, option="ack_every_packets"),
    "ack_delay_ms": Check(RECEIVER, ACKS[1:], of_controller=False),
    "receiver_wait_ms": Check(RECEIVER, ACKS[1:], of_controller=False),
    "decrease_factor": Check(
        f"{SINGLE}: each single loss must leave as much of the window",
        ("beta", "(lossreduction|backoff|decrease)(factor)?", "ssthresh|startthresh"),
    ),
    "reverted_reductions_percent": Check(
        f"{SINGLE}: two RTTs after most single losses the window must be back",
        ("spurious|undo|rollback|revert", "priorcwnd|checkpoint"),
    ),
    "growth": Check(
        "run {both} --rtt-ms {longer}: a cubic window must be back after as many seconds, a linear "
        "one after as many RTTs",
        ("congestionavoidance", "wcubic|wmax", "cubic"),
    ),
    "increase_packets_per_rtt": Check(
        "run {both} --rtt-ms {longer}: it must add as many packets per RTT there",
        ("alpha(aimd)?|additive", "westimated|west\\b|renocwnd|tcpfriendly", "congestionavoidance"),
    ),
    "cubic_c": Check(
        "run {both} --rtt-ms {longer}: C must stay, since CUBIC counts in seconds",
        ("(?-i:\\bC\\b)\\s*[:=]|c?cubicc?\\b|cubefactor|cubescal", "(?-i:\\bC\\b)", "wcubic"),
    ),
    "probe_up_gain": _number("gain while it probes for bandwidth", *UP),
    "probe_rate": _number("gain while it probes for bandwidth", *UP),
    "probe_down_gain": _number("gain in the drain", *DOWN),
    "drain_rate": _number("gain in the drain", *DOWN),
    "probe_cycle_rtts": _number(
        "time between two probes",
        "gaincyclelen|cyclelen",
        "(bw)?probe(wait|maxrounds|period|interval)|roundssince.*probe",
        "cycle(idx|index|phase)",
    ),
    "probe_rtt_interval_s": _number("time between two ProbeRTTs", *PROBE_RTT_TIME),
    "probe_rtt_every_s": _number("time between two ProbeRTTs", *PROBE_RTT_TIME),
    "probe_rtt_duration_ms": _number("length of a ProbeRTT", "probertt(duration|time|mode|length)"),
    "probe_rtt": Check(
        "run {both} --duration-s 120: only one of them must empty the queue again and again",
        ("(enter|check|start|update|mayenter)probertt", "probertt"),
    ),
    "probe_rtt_bdp": _number(
        "window in ProbeRTT", "probertt(cwnd|.*gain)", "min(pipe)?cwnd|min(imum)?window"
    ),
    "bandwidth_filter": _fall("its queue must stay for good", *FILTER),
    "bandwidth_memory_rounds": _fall("its queue must stay for so many rounds", *FILTER),
    "window_gain": _fall(
        "as many BDP must be in flight after it", "(cwnd|window)gain", "cwndfactor"
    ),
    "ack_room": Check(
        "run {both} --hold-acks-ms 20: it must lose more throughput by it than the reference",
        ("ackaggregation|extraacked|ackheight", "aggregat"),
    ),
    "standing_queue_bdp": _number("pacing rate", *RATE),
    "paced_part": _number("pacing rate", *RATE),
    "probes_reach_bdp": _number("pacing rate", *RATE),
    "rounds_of_loss": Check(
        "run {both}: after each loss event its window must stay as it was",
        ("(in|start|end)?recovery(period|start|epoch)", "on(congestionevent|packetslost|loss)"),
    ),
    "cruise_part": _number("headroom", "headroom", "cruise"),
    "left_in_flight_bdp": _number(
        "rule that ends the drain",
        "nextcyclephase",
        "(is|check)?(probebw)?(drain|down)(done|target|inflight)",
        "drain",
    ),
    "kept_after_burst": Check(
        "run {both} --buffer-bdp 6 --outages '20:0.01 drop': as much must stay in flight",
        ("beta", "recovery(cwnd|window)|inflightlo|lossthresh", "onloss|congestionevent"),
    ),
    "startup_peak_bdp": _number("gain of startup", *STARTUP),
    "startup_reach_rtts": _number("gain of startup", *STARTUP),
    "startup_hold_rtts": _number(
        "number of rounds without growth that end startup",
        "full(bw|bandwidth|pipe)(count|cnt|rounds)",
        "roundswithout|startupfull",
        "full(bw|bandwidth|pipe)",
    ),
    "startup_drain_gain": _number("gain of the drain after startup", "drain(pacing)?gain", "drain"),
    "back_to_back_packets": Check(
        "switch its segmentation offload off: its packets must then leave singly",
        ("sendquantum|maxburst|burstsize", "burst|gso|quantum"),
        of_controller=False,
    ),
    "steep_increase_packets_per_rtt": Check(
        "run {both} --buffer-bdp 0.1: it must lose far more packets than the reference",
        ("congestionavoidance", "mtu|datagramsize", "cwnd.*\\+="),
    ),
    "back_at_loss_part": Check(
        "run {both} --rtt-ms {longer}: its window must be back too early there as well",
        ("(?-i:\\b[kK]\\b)\\s*[:=]", "cubicroot|cuberoot|cbrt", "(?-i:\\bK\\b)"),
    ),
    "kept_after_mark": Check(
        "run {both} --qdisc fq_codel: each mark must leave as much of the window",
        ("ecn", "congestionexperienced|\\bce\\b", "beta|ssthresh"),
    ),
    "kept_after_pause": _number(
        "window after an idle time", "(after|since|from)idle|idlerestart", "idle", "applimited"
    ),
    "rate_after_pause": _number(
        "test for samples that the application limits", "(is)?applimited", "deliveryrate"
    ),
    "kept_after_outage": _number(
        "rule for persistent congestion", "persistentcongestion", "(on)?(rto|pto|timeout)"
    ),
    "window_cap_packets": Check(
        "run {test} --rate-mbps {faster}: its throughput must not grow",
        ("max(cwnd|window|congestionwindow)", "receivewindow|flowcontrol"),
        of_controller=False,
    ),
}
"""Cause → how it is put to the test."""


def confirmation(cause: Difference, test: Experiment, reference: Experiment) -> str:
    """What would confirm a cause of a study, in one sentence that begins with "To confirm it".

    ``test`` and ``reference`` are runs of either side. Where the test's stack has an option for the
    cause, the sentence is a command that gives it the reference's value.
    """
    check, link = CHECKS[cause.name], test.bottleneck
    ours, theirs = test.flows[0], reference.flows[0]
    if changed := _changed(cause, ours, check.option):
        command = f"qbkit conformance {_quoted(changed)} --reference {_quoted(theirs)}"
        buffer = f" --buffer-bdp {link.buffer_bdp:g}" if link.buffer_bdp else ""
        done = f"run {command}{_link(link)}{buffer}: the difference must go"
    else:
        where = _link(link, check.experiment)
        done = check.experiment.format(
            test=f"qbkit run {_quoted(ours)}{where}",
            both=f"qbkit compare {_quoted(ours)} {_quoted(theirs)}{where}",
            longer=f"{4 * link.rtt_ms:g}",
            faster=f"{5 * link.rate_mbps:g}",
            fall=f"0:{link.rate_mbps:g} 20:{LOW_PART * link.rate_mbps:g}",
        )
    return f"To confirm it, {done}."


def likely_place(cause: Difference, test: Flow) -> str:
    """The line of the source where a cause most likely lives; "" where no source is at hand."""
    check = CHECKS[cause.name]
    return source_line(test, check.identifiers, of_controller=check.of_controller)


def _link(link: Bottleneck, experiment: str = "") -> str:
    """Rate and RTT of a link as options of a command; not the defaults, nor what it changes."""
    usual = Bottleneck()
    options = (
        ("--rate-mbps", link.rate_mbps, usual.rate_mbps),
        ("--rtt-ms", link.rtt_ms, usual.rtt_ms),
    )
    chosen = [each for each in options if each[1] != each[2] and each[0] not in experiment]
    return "".join(f" {name} {value:g}" for name, value, _ in chosen)


def _quoted(flow: Flow) -> str:
    """A flow as a word of a shell."""
    text = flow.text
    return f"'{text}'" if "?" in text else text


def _changed(cause: Difference, test: Flow, option: str) -> Flow | None:
    """The test with the reference's value of an option; None if it has no such option."""
    reference = cause.reference
    packets = round(reference.value) if reference.known and not reference.word else None
    value = SWITCHES.get(reference.word) if reference.word else packets
    if not option or value is None:
        return None
    changed = test.model_copy(update={"options": {**test.options, option: value}})
    try:
        stacks.get(test.stack).check(test.controller, changed.options, test.source)
    except QbkitError:
        return None
    return changed
