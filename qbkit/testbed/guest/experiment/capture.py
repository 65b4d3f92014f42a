"""The capture of both sides of the queue."""

import network
from programs import ENV, Program
from report import RunAborted

FOLDER = "/run/qb/run"


class Capture:
    """The program that captures, from its start to its count of lost packets."""

    def __init__(self, links, programs):
        files = [f"{FOLDER}/before.pcap", f"{FOLDER}/after.pcap"]
        blocks = str(links.plan["capture_blocks"])
        argv = [links.plan["capture"], blocks, *files, *places(links)]
        self.program = Program(None, "the capture", argv, f"{FOLDER}/capture.log", ENV)
        programs.append(self.program)
        self.program.wait_ready()

    def end(self):
        """Stop the capture; return how many packets it lost."""
        if self.program.end():
            raise RunAborted(self.program.how_it_ended())
        return int(self.program.process.stdout.read().split()[-1])


def places(links):
    """Words of the capture program: namespace, side or file, and ports of each place.

    Where ACKs pass a queue or random loss, what senders' ports send is captured like what
    receivers' ports send.
    """
    senders = "receivers" if links.acks_are_followed else "senders"
    found = [
        f"{router.path}:{side}:{','.join(names)}"
        for kind, side in (("s", senders), ("d", "receivers"), ("x", "receivers"))
        for router, names in network.edges(links.net, kind).items()
    ]
    if links.plan["capture_queues"]:
        after = map(network.peer, network.bottlenecks(links.net))
        found += [
            f"{port.node.path}:{FOLDER}/queue-{k}.pcap:{port.name}" for k, port in enumerate(after)
        ]
    return found
