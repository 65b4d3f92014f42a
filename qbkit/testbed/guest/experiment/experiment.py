"""An experiment from network to result."""

import os
import time

import network
from attacker import HOST, Attacker
from capture import Capture
from flows import Flows
from links import Links
from queues import drain
from system import raise_limits


def result(plan):
    """Run everything; return the dictionary for result.json."""
    raise_limits(plan["tcp_memory_bytes"])
    links = Links(plan, build(plan))
    programs = []
    try:
        links.set_up()
        capture = Capture(links, programs)
        flows = Flows(links, programs)
        flows.listen()
        if "attacks" in plan:
            flows.attacker = Attacker(links, programs)
        t0_ns = links.wait_for_start()
        flows.run(t0_ns)
        end_ns = time.time_ns()
        ended = flows.finish()
        counters = drain(links)
        capture_drops = capture.end()
        return {
            "t0_s": t0_ns / 1e9,
            "t0_ns": t0_ns,
            "end_ns": end_ns,
            "kernel_version": os.uname().release,
            "capture_drops": capture_drops,
            **counters,
            "flows": ended,
        }
    finally:
        for program in programs:  # the namespaces end with the agent
            program.kill()


def build(plan):
    """The network of a plan, without its queues."""
    return network.build(
        plan["topology"],
        [flow["direction"] for flow in plan["flows"]],
        plan["tcp_buffer_bytes"],
        both_ways="return_tc" in plan,
        beside=[HOST] if "attacks" in plan else [],
        ip_version=plan.get("ip_version", 4),
    )
