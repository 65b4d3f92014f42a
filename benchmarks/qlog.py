"""How fast logs are read, beside Python's own json, and with how much memory.

    python benchmarks/qlog.py [MEGABYTES] [--write]

The table is ``qlog``. The files are what quic-go really wrote in a run of 10 s, repeated with
packet numbers and times that continue. The disk needs room for the largest of them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from markdown_tables import arguments, record

import qbkit as qb

KEYS = ["file", "reader"]
RUN_S = 10


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("megabytes", type=int, nargs="?", default=1000)
    parser.add_argument("--peak-of", help=argparse.SUPPRESS)
    words = parser.parse_args()
    if words.peak_of:
        return peak(words.peak_of)
    with tempfile.TemporaryDirectory() as folder:
        source = logged(Path(folder))
        for size in sorted({max(words.megabytes // 10, 1), words.megabytes}):
            path = grown(source, Path(folder) / f"{size}.sqlog", size)
            record("qlog", measure(path), KEYS, words.write)
            path.unlink()
    return None


def logged(folder: Path) -> Path:
    """What a real stack wrote."""
    flow = qb.Flow("quic-go", "cubic", options={"qlog": True})
    experiment = qb.Experiment(flows=[flow], duration_s=RUN_S)
    experiment.run(out=folder / "run.nc", keep="qlog")
    return max(folder.glob("run.kept/flows/0/*client.sqlog"))


def grown(source: Path, path: Path, megabytes: int) -> Path:
    """A file of that size, of the same events over and over."""
    head, *records = source.read_bytes().split(b"\x1e")[1:]
    events = [json.loads(record) for record in records]
    numbers = 1 + max(e["data"].get("header", {}).get("packet_number", 0) for e in events)
    with path.open("wb") as out:
        out.write(b"\x1e" + head)
        while out.tell() < megabytes << 20:
            for event in events:
                event["time"] += RUN_S * 1000
                header = event["data"].get("header", {})
                if "packet_number" in header:
                    header["packet_number"] += numbers
                for frame in event["data"].get("frames", []):
                    ranges = frame.get("acked_ranges", [])
                    frame["acked_ranges"] = [[n + numbers for n in r] for r in ranges]
                out.write(b"\x1e" + json.dumps(event, separators=(",", ":")).encode() + b"\n")
    return path


def measure(path: Path) -> list[dict[str, str]]:
    """A row for each reader of a file."""
    size_mb, count = path.stat().st_size / 1e6, -1
    began = time.process_time()
    with path.open("rb") as file:
        for line in file:
            json.loads(line.strip(b"\x1e\n"))
            count += 1
    plain_s = time.process_time() - began
    command = [sys.executable, __file__, "--peak-of", str(path)]
    said = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    print(f"kept: {said['packets']} packets, {said['metrics']} rows of metrics")
    memory = f"{said['peak_mb']:.0f} MB", f"{said['kept_mb']:.0f} MB"
    return [
        row("json.loads by line", size_mb, count, plain_s),
        row("qb.read_qlog", size_mb, count, said["s"], *memory),
    ]


def row(
    reader: str, size_mb: float, count: int, spent_s: float, peak: str = "", kept: str = ""
) -> dict[str, str]:
    return {
        "file": f"{size_mb:.0f} MB",
        "events": f"{count:,}",
        "reader": reader,
        "events/s": f"{count / spent_s:,.0f}",
        "MB/s": f"{size_mb / spent_s:.0f}",
        "peak memory": peak,
        "kept": kept,
    }


def peak(path: str) -> None:
    qb.read_qlog  # noqa: B018 - what is imported does not count
    began = time.process_time()
    ds = qb.read_qlog(path)
    said = {
        "s": time.process_time() - began,
        "peak_mb": peak_mb(),
        "kept_mb": ds.nbytes / 1e6,
        "packets": ds.sizes["sent"] + ds.sizes["received"],
        "metrics": ds.sizes["metric"],
    }
    print(json.dumps(said))


def peak_mb() -> float:
    """Of this process alone: ru_maxrss would count its parent's memory at the fork too."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


if __name__ == "__main__":
    main()
