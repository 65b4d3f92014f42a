"""Peak memory of building a run's dataset, and what opening the stored run and `summary` cost.

    python benchmarks/memory.py [--packets 1500000] [--duration-s 3600] [--code now] [--write]

A run folder is generated: captures of a flow (frames of 1514 bytes, an ACK for every second one,
one drop in a thousand, cut at 128 bytes) and its telemetry every 10 ms, as the guest writes them.
A process of its own builds the dataset and stores it; another opens it. Memory is the peak resident
set (``ru_maxrss``) less what the process held after its imports; "whole" is with that. Times are
processor seconds. The table is ``memory``; ``--code`` names the code that was measured.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
from markdown_tables import add_write, record

KEYS = ["packets", "code"]
T0_NS = 1_767_225_601 * 10**9
SNAPLEN, PIECE = 128, 1 << 16
DATA = np.dtype([("head", "<u4", 4), ("frame", "u1", SNAPLEN)])
ACK = np.dtype([("head", "<u4", 4), ("frame", "u1", 66)])
ENDS = ("0a010001", "0a020001", "c350", "0fa1")
ETHERNET_IP_TCP = "000000000000 000000000000 0800 4500 {:04x} 0001 4000 4006 0000 {} {} {} {} "
COLUMNS = (
    "time_ns,cwnd_bytes,bytes_in_flight,ssthresh_bytes,srtt_ms,min_rtt_ms,pacing_rate_mbps,"
    "delivery_rate_mbps,retransmits,spurious_losses,state"
)


def records(
    kind: np.dtype, head: str, size: int, numbers: np.ndarray, time_ns: np.ndarray
) -> np.ndarray:
    """Records of frames of one kind, each with its number as TCP's sequence number."""
    found = np.zeros(len(numbers), kind)
    found["head"][:, :2] = np.stack([time_ns // 10**9, time_ns % 10**9], 1)
    found["head"][:, 2:] = kind["frame"].shape[0], size
    template = np.frombuffer(bytes.fromhex(head.replace(" ", "")), np.uint8)
    found["frame"][:, : len(template)] = template
    found["frame"][:, 38:42] = numbers.astype(">u4").view(np.uint8).reshape(-1, 4)
    return found


def generate(folder: Path, packets: int, duration_s: float) -> None:
    """The folder of a run as the guest leaves it."""
    data = ETHERNET_IP_TCP.format(1500, *ENDS)
    ack = ETHERNET_IP_TCP.format(52, *(ENDS[i] for i in (1, 0, 3, 2)))
    gap_ns = round(duration_s * 1e9 / packets)
    header = np.array([0xA1B23C4D, 2 | 4 << 16, 0, 0, SNAPLEN, 1], "<u4").tobytes()
    with (folder / "before.pcap").open("wb") as before, (folder / "after.pcap").open("wb") as after:
        before.write(header)
        after.write(header)
        for low in range(0, packets, PIECE):
            number = np.arange(low, min(low + PIECE, packets))
            sent_ns = T0_NS + number * gap_ns
            frames = records(DATA, data, 1514, number, sent_ns)
            acks = records(ACK, ack, 66, number[1::2], sent_ns[1::2] + gap_ns // 2)
            for i in range(0, len(frames), 2):
                before.write(frames[i : i + 2].tobytes() + acks[i // 2 : i // 2 + 1].tobytes())
            arrived = number % 1000 != 999
            late_ns = sent_ns[arrived] + 20_000_000
            after.write(records(DATA, data, 1514, number[arrived], late_ns).tobytes())
    (folder / "result.json").write_text(json.dumps(result(packets, duration_s)))
    telemetry(folder / "flows/0", duration_s)


def result(packets: int, duration_s: float) -> dict[str, object]:
    """What the guest says of the run."""
    drops = packets // 1000
    queue = {"kind": "bfifo", "packets": packets - drops, "drops": drops, "qlen": 0}
    flow = {"bottlenecks": [0], "port": 4001, "sender_ip": "10.1.0.1", "receiver_ip": "10.2.0.1"}
    return {
        **{"t0_ns": T0_NS, "counted_ns": T0_NS + round((duration_s + 10) * 1e9)},
        **{"capture_drops": 0, "qdiscs": [[queue]], "losses": [], "ack_losses": []},
        "flows": [{**flow, "window_bytes": 1 << 27, "sender_exit": 0, "receiver_exit": 0}],
    }


def telemetry(folder: Path, duration_s: float) -> None:
    """What a driver of TCP reports every 10 ms."""
    folder.mkdir(parents=True)
    with (folder / "sender.csv").open("w") as file:
        file.write(COLUMNS + "\n")
        for i in range(round(duration_s * 100)):
            row = f"{80000 + i % 777},{70000 + i % 555},60000,{50 + i % 99 / 10},50.076,5.1,4.9,0,0"
            file.write(f"{T0_NS + i * 10**7},{row},congestion_avoidance\n")
    size = 1448 * 4
    (folder / "receiver.csv").write_text(f"time_ns,bytes\n{T0_NS},0\n{T0_NS + 10**9},{size}\n")


BUILD = """
import sys
from pathlib import Path
from qbkit import store, traces
from qbkit.spec import Experiment
import h5netcdf, xarray
folder, duration_s, packets = Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
rate_mbps = packets * 1514 * 8e-6 / duration_s
experiment = Experiment(
    flows=["tcp:cubic"], duration_s=duration_s, bottleneck={"rate_mbps": rate_mbps}
)
begin()
store.save_run(traces.build(folder, experiment, {"hash": "", "engine": "virtual"}), sys.argv[4])
"""
OPEN = """
import sys
from qbkit import store
from qbkit.metrics import summary
import h5netcdf, xarray
begin()
run = store.load_run(sys.argv[4])
if sys.argv[5:]:
    summary(run)
"""
FRAME = """
import resource, time
def rss(): return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()
def now(): return time.process_time()
def begin():
    global base, began_s
    base, began_s = rss(), now()
{}
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(base, peak, now() - began_s)
"""


class Cost(NamedTuple):
    """What a program cost in a process of its own, after its imports."""

    before_bytes: float
    peak_bytes: float
    cpu_s: float


def cost(program: str, *words: object) -> Cost:
    command = [sys.executable, "-c", FRAME.format(program), *map(str, words)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return Cost(*map(float, done.stdout.split()[-3:]))


def costs(packets: int, duration_s: float) -> tuple[Cost, Cost, Cost]:
    """Of building and storing a run, of opening it, and of opening it and `summary`."""
    with tempfile.TemporaryDirectory() as scratch:
        folder, file = Path(scratch) / "run", Path(scratch) / "run.nc"
        folder.mkdir()
        generate(folder, packets, duration_s)
        words = (folder, duration_s, packets, file)
        return cost(BUILD, *words), cost(OPEN, *words), cost(OPEN, *words, "summary")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--packets", type=int, default=1_500_000)
    parser.add_argument("--duration-s", type=float, default=3600)
    parser.add_argument("--code", default="now", help="what was measured, in a word")
    add_write(parser)
    words = parser.parse_args()
    found = costs(words.packets, words.duration_s)
    record("memory", [row(words.packets, words.duration_s, words.code, *found)], KEYS, words.write)


def row(
    packets: int, duration_s: float, code: str, built: Cost, opened: Cost, summed: Cost
) -> dict[str, object]:
    """One size of run with one code, in the table of memory."""
    return {
        "packets": f"{packets:,}",
        "code": code,
        "seconds": f"{duration_s:g}",
        "peak, bytes per packet": round((built.peak_bytes - built.before_bytes) / packets),
        "whole process, MB": round(built.peak_bytes / 1e6),
        "built, processor s": built.cpu_s,
        "opened, processor s": opened.cpu_s,
        "opened and `summary`, processor s": summed.cpu_s,
    }


if __name__ == "__main__":
    main()
