"""How fast qlog files are read, beside Python's own json, and with how much memory.

python benchmarks/qlog.py [MEGABYTES]: a Markdown table on stdout. The file is what quic-go really
wrote in a run of 20 s, repeated with packet numbers and times that go on.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import qbkit as qb


def main() -> None:
    if sys.argv[2:]:
        return peak(sys.argv[2])
    megabytes = int(sys.argv[1]) if sys.argv[1:] else 100
    with tempfile.TemporaryDirectory() as folder:
        print(
            "| file | reader | events/s | MB/s | peak memory |", "|---|---|---|---|---|", sep="\n"
        )
        for size in (megabytes // 10, megabytes):
            path = grown(Path(folder), size)
            measure(path)
    return None


def grown(folder: Path, megabytes: int) -> Path:
    """A file of that size, of the events that a real stack wrote."""
    flow = qb.Flow("quic-go", "cubic", options={"qlog": True})
    qb.Experiment(flows=[flow], duration_s=20).run(out=folder / "run.nc", keep=("qlog",))
    source = max(folder.glob("run.kept/flows/0/*client.sqlog"))
    head, *records = source.read_bytes().split(b"\x1e")[1:]
    events = [json.loads(record) for record in records]
    numbers = 1 + max(e["data"].get("header", {}).get("packet_number", 0) for e in events)
    path = folder / f"{megabytes}.sqlog"
    with path.open("wb") as out:
        out.write(b"\x1e" + head)
        while out.tell() < megabytes << 20:
            for event in events:
                event["time"] += 20_000
                header = event["data"].get("header", {})
                if "packet_number" in header:
                    header["packet_number"] += numbers
                for frame in event["data"].get("frames", []):
                    ranges = frame.get("acked_ranges", [])
                    frame["acked_ranges"] = [[n + numbers for n in r] for r in ranges]
                out.write(b"\x1e" + json.dumps(event, separators=(",", ":")).encode() + b"\n")
    return path


def measure(path: Path) -> None:
    size_mb = path.stat().st_size / 1e6
    count = path.read_bytes().count(b"\x1e") - 1
    began = time.process_time()
    with path.open("rb") as file:
        for line in file:
            json.loads(line.strip(b"\x1e\n"))
    plain_s = time.process_time() - began
    command = [sys.executable, __file__, "0", str(path)]
    said = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    print(f"| {size_mb:.0f} MB | json.loads | {count / plain_s:,.0f} | {size_mb / plain_s:.0f} | |")
    ours = f"{count / said['s']:,.0f} | {size_mb / said['s']:.0f} | {said['peak_mb']:.0f} MB"
    print(f"| {size_mb:.0f} MB | qbkit | {ours} |")


def peak(path: str) -> None:
    qb.read_qlog  # noqa: B018 - what is imported does not count
    began = time.process_time()
    qb.read_qlog(path)
    spent_s = time.process_time() - began
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"s": spent_s, "peak_mb": peak_mb}))


if __name__ == "__main__":
    main()
