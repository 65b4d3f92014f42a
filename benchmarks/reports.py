"""Reports that others made about their stacks, each as one command with its control.

    python benchmarks/reports.py [--only noq] [--write]

Each report is run with three seeds, and so is each control: the kernel's TCP, another stack, a
release, or the flow without its option. Runs are stored, so a second start goes on where the first
one ended. The table is ``reports``; a figure is the median of the seeds, with their range if it
shows.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import median

import numpy as np
import xarray as xr
from markdown_tables import arguments, record

import qbkit as qb
from qbkit.cli.network import bottleneck
from qbkit.cli.run import run_command

SEEDS = (1, 2, 3)
KEYS = ("report",)
LEAST_DROP = 0.9
"""A window that shrinks to less than this within two samples was reduced."""
PATH = "--rate-mbps 20 --rtt-ms 50"
LATE = f"{PATH} --reorder-percent 3"
"""3 % of the packets arrive a quarter of the RTT late: more than RFC 9002 waits."""


def goodput(run: xr.Dataset) -> float:
    return float(run.qb.summary().goodput_mbps[0])


def loss(run: xr.Dataset) -> float:
    return float(run.qb.summary().loss_percent[0])


def response(run: xr.Dataset) -> float:
    return float(run.qb.summary().object_median_ms[0])


def growth(run: xr.Dataset) -> float:
    """The window at the end, over that after two seconds."""
    early, late = run.cwnd_bytes[0].sel(time=[2, 9.9], method="nearest").values
    return float(late / early)


def estimate(run: xr.Dataset) -> float:
    return float(run.delivery_rate_mbps[0].sel(time=slice(2, None)).median())


def after(start_s: float) -> Callable[[xr.Dataset], float]:
    """Goodput from a time on."""
    return lambda run: float(run.goodput_mbps[0].sel(time=slice(start_s, None)).mean())


def after_idle(run: xr.Dataset) -> float:
    """The window half a second after the second object, over that before it."""
    before, later = run.cwnd_bytes[0].sel(time=[9.9, 10.5], method="nearest").values
    return float(later / before)


def reduction(run: xr.Dataset) -> float:
    """What a reduction leaves of the window in congestion avoidance: the median."""
    cwnd = run.cwnd_bytes[0].sel(time=slice(3, None)).values
    cwnd = cwnd[~np.isnan(cwnd)]
    left = np.minimum(cwnd[1:-1], cwnd[2:]) / cwnd[:-2]
    # A reduction shows in two neighbours; the lower ratio starts before it.
    return float(np.median(left[(left < LEAST_DROP) & (left <= np.roll(left, 1))]))


@dataclass(frozen=True)
class Report:
    """One thread, the flow of its command, and what the flow is compared with."""

    name: str
    thread: str
    says: str
    answer: str
    """Whether qbkit shows it, and what is missing."""
    measure: str = ""
    value: Callable[[xr.Dataset], float] = goodput
    flow: str = ""
    controls: tuple[str, ...] = ()
    path: str = PATH
    duration_s: float = 10
    calm: str = ""
    """The path without what the report blames, for the flow itself; empty if it is not run."""


REPORTS = (
    Report(
        "quic-go #5734",
        "quic-go/quic-go/pull/5734",
        "Reordering pins the congestion window: late packets count as lost",
        "yes, with 0.41.0; no longer with today's release",
        "goodput, Mbit/s",
        flow="quic-go@0.41.0:cubic",
        controls=("quic-go:cubic", "tcp:cubic"),
        path="--rate-mbps 5 --rtt-ms 50 --reorder-percent 17.5 --reorder-ms 25",
    ),
    Report(
        "quic-go #5768",
        "quic-go/quic-go/issues/5768",
        "Only packets above 1440 bytes are reordered, and throughput collapses",
        "yes, with 0.41.0; no longer with today's release",
        "goodput, Mbit/s",
        flow="quic-go@0.41.0:cubic",
        controls=("quic-go:cubic", "tcp:cubic"),
        path="--rate-mbps 30 --rtt-ms 50 --reorder-percent 3 --reorder-min-bytes 1441",
    ),
    Report(
        "nginx #443",
        "nginx/nginx/pull/443",
        "With a packet threshold of 3, reordering makes CUBIC's window collapse",
        "no longer if packets are 5 ms late; quinn with its threshold of 3 shows it",
        "goodput, Mbit/s",
        flow="nginx:cubic",
        controls=("quinn:cubic", "quinn:cubic?packet_threshold=100", "tcp:cubic"),
        path=f"{LATE} --reorder-ms 5",
    ),
    Report(
        "nginx #443, later",
        "nginx/nginx/pull/443",
        "The same with packets 12.5 ms late, which no packet threshold helps against",
        "yes",
        "goodput, Mbit/s",
        flow="nginx:cubic",
        controls=("quinn:cubic?packet_threshold=100", "nginx-1.26:reno", "tcp:cubic"),
        path=LATE,
    ),
    Report(
        "msquic #1237",
        "microsoft/msquic/issues/1237",
        "The window stays reduced after a loss that was spurious",
        "no longer; quinn shows it",
        "goodput, Mbit/s",
        flow="msquic:cubic",
        controls=("quinn:cubic", "tcp:cubic"),
        path=LATE,
    ),
    Report(
        "ngtcp2 #1399",
        "ngtcp2/ngtcp2/issues/1399",
        "Many small POST requests leave the window at a tenth of before",
        "no: ngtcp2's programs, which Debian packages, have no `app`",
    ),
    Report(
        "picoquic #1758",
        "private-octopus/picoquic/issues/1758",
        "BBR is slow and varies, above all if the application limits it",
        "yes, with an application that pauses; the first post's loopback has no counterpart",
        "median response, ms",
        response,
        "picoquic:bbr?app=requests kb=200 think_s=0.2",
        tuple(f"{flow}?app=requests kb=200 think_s=0.2" for flow in ("picoquic:cubic", "tcp:bbr")),
    ),
    Report(
        "picoquic #1485",
        "private-octopus/picoquic/issues/1485",
        "The window grows for ever while the application limits the flow",
        "no longer",
        "window after 10 s, over that after 2 s",
        growth,
        "picoquic:cubic?app=rate mbps=2 fps=30",
        ("quic-go:cubic?app=rate mbps=2 fps=30", "tcp:cubic?app=rate mbps=2 fps=30"),
    ),
    Report(
        "noq #800",
        "n0-computer/noq/issues/800",
        "BBRv3 never paces an application-limited flow: bursts overflow a short queue",
        "yes",
        "loss, %",
        loss,
        "noq:bbr3?app=rate mbps=8 fps=25",
        ("noq:cubic?app=rate mbps=8 fps=25", "tcp:bbr?app=rate mbps=8 fps=25"),
        "--rate-mbps 20 --rtt-ms 40 --buffer-packets 25",
    ),
    Report(
        "s2n-quic #157",
        "aws/s2n-quic/issues/157",
        "CUBIC counts idle time, and its window jumps when data come again",
        "no longer",
        "window after 6 s of idle time, over that before",
        after_idle,
        "s2n-quic:cubic?app=objects 0:8000 10:8000",
        ("tcp:cubic?app=objects 0:8000 10:8000",),
        duration_s=15,
    ),
    Report(
        "s2n-quic #1320",
        "aws/s2n-quic/issues/1320",
        "The longer the RTT, the lower the throughput: receive windows limit it",
        "yes",
        "goodput, Mbit/s",
        flow="s2n-quic:cubic?receive_window_kb=500",
        controls=("tcp:cubic?receive_window_kb=500", "s2n-quic:cubic"),
        path="--rate-mbps 20 --rtt-ms 250",
        duration_s=15,
    ),
    Report(
        "quicly #689",
        "h2o/quicly/pull/689",
        "After a dip of the capacity CUBIC takes too long to fill the link",
        "yes, for the kernel's CUBIC and half a BDP of buffer; quicly must be built by hand",
        "goodput after the dip, Mbit/s",
        after(5.5),
        "tcp:cubic",
        ("tcp:bbr",),
        "--rate-mbps 50 --rtt-ms 60 --buffer-bdp 0.5 --capacity '0:50 4:10 5:50'",
        calm="--rate-mbps 50 --rtt-ms 60 --buffer-bdp 0.5",
    ),
    Report(
        "quicly #689, 1 BDP",
        "h2o/quicly/pull/689",
        "The same with a buffer of 1 BDP",
        "no: CUBIC fills the link as BBR does",
        "goodput after the dip, Mbit/s",
        after(5.5),
        "tcp:cubic",
        ("tcp:bbr",),
        "--rate-mbps 50 --rtt-ms 60 --capacity '0:50 4:10 5:50'",
    ),
    Report(
        "picoquic #2140",
        "private-octopus/picoquic/pull/2140",
        "C4 takes too long after the capacity drops and comes back",
        "no longer, in either release",
        "goodput after the drop, Mbit/s",
        after(6.5),
        "picoquic:c4",
        ("picoquic@1.1.51.1:c4", "picoquic:bbr", "picoquic:cubic"),
        f"{PATH} --capacity '0:20 4:2 6:20'",
        12,
    ),
    Report(
        "lsquic #554",
        "litespeedtech/lsquic/issues/554",
        "A receive window limits the flow, and BBR's estimate stays far below the link",
        "yes",
        "estimated bandwidth, Mbit/s",
        estimate,
        "lsquic:bbr?receive_window_kb=300",
        ("lsquic:bbr", "tcp:bbr?receive_window_kb=300"),
        "--rate-mbps 20 --rtt-ms 100",
    ),
    Report(
        "openssl #31134",
        "openssl/openssl/issues/31134",
        "From 3.5.3 on a client receives at a fifth of the speed",
        "no: its server cannot send, and an upload is as fast as before",
        "goodput, Mbit/s",
        flow="openssl@3.5.4:newreno",
        controls=("tcp:reno", "openssl@3.5.0:newreno"),
    ),
    Report(
        "neqo #3111",
        "mozilla/neqo/issues/3111",
        "A mark of ECN reduces the window as much as a loss does",
        "in part: msquic and the kernel do so; neqo in Firefox sends without ECN",
        "what a reduction leaves of the window",
        reduction,
        "msquic:cubic?ecn=true",
        ("msquic:cubic", "tcp:cubic?ecn=true", "tcp:cubic", "neqo:cubic"),
        f"{PATH} --qdisc codel --qdisc-options ecn=true",
        15,
    ),
)


def command(report: Report, flow: str) -> str:
    """The command line of a flow's first run."""
    return f"qbkit run {shlex.quote(flow)} {report.path} --duration-s {report.duration_s}"


