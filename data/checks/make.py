"""Measures the tables of notebook 14, "is it the stack", and ``settled`` of notebook 04.

python data/checks/make.py trains|trains_faster|jitter|phase|bursts|segmentation [--seeds N]
python data/checks/make.py granularity|pacing|extra_rtt|receivers|acks|samples [--seeds N]
python data/checks/make.py late|lateness|packet_sizes|settled [--seeds N]

``trains`` describes how each implementation's packets follow each other, alone on the shallowest
link of the conformance maps, and ``trains_faster`` on that of 100 Mbit/s. ``jitter`` repeats one
CUBIC and two BBRs beside the kernel's on the former with more and less jitter between sender and
queue, and ``phase`` with paths that are longer by up to a frame as well. ``bursts`` repeats them on
a link of 1 BDP that sends several frames back to back, and ``segmentation`` four senders there with
and without UDP segmentation offload. ``granularity`` repeats lsquic at 100 Mbit/s with a pacer that
acts more often, and ``pacing`` msquic's CUBIC without pacing, and the kernel's with it.
``extra_rtt`` gives one of two flows a path that is longer by up to a frame. ``receivers`` lets five
senders talk to another stack's receiver instead of their own, and ``acks`` infers C of a CUBIC that
is acknowledged more often. ``samples`` compares the sample programs of five stacks
(sample_programs.py) with our drivers. ``late`` repeats picoquic's CUBIC with a receiver that
acknowledges a little later. ``lateness`` measures how late quic-go, aioquic and the kernel react on
the machine's clock, and gives them that lateness in virtual time. ``packet_sizes`` has those of
quiche's CUBIC on both clocks. ``settled`` takes parts of long trials in a deep buffer. Stored runs
are not run again.
``python benchmarks/physical_time.py --out data/checks`` writes the tables of physical time.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd
from lateness import lateness, packet_sizes
from network import (
    bursts,
    extra_rtt,
    granularity,
    jitter,
    pacing,
    segmentation,
    trains,
    trains_faster,
)
from phase import phase
from programs import samples
from receivers import acks, late, receivers
from settled import settled

from qbkit.files import write_whole

HERE = Path(__file__).parent
MEASURES = {
    "trains": trains,
    "trains_faster": trains_faster,
    "jitter": jitter,
    "phase": phase,
    "bursts": bursts,
    "segmentation": segmentation,
    "granularity": granularity,
    "pacing": pacing,
    "extra_rtt": extra_rtt,
    "receivers": receivers,
    "acks": acks,
    "samples": samples,
    "late": late,
    "lateness": lateness,
    "packet_sizes": packet_sizes,
    "settled": settled,
}


def main() -> None:
    """Measure one table and write it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=MEASURES)
    parser.add_argument("--seeds", type=int, default=5)
    args = parser.parse_args()
    rows = []
    for row in MEASURES[args.what](args.seeds):
        rows.append(row)
        print(pd.DataFrame([row]).to_string(index=False), flush=True)
    table = pd.DataFrame(rows).assign(seeds=args.seeds)
    write_whole(HERE / f"{args.what}.csv", table.to_csv(index=False, float_format="%.4g").encode())


if __name__ == "__main__":
    main()
