"""dualpi2 against what RFC 9332 expects of a coupled queue.

    python benchmarks/dualpi2.py [--path 40:20] [--write]

A scalable sender shares a link with CUBIC, which does not ask for ECN. RFC 9332 wants a queue of
about a millisecond for the first one (section 1), one that PI2 holds at 15 ms for the second one
(appendix A), L4S marks twice the root of the classic drops (section 2.1, k = 2), and windows of
about the same size. With k = 2 the windows of DCTCP (2/p) and of CUBIC in its Reno mode (1.68/√p)
are as 0.6 to 1, with Reno (1.22/√p) as 0.8. Cells are medians of three seeds; the table is
``dualpi2``.
"""

from __future__ import annotations

import argparse

import numpy as np
import xarray as xr
from markdown_tables import add_write, record

from qbkit.spec import Bottleneck, Experiment
from qbkit.traces.run.journey import Fate

DURATION_S, FROM_S, SEEDS = 40.0, 15.0, (1, 2, 3)
SCALABLE = ("tcp:dctcp?ecn=accurate", "picoquic:prague")
PATHS = ((40, 10), (40, 20), (40, 50), (120, 20))


def run(scalable: str, rate_mbps: float, rtt_ms: float, seed: int = 1) -> xr.Dataset:
    """A scalable sender (flow 0) beside CUBIC."""
    link = Bottleneck(
        rate_mbps=rate_mbps,
        rtt_ms=rtt_ms,
        buffer_bdp=16,
        qdisc="dualpi2",
        qdisc_options={"any_ect": True},  # DCTCP sends ECT(0)
    )
    flows = [scalable, "tcp:cubic"]
    return Experiment(bottleneck=link, flows=flows, duration_s=DURATION_S, seed=seed).run()


def measures(found: xr.Dataset) -> dict[str, float]:
    """Delays of both queues in ms, part marked and part dropped, and the ratio of the windows."""
    of = found.packet_flow.values
    late = found.packet_time_s.values > FROM_S
    delay_ms = (found.packet_departure_s.values - found.packet_time_s.values) * 1e3
    fate, passed = found.packet_fate.values, np.isfinite(delay_ms)
    marked = found.packet_is_marked.values
    one, two = (late & (of == i) for i in (0, 1))
    rtt_ms = float(found.attrs["rtt_ms"])
    mbps = found.throughput_mbps.sel(time=slice(FROM_S, None)).mean("time").values
    waits_ms = [float(delay_ms[flow & passed].mean()) for flow in (one, two)]
    windows = [rate * (rtt_ms + wait) for rate, wait in zip(mbps, waits_ms, strict=True)]
    return {
        "l4s_ms": waits_ms[0],
        "l4s_99_ms": float(np.percentile(delay_ms[one & passed], 99)),
        "classic_ms": waits_ms[1],
        "marked": float(marked[one & passed].mean()),
        "dropped": float((fate[two] == Fate.QUEUE_DROP).mean()),
        "windows": windows[0] / windows[1],
        "rates": float(mbps[0] / mbps[1]),
    }


def row(scalable: str, rate_mbps: float, rtt_ms: float) -> dict[str, object]:
    """A row of the table."""
    seeds = [measures(run(scalable, rate_mbps, rtt_ms, seed)) for seed in SEEDS]
    found = {name: float(np.median([one[name] for one in seeds])) for name in seeds[0]}
    return {
        "sender": f"`{scalable}`",
        "path": f"{rate_mbps:g} Mbit/s, {rtt_ms:g} ms",
        "L4S queue, ms": f"{found['l4s_ms']:.2f}",
        "its 99 %": f"{found['l4s_99_ms']:.2f}",
        "classic queue, ms": f"{found['classic_ms']:.1f}",
        "marked, %": f"{100 * found['marked']:.1f}",
        "2 √dropped, %": f"{200 * found['dropped'] ** 0.5:.1f}",
        "windows": f"{found['windows']:.2f}",
        "rates": f"{found['rates']:.2f}",
    }


def main() -> None:
    """Print or write a row for each sender and path."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--path", help="only this one, as Mbit/s:ms")
    add_write(parser)
    words = parser.parse_args()
    paths = [tuple(map(float, words.path.split(":")))] if words.path else PATHS
    rows = [row(scalable, *path) for scalable in SCALABLE for path in paths]
    record("dualpi2", rows, ["sender", "path"], words.write)


if __name__ == "__main__":
    main()