def experiment(text: str, seed: int) -> qb.Experiment:
    """What a command line runs."""
    words = shlex.split(text)[2:]
    given = dict(run_command.make_context("run", words).params)
    return qb.Experiment(
        bottleneck=bottleneck(given),
        flows=list(given["flows"]),
        duration_s=given["duration_s"],
        seed=seed,
    )


def values(report: Report, flow: str) -> list[float]:
    """What was measured of a flow, of each seed."""
    text = command(report, flow)
    return [report.value(experiment(text, seed).run()) for seed in SEEDS]


def cell(found: list[float]) -> str:
    """The median, and the range if it shows.

    >>> cell([1.0, 1.01, 1.26]), cell([40.5, 40.5, 40.5])
    ('1.0 (1.0 to 1.3)', '40.5')
    """
    places = 2 if max(found) < 1.2 else 1
    low, middle, high = (f"{f(found):.{places}f}" for f in (min, median, max))
    return middle if low == high else f"{middle} ({low} to {high})"


def row(report: Report) -> dict[str, object]:
    """A line of the table; runs what is not stored yet."""
    flows = (report.flow, *report.controls) if report.flow else ()
    figures = [f"`{flow}`: {cell(values(report, flow))}" for flow in flows]
    if report.calm:
        calm = values(replace(report, path=report.calm), report.flow)
        figures.append(f"`{report.flow}` with `{report.calm}`: {cell(calm)}")
    return {
        "report": f"[{report.name}](https://github.com/{report.thread})",
        "what it says": report.says,
        "shown": report.answer,
        "command": f"`{command(report, report.flow)}`" if flows else "",
        "result": "<br>".join([report.measure, *figures]) if flows else "",
    }


def main() -> None:
    """Run the reports, or those whose name contains a text."""
    parser = arguments(__doc__)
    parser.add_argument("--only", default="", help="a part of the name of a report")
    words = parser.parse_args()
    for report in REPORTS:
        if words.only in report.name:
            record("reports", [row(report)], KEYS, words.write)


if __name__ == "__main__":
    main()
