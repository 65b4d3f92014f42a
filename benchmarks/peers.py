"""Processor seconds of the same work by others: simulators, real time, and no network at all.

    python benchmarks/peers.py [--write]

The work is one flow of CUBIC over 20 Mbit/s, 50 ms and 1 BDP of buffer for 60 s (150 MB). Rows are
qbkit in virtual time; picoquic's own simulator, compiled from the sources of the stack that qbkit
built; ns-3's TCP (`ns3_tcp.cc`); the same experiment in real time on this machine, as Mininet runs
it (``--engine host``); and the stack's driver over the loopback, which sends 150 MB as fast as it
can. It measures what is installed, downloads nothing, and says how to install the rest. Processor
seconds are those of the programs and their children, best of three; run it on a quiet machine.
The table is ``peers``.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from markdown_tables import add_write, record
from speed import cpu_s

from qbkit import stacks
from qbkit.errors import QbkitError
from qbkit.execution import runner
from qbkit.spec import Experiment
from qbkit.stacks.base import CERTIFICATE_MOUNT, Transfer
from qbkit.stacks.toolchains import certificate
from qbkit.stacks.toolchains.build import build_once
from qbkit.stacks.toolchains.c_program import FLAGS, OBJECT
from qbkit.testbed import host

KEYS = ["flow", "by"]
RATE_MBPS, RTT_MS, DURATION_S, SIZE_BYTES = 20, 50, 60, 150_000_000
QUEUE_PACKETS = RATE_MBPS * 125 * RTT_MS // 1500
NS3_LIBRARIES = ("core", "network", "internet", "point-to-point", "applications", "traffic-control")
ADDRESS = "127.0.0.1:45001"
SIMULATOR = ("p_sim/pico_sim.c", "picohttp/picoquic_ns.c", "picohttp/quicperf.c")
TRIES = 3
SIMULATION = f"""
main_cc_algo: cubic
background_cc_algo: cubic
nb_connections: 1
main_target_time: 200000000
data_rate_in_gbps: {RATE_MBPS / 1000}
latency: {RTT_MS * 500}
queue_delay_max: {RTT_MS * 1000}
main_scenario_text: =b1:*1:397:{SIZE_BYTES};
"""


class Missing(Exception):
    """A peer that is not installed; the text says how to install it."""


def qbkit_run(flow: str, engine: str) -> float:
    """Of a run from spec to stored dataset."""
    link = {"rate_mbps": RATE_MBPS, "rtt_ms": RTT_MS, "buffer_bdp": 1}
    experiment = Experiment(flows=[flow], bottleneck=link, duration_s=DURATION_S, seed=1)
    with tempfile.TemporaryDirectory() as folder:
        before_s = cpu_s()
        runner.run(experiment, engine=engine, out=Path(folder) / "run.nc")
        return cpu_s() - before_s


def virtual_time(flow: str, folder: Path) -> float:
    qbkit_run(flow, "virtual")  # imports and builds are not part of a run
    return min(qbkit_run(flow, "virtual") for _ in range(TRIES))


def real_time(flow: str, folder: Path) -> float:
    if why := host.problem():
        raise Missing(why)
    return qbkit_run(flow, "host")


def picoquic_simulator(flow: str, folder: Path) -> float:
    """Of picoquic's pico_sim, until all has arrived: about 61 virtual seconds."""
    stack = ready(flow)
    top = next(path for path in stack.include() if path.name == "picoquic").parent
    sources = [top / name for name in SIMULATOR]
    include = [f"-I{path}" for path in (*stack.include(), top / "picohttp")]
    built = build_once(stack.library_name(), stack.library_key(), lambda _: None)
    command = ["gcc", *FLAGS, *stack.defines, "-w", *include, "-o", folder / "pico_sim"]
    run([*command, *sources, built / OBJECT, *stack.links])
    (folder / "spec.txt").write_text(SIMULATION)
    return best([folder / "pico_sim", "-S", top, folder / "spec.txt"])


