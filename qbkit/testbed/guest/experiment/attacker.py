"""A host beside the last router that forges packets; only experiments with attacks have it."""

import signal

import network
from programs import ENV, Program

HOST = "x0"
"""A host of this name gets what it forges into the path to the senders."""
LOG = "/run/qb/run/attacker.log"


class Attacker:
    """The program on that host, from its start on; `strike` begins the next attack."""

    def __init__(self, links, programs):
        plan, host = links.plan["attacks"], links.net[HOST]
        seen = network.peer(network.bottlenecks(links.net)[0])
        argv = [*plan["argv"], seen.node.path, seen.name]
        self.program = Program(host, "the attacker", argv, LOG, {**ENV, **plan["env"]})
        self.program.of_flow = False  # without it there is nothing to see
        programs.append(self.program)
        self.program.wait_ready()

    def strike(self):
        """Begin the next attack."""
        self.program.process.send_signal(signal.SIGRTMIN)
