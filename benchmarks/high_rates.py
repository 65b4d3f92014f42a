"""What runs at 1, 5 and 10 Gbit/s cost, and whether the flow fills the link there.

    python benchmarks/high_rates.py [--flows tcp:cubic tcp:bbr s2n-quic:cubic]
        [--rates-mbps 1000 5000 10000] [--rtts-ms 10 100] [--write]

One flow alone, buffer of one BDP, seed 1, a fresh process for each run, so that its peak memory is
its own. A run is as long as slow start needs to fill the path, and half as long again. The table is
``high_rates``.
"""

from __future__ import annotations

import itertools
import multiprocessing
import resource
import tempfile
from pathlib import Path

import numpy as np
from markdown_tables import arguments, record

from qbkit.execution import runner
from qbkit.spec import Bottleneck, Experiment
from qbkit.traces.run.attributes import run_warnings

RTTS = 25
"""Length of a run; ten packets double 14 times until 10 Gbit/s times 100 ms are full."""
LEAST_S = 0.5
HEAD = (
    *("flow", "Mbit/s", "RTT, ms", "virtual s", "Mbit/s in the last fifth", "dropped, %"),
    *("million frames", "processor s", "per virtual s", "guest, MB", "dataset, MB"),
)
KEYS = HEAD[:3]


def row(flow: str, rate_mbps: float, rtt_ms: float) -> dict[str, str]:
    """One run, as a row of the table; its warnings are shown."""
    link = Bottleneck(rate_mbps=rate_mbps, rtt_ms=rtt_ms, buffer_bdp=1)
    duration_s = max(LEAST_S, RTTS * rtt_ms / 1e3)
    experiment = Experiment(bottleneck=link, flows=[flow], duration_s=duration_s)
    with tempfile.TemporaryDirectory() as folder:
        run = runner.run(experiment, engine="virtual", out=Path(folder) / "run.nc")
    own, guest = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    cpu_s = own.ru_utime + own.ru_stime + guest.ru_utime + guest.ru_stime
    departure_s, size = run.packet_departure_s.values, run.packet_size_bytes.values
    late = (departure_s >= 0.8 * duration_s) & (departure_s < duration_s)
    mbps = size[late].sum(dtype=float) * 8e-6 / (0.2 * duration_s)
    words = [
        flow,
        f"{rate_mbps:g}",
        f"{rtt_ms:g}",
        f"{duration_s:g}",
        f"{mbps:.0f}",
        f"{100 * np.isnan(departure_s).mean():.2f}",
        f"{len(size) / 1e6:.2f}",
        f"{cpu_s:.1f}",
        f"{cpu_s / duration_s:.1f}",
        f"{guest.ru_maxrss / 1024:.0f}",
        f"{own.ru_maxrss / 1024:.0f}",
    ]
    print(*run_warnings(run), sep="\n", end="\n" if run_warnings(run) else "")
    return dict(zip(HEAD, words, strict=True))


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--flows", nargs="+", default=["tcp:cubic", "tcp:bbr", "s2n-quic:cubic"])
    parser.add_argument("--rates-mbps", nargs="+", type=float, default=[1000, 5000, 10000])
    parser.add_argument("--rtts-ms", nargs="+", type=float, default=[10, 100])
    words = parser.parse_args()
    context = multiprocessing.get_context("fork")
    for case in itertools.product(words.flows, words.rates_mbps, words.rtts_ms):
        with context.Pool(1) as pool:
            record("high_rates", [pool.apply(row, case)], KEYS, words.write)


if __name__ == "__main__":
    main()