def ns3(flow: str, folder: Path) -> float:
    if not Path("/usr/include/ns3/core-module.h").exists():
        raise Missing("apt-get install libns3-dev g++")
    source, program = Path(__file__).with_name("ns3_tcp.cc"), folder / "ns3_tcp"
    libraries = [f"-lns3-{name}" for name in NS3_LIBRARIES]
    run(["g++", "-O2", "-std=c++17", "-o", program, source, *libraries])
    return best([program, RATE_MBPS, RTT_MS, QUEUE_PACKETS, DURATION_S])


def loopback(flow: str, folder: Path) -> float:
    """Of a stack's sender and receiver."""
    stack = ready(flow)
    places = {CERTIFICATE_MOUNT: certificate.folder(), **stack.mounts()}

    def here(words: list[str]) -> list[str]:
        for guest, place in places.items():
            words = [word.replace(str(guest), str(place)) for word in words]
        return words

    controller = flow.partition(":")[2]
    options = stack.receiver_options(controller, {})
    receive = here(stack.recv_argv(address=ADDRESS, out=str(folder), options=options))
    send = here(stack.send_argv(Transfer(ADDRESS, controller, str(folder), size_bytes=SIZE_BYTES)))

    def once() -> None:
        receiver = subprocess.Popen(receive, stdout=subprocess.PIPE)
        assert receiver.stdout is not None
        receiver.stdout.readline()  # it listens
        run(send)
        receiver.terminate()
        receiver.communicate()

    return cheapest(once)


def ready(flow: str) -> stacks.Stack:
    """The stack of a flow, if it is built."""
    stack = stacks.get(flow.partition(":")[0])
    if not (status := stack.status()).ready:
        raise Missing(status.reason)
    return stack


def run(command: list[object]) -> None:
    subprocess.run(list(map(str, command)), check=True, capture_output=True)


def best(command: list[object]) -> float:
    """Of a command."""
    return cheapest(lambda: run(command))


def cheapest(work: Callable[[], None]) -> float:
    """Of the best of some tries."""
    costs = []
    for _ in range(TRIES):
        before_s = cpu_s()
        work()
        costs.append(cpu_s() - before_s)
    return min(costs)


class Peer(NamedTuple):
    """One way to do the work, and what it does not have."""

    flow: str
    by: str
    cost: Callable[[str, Path], float]
    leaves_out: str


TCP, PICOQUIC = "tcp:cubic", "picoquic:cubic"
MODEL = "Linux: the TCP and the queue are models"
KERNEL = "the kernel, its sockets and queues; the capture; programs of others"
LATE = "the work of the host's kernel outside of the programs; it takes 60 s, and late timers count"
NETWORK = "the network: link, queue, losses, delay, capture"
PEERS = (
    Peer(TCP, "qbkit, virtual time", virtual_time, ""),
    Peer(TCP, "ns-3", ns3, MODEL),
    Peer(TCP, "real time, as in Mininet", real_time, LATE),
    Peer(TCP, "loopback, unpaced", loopback, NETWORK),
    Peer(PICOQUIC, "qbkit, virtual time", virtual_time, ""),
    Peer(PICOQUIC, "picoquic's simulator", picoquic_simulator, KERNEL),
    Peer(PICOQUIC, "real time, as in Mininet", real_time, LATE),
    Peer(PICOQUIC, "loopback, unpaced", loopback, NETWORK),
)


def row(peer: Peer, cost: float | None, missing: str = "") -> dict[str, object]:
    """One peer in the table; ``missing`` says how to install what is not there."""
    return {
        "flow": peer.flow,
        "by": peer.by,
        "processor s": missing if cost is None else cost,
        "virtual s per processor s": "" if cost is None else f"{DURATION_S / cost:.3g}",
        "leaves out": peer.leaves_out,
    }


def rows() -> Iterator[dict[str, object]]:
    for peer in PEERS:
        with tempfile.TemporaryDirectory() as folder:
            try:
                yield row(peer, peer.cost(peer.flow, Path(folder)))
            except (Missing, QbkitError) as error:
                yield row(peer, None, f"not here: {error}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_write(parser)
    record("peers", rows(), KEYS, parser.parse_args().write)


if __name__ == "__main__":
    main()
