"""dualpi2 against what RFC 9332 expects of a coupled queue.

    python benchmarks/dualpi2.py [--path 40:20] [--flows 4] [--write]

A scalable sender shares a link with CUBIC, which does not ask for ECN. RFC 9332 wants a queue of
about a millisecond for the first one (section 1), one that PI2 holds at 15 ms for the second one
(appendix A), L4S marks twice the root of the classic drops (section 2.1, k = 2), and windows of
about the same size. With k = 2 the windows of DCTCP (2/p) and of CUBIC in its Reno mode (1.68/√p)
are as 0.6 to 1, with Reno (1.22/√p) as 0.8. DCTCP's estimate of the marked part, alpha, is shown as
RFC 8257 defines it and as the kernel computes it, both of the marks that left the queue. Cells are
medians of three seeds; the table is ``dualpi2``.
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from markdown_tables import arguments, record

from qbkit.spec import Bottleneck, Experiment
from qbkit.traces.run.journey import Fate

DURATION_S, FROM_S, SEEDS = 40.0, 15.0, (1, 2, 3)
GAIN_SHIFT, ONE = 4, 1024
"""The gain of DCTCP's estimate, 1/16, and its unit (net/ipv4/tcp_dctcp.c)."""
SCALABLE = ("tcp:dctcp?ecn=accurate", "picoquic:prague")
PATHS = ((40, 10), (40, 20), (40, 50), (120, 20))


def run(scalable: str, rate_mbps: float, rtt_ms: float, each: int, seed: int) -> xr.Dataset:
    """So many flows of a scalable sender, the first ones, beside as many CUBICs."""
    link = Bottleneck(
        rate_mbps=rate_mbps,
        rtt_ms=rtt_ms,
        buffer_bdp=16,
        qdisc="dualpi2",
        qdisc_options={"any_ect": True},  # DCTCP sends ECT(0)
    )
    flows = [scalable] * each + ["tcp:cubic"] * each
    return Experiment(bottleneck=link, flows=flows, duration_s=DURATION_S, seed=seed).run()


def measures(found: xr.Dataset) -> dict[str, float]:
    """Delays of both queues in ms, part marked and part dropped, and the ratio of the windows."""
    of = found.packet_flow.values
    late = found.packet_time_s.values > FROM_S
    delay_ms = (found.packet_departure_s.values - found.packet_time_s.values) * 1e3
    fate, passed = found.packet_fate.values, np.isfinite(delay_ms)
    marked = found.packet_is_marked.values
    each = found.sizes["flow"] // 2
    one, two = late & (of < each), late & (of >= each)
    rtt_ms = float(found.attrs["rtt_ms"])
    by_flow = found.throughput_mbps.sel(time=slice(FROM_S, None)).mean("time").values
    mbps = by_flow.reshape(2, each).mean(axis=1)
    waits_ms = [float(delay_ms[flow & passed].mean()) for flow in (one, two)]
    windows = [rate * (rtt_ms + wait) for rate, wait in zip(mbps, waits_ms, strict=True)]
    return {
        "l4s_ms": waits_ms[0],
        "l4s_99_ms": float(np.percentile(delay_ms[one & passed], 99)),
        "classic_ms": waits_ms[1],
        "marked": float(marked[one & passed].mean()),
        "dropped": float((fate[two] == Fate.QUEUE_DROP).mean()),
        **alphas(*marks_by_round(found, (rtt_ms + waits_ms[0]) * 1e-3)),
        "windows": windows[0] / windows[1],
        "rates": float(mbps[0] / mbps[1]),
    }


def marks_by_round(found: xr.Dataset, round_s: float) -> tuple[np.ndarray, np.ndarray]:
    """Packets of flow 0 that left the queue in each round trip, and how many had a mark."""
    passed = (found.packet_flow.values == 0) & np.isfinite(found.packet_departure_s.values)
    number = (found.packet_time_s.values[passed] // round_s).astype(int)
    return np.bincount(number), np.bincount(number, found.packet_is_marked.values[passed])


def alphas(packets: np.ndarray, marked: np.ndarray) -> dict[str, float]:
    """DCTCP's alpha, by RFC 8257 (section 3.3) and by the kernel's whole numbers: means.

    The kernel counts a round's marks in 64ths of its packets, rounded down, and takes what is left
    of alpha for nothing once it is below 1/64.
    """
    exact, whole, means = 1.0, ONE, []
    for count, marks in zip(packets, marked.astype(int), strict=True):
        exact += (marks / max(count, 1) - exact) / 2**GAIN_SHIFT
        whole -= whole >> GAIN_SHIFT or whole
        whole = min(whole + (marks * (ONE >> GAIN_SHIFT)) // max(count, 1), ONE)
        means.append((exact, whole / ONE))
    late = means[int(len(means) * FROM_S / DURATION_S) :]
    return dict(zip(("alpha", "kernel_alpha"), np.mean(late, axis=0), strict=True))


def row(scalable: str, rate_mbps: float, rtt_ms: float, each: int) -> dict[str, object]:
    """A row of the table."""
    seeds = [measures(run(scalable, rate_mbps, rtt_ms, each, seed)) for seed in SEEDS]
    found = {name: float(np.median([one[name] for one in seeds])) for name in seeds[0]}
    return {
        "sender": f"`{scalable}`",
        "path": f"{rate_mbps:g} Mbit/s, {rtt_ms:g} ms",
        "L4S queue, ms": f"{found['l4s_ms']:.2f}",
        "its 99 %": f"{found['l4s_99_ms']:.2f}",
        "classic queue, ms": f"{found['classic_ms']:.1f}",
        "marked, %": f"{100 * found['marked']:.1f}",
        "2 √dropped, %": f"{200 * found['dropped'] ** 0.5:.1f}",
        "alpha, %": f"{100 * found['alpha']:.1f}",
        "in 64ths, %": f"{100 * found['kernel_alpha']:.1f}",
        "windows": f"{found['windows']:.2f}",
        "rates": f"{found['rates']:.2f}",
    }


def main() -> None:
    """Print or write a row for each sender and path."""
    parser = arguments(__doc__)
    parser.add_argument("--path", help="only this one, as Mbit/s:ms")
    parser.add_argument("--flows", type=int, default=1, help="flows of each kind")
    words = parser.parse_args()
    paths = [tuple(map(float, words.path.split(":")))] if words.path else PATHS
    rows = [row(scalable, *path, words.flows) for scalable in SCALABLE for path in paths]
    record("dualpi2", rows, ["sender", "path"], words.write)


if __name__ == "__main__":
    main()
