"""mahimahi's mm-link as a reference for links of mahimahi's traces, in virtual time.

    python benchmarks/mahimahi.py [--write]

A CUBIC flow runs over a trace here. Then the packets of that flow pass mm-link of Debian 11, in a
guest of their own: the same sizes, at the times at which they reached our queue. The table compares
when each left. mm-link knows milliseconds alone; ours sends at the opportunity itself. The table is
``mahimahi``.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from ideal_link import departures
from markdown_tables import arguments, record

from qbkit.settings import cache_folder
from qbkit.spec import Bottleneck, Experiment
from qbkit.stacks.toolchains.apt import private_apt
from qbkit.testbed.engines import run_in_guest

SUITE, DURATION_S, ETHERNET_BYTES = "bullseye", 8.0, 14
HEAD = ("trace", "packets", "median, ms", "99 %, ms", "largest, ms", "mm-link was earlier")
HERE = Path(__file__).parent


def traces() -> dict[str, list[int]]:
    """Opportunities in ms by the name of a trace, the same ones every time."""
    draw = np.random.default_rng(2)
    mixed = draw.choice([0, 0, 1, 1, 1, 2, 7, 40], 400)
    slow = draw.choice([5, 10, 20, 100], 100)
    return {
        "12 Mbit/s, one each ms": [1],
        "random gaps of 0 to 40 ms": np.cumsum([1, *mixed]).tolist(),
        "random gaps of 5 to 100 ms": np.cumsum([1, *slow]).tolist(),
        "bursts of ten each 20 ms": [20] * 10,
    }


def mahimahi() -> Path:
    """The folder of the package mahimahi of Debian 11, unpacked."""
    target = cache_folder() / "mahimahi"
    if not (target / "usr/bin/mm-link").exists():
        with tempfile.TemporaryDirectory() as scratch:
            words = {"cwd": scratch, "env": {**os.environ}, "check": True, "capture_output": True}
            words["env"]["APT_CONFIG"] = str(private_apt(Path(scratch), SUITE))
            subprocess.run(["apt-get", "update"], **words)
            subprocess.run(["apt-get", "download", "mahimahi"], **words)
            (package,) = Path(scratch).glob("mahimahi_*.deb")
            target.mkdir(parents=True)
            subprocess.run(["dpkg", "-x", package, target], **words)
    return target


def through_mm_link(opportunities_ms: list[int], packets: list[tuple[int, int]]) -> np.ndarray:
    """When packets of (ns, bytes of IP) leave mm-link, in s after its trace began."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # what mm-link starts is nobody
        plan = {"opportunities_ms": opportunities_ms, "packets": packets}
        (Path(folder) / "plan.json").write_text(json.dumps(plan))
        (Path(folder) / "guest.py").write_bytes((HERE / "mahimahi_guest.py").read_bytes())
        mounts = {"/run/qb/mahimahi": str(mahimahi()), "/run/qb/work": folder}
        argv = ["/usr/bin/python3", "/run/qb/work/guest.py", "/run/qb/work/plan.json"]
        done = run_in_guest(argv, mounts=mounts)
    if done["exit"]:
        raise SystemExit(f"mm-link did not carry the packets: {done['output']}")
    return np.array(json.loads(done["output"])) / 1e9


def compared(name: str, opportunities_ms: list[int]) -> dict[str, object]:
    """A row: how far apart the departures are."""
    link = Bottleneck(
        rate_mbps=12, rtt_ms=30.5, buffer_bdp=4, capacity={"opportunities_ms": opportunities_ms}
    )
    run = Experiment(
        bottleneck=link, flows=["tcp:cubic"], duration_s=DURATION_S, jitter_ms=0.1
    ).run()
    at_s, left_s, sizes = departures(run)
    order = np.argsort(at_s, kind="stable")
    times_ns = np.rint(at_s[order] * 1e9).astype(int).tolist()
    sizes_bytes = (sizes[order] - ETHERNET_BYTES).astype(int).tolist()
    theirs_s = through_mm_link(opportunities_ms, list(zip(times_ns, sizes_bytes, strict=True)))
    later_ms = (theirs_s - left_s[order]) * 1e3
    far_ms = (f"{np.percentile(np.abs(later_ms), q):.3f}" for q in (50, 99, 100))
    cells = (name, len(order), *far_ms, int((later_ms < -0.01).sum()))
    return dict(zip(HEAD, cells, strict=True))


def main() -> None:
    """Print or write a row for each trace."""
    parser = arguments(__doc__)
    words = parser.parse_args()
    rows = [compared(name, opportunities_ms) for name, opportunities_ms in traces().items()]
    record("mahimahi", rows, ["trace"], words.write)


if __name__ == "__main__":
    main()
